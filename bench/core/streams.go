// Loads that need streams: keep-alives on one stream, and a put that a thousand watches see.
package main

import (
	"context"
	"strconv"
	"sync"

	"go.etcd.io/etcd/clientv3"
	pb "go.etcd.io/etcd/etcdserver/etcdserverpb"
	"google.golang.org/grpc/metadata"
)

// Answers arrive in the order of the requests; etcd's client relies on this, too.
func keepAliveOnOneStream(client *clientv3.Client) operation {
	var leases []clientv3.LeaseID
	for index := 0; index < leasesKept; index++ {
		lease, err := client.Grant(context.Background(), sharedTTL)
		check(err)
		leases = append(leases, lease.ID)
	}
	stream, err := pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(context.Background())
	check(err)
	var order sync.Mutex
	waiting := make(chan chan struct{}, leasesKept)
	go func() {
		for {
			_, err := stream.Recv()
			check(err)
			close(<-waiting)
		}
	}()
	return func(ctx context.Context, number int64) error {
		answered := make(chan struct{})
		order.Lock()
		waiting <- answered
		err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(leases[number%leasesKept])})
		order.Unlock()
		<-answered
		return err
	}
}

// One operation is a put that each watch has seen. Operations are sequential.
func fanOut(clients []*clientv3.Client, watchers int) operation {
	var seen sync.WaitGroup
	for one := 0; one < watchers; one++ {
		// A stream for each watch: etcd's client has one for all watches with the same metadata.
		ctx := metadata.AppendToOutgoingContext(context.Background(), "watch", strconv.Itoa(one))
		answers := clients[one%len(clients)].Watch(ctx, "fan-out", clientv3.WithCreatedNotify())
		<-answers
		go func() {
			for answer := range answers {
				check(answer.Err())
				for range answer.Events {
					seen.Done()
				}
			}
		}()
	}
	return func(ctx context.Context, number int64) error {
		seen.Add(watchers)
		_, err := clients[0].Put(ctx, "fan-out", "v")
		seen.Wait()
		return err
	}
}
