// Runs one load on three servers that speak etcd's API, with etcd's own client. Prints one JSON object.
// load ENDPOINTS FIGURE IN_FLIGHT MILLISECONDS (for fan-out, IN_FLIGHT is the number of watches)
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	valueBytes = 128
	keysRead   = 1000
	sharedTTL  = 600
	// The number of calls in flight on one connection. A connection of gRPC handles only about a hundred streams
	// well.
	callsPerConnection = 64
	leasesKept         = 512
)

type operation func(ctx context.Context, number int64) error

func main() {
	endpoints := strings.Split(os.Args[1], ",")
	figure := os.Args[2]
	inFlight, _ := strconv.Atoi(os.Args[3])
	forMs, _ := strconv.Atoi(os.Args[4])
	var clients []*clientv3.Client
	for index := 0; index*callsPerConnection < inFlight; index++ {
		// Connections are assigned to servers in turn, since the client's own choice would differ between runs.
		client, err := connect(endpoints[index%len(endpoints)])
		check(err)
		clients = append(clients, client)
	}
	if once := single(figure); once != nil {
		check(json.NewEncoder(os.Stdout).Encode(once(clients, time.Duration(forMs)*time.Millisecond)))
		return
	}
	next := prepare(figure, clients, inFlight)
	loops := inFlight
	if figure == "fan-out" {
		loops = 1
	}
	measure(next, loops, time.Duration(forMs/5)*time.Millisecond)
	before := cpu()
	times, seconds := measure(next, loops, time.Duration(forMs)*time.Millisecond)
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"done": len(times), "seconds": seconds, "clientCpuUs": cpu() - before,
		"p50Us": times[len(times)/2], "p99Us": times[len(times)*99/100],
	})
}

func connect(endpoint string, options ...grpc.DialOption) (*clientv3.Client, error) {
	// The client would warn of each attempt at a server that this program knows to be gone.
	log := zap.NewProductionConfig()
	log.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	return clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second, DialOptions: options, LogConfig: &log,
	})
}

func prepare(figure string, clients []*clientv3.Client, inFlight int) operation {
	value := strings.Repeat("v", valueBytes)
	run := fmt.Sprintf("%d/", os.Getpid())
	client := func(number int64) *clientv3.Client { return clients[number%int64(len(clients))] }
	key := func(number int64) string { return "bench/" + run + strconv.FormatInt(number, 10) }
	create := func(ctx context.Context, number int64, lease clientv3.LeaseID) error {
		name := key(number)
		_, err := client(number).Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
			Then(clientv3.OpPut(name, value, clientv3.WithLease(lease))).Else(clientv3.OpGet(name)).Commit()
		return err
	}
	switch figure {
	case "put":
		return func(ctx context.Context, number int64) error {
			_, err := client(number).Put(ctx, key(number%keysRead), value)
			return err
		}
	case "read", "serializable":
		for number := int64(0); number < keysRead; number++ {
			_, err := client(number).Put(context.Background(), key(number), value)
			check(err)
		}
		var options []clientv3.OpOption
		if figure == "serializable" {
			options = append(options, clientv3.WithSerializable())
		}
		return func(ctx context.Context, number int64) error {
			_, err := client(number).Get(ctx, key(number%keysRead), options...)
			return err
		}
	case "grant":
		return func(ctx context.Context, number int64) error {
			lease, err := client(number).Grant(ctx, sharedTTL)
			if err != nil {
				return err
			}
			return create(ctx, number, lease.ID)
		}
	case "create":
		lease, err := clients[0].Grant(context.Background(), sharedTTL)
		check(err)
		return func(ctx context.Context, number int64) error { return create(ctx, number, lease.ID) }
	case "keepalive":
		var leases []clientv3.LeaseID
		for index := 0; index < leasesKept; index++ {
			lease, err := clients[0].Grant(context.Background(), sharedTTL)
			check(err)
			leases = append(leases, lease.ID)
		}
		return func(ctx context.Context, number int64) error {
			_, err := client(number).KeepAliveOnce(ctx, leases[number%leasesKept])
			return err
		}
	case "keepalive-stream":
		return keepAliveOnOneStream(clients[0])
	case "fan-out":
		return fanOut(clients, inFlight)
	}
	panic("unknown figure " + figure)
}

var numbers int64

func measure(next operation, loops int, duration time.Duration) ([]int64, float64) {
	var group sync.WaitGroup
	parts := make([][]int64, loops)
	begun := time.Now()
	for loop := 0; loop < loops; loop++ {
		group.Add(1)
		go func(loop int) {
			defer group.Done()
			for time.Since(begun) < duration {
				from := time.Now()
				check(next(context.Background(), atomic.AddInt64(&numbers, 1)))
				parts[loop] = append(parts[loop], time.Since(from).Microseconds())
			}
		}(loop)
	}
	group.Wait()
	seconds := time.Since(begun).Seconds()
	var times []int64
	for _, part := range parts {
		times = append(times, part...)
	}
	return times, seconds
}

func cpu() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano()/1000 + usage.Stime.Nano()/1000
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
