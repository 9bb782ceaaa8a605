// Figures measured once, not as a rate: many leases and their end, a million keys, servers that are killed.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/clientv3"
	"google.golang.org/grpc"
)

const (
	leasesHeld   = 100000
	leasesEnding = 10000
	endingTTL    = 10
	keysFilled   = 1000000
	keysInOne    = 100
	many         = 256
	// More concurrent large transactions would time out on a busy machine. A transaction that times out is
	// repeated.
	fillers = 32
)

type result map[string]float64

func single(figure string) func(clients []*clientv3.Client, duration time.Duration) result {
	switch figure {
	case "hold":
		return hold
	case "expire":
		return expire
	case "fill":
		return fill
	case "gap":
		return gap
	case "ready":
		return ready
	}
	return nil
}

// Calls `one` with 0 to count-1, in `workers` goroutines.
func inParallel(workers int, count int64, one func(number int64)) float64 {
	var group sync.WaitGroup
	var next int64 = -1
	begun := time.Now()
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				number := atomic.AddInt64(&next, 1)
				if number >= count {
					return
				}
				one(number)
			}
		}()
	}
	group.Wait()
	return time.Since(begun).Seconds()
}

// Grants a lease, and writes a key with it. Returns the time when the lease was granted.
func take(clients []*clientv3.Client, key string, number int64, ttl int64) time.Time {
	client := clients[number%int64(len(clients))]
	lease, err := client.Grant(context.Background(), ttl)
	check(err)
	taken := time.Now()
	_, err = client.Put(context.Background(), key, "v", clientv3.WithLease(lease.ID))
	check(err)
	return taken
}

func hold(clients []*clientv3.Client, _ time.Duration) result {
	return result{"seconds": inParallel(many, leasesHeld, func(number int64) {
		take(clients, fmt.Sprintf("held/%d", number), number, sharedTTL)
	})}
}

// Grants leases as fast as possible and does not keep them alive. Measures how late a watch learns of the end
// of each.
func expire(clients []*clientv3.Client, _ time.Duration) result {
	prefix := fmt.Sprintf("ending/%d/", os.Getpid())
	answers := clients[0].Watch(context.Background(), prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	<-answers
	var taken sync.Map
	go inParallel(many, leasesEnding, func(number int64) {
		key := fmt.Sprintf("%s%d", prefix, number)
		// Store before the put: the lease may expire before the put's answer arrives.
		taken.Store(key, time.Now())
		taken.Store(key, take(clients, key, number, endingTTL))
	})
	var late []float64
	for len(late) < leasesEnding {
		answer := <-answers
		check(answer.Err())
		for _, event := range answer.Events {
			at, _ := taken.Load(string(event.Kv.Key))
			late = append(late, (time.Since(at.(time.Time)) - endingTTL*time.Second).Seconds())
		}
	}
	sort.Float64s(late)
	return result{"least": late[0], "median": late[len(late)/2], "most": late[len(late)-1]}
}

func fill(clients []*clientv3.Client, _ time.Duration) result {
	value := strings.Repeat("v", valueBytes)
	seconds := inParallel(fillers, keysFilled/keysInOne, func(number int64) {
		var puts []clientv3.Op
		for index := int64(0); index < keysInOne; index++ {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("filled/%09d", number*keysInOne+index), value))
		}
		client := clients[number%int64(len(clients))]
		_, err := client.Txn(context.Background()).Then(puts...).Commit()
		for again := 0; err != nil && again < 5; again++ {
			_, err = client.Txn(context.Background()).Then(puts...).Commit()
		}
		check(err)
	})
	return result{"seconds": seconds}
}

// The longest time without an acknowledged put at any server, while the caller kills one.
func gap(clients []*clientv3.Client, duration time.Duration) result {
	var lock sync.Mutex
	last, longest := time.Now(), time.Duration(0)
	var group sync.WaitGroup
	ends := time.Now().Add(duration)
	for loop := 0; loop < 4*len(clients); loop++ {
		group.Add(1)
		go func(client *clientv3.Client, key string) {
			defer group.Done()
			for time.Now().Before(ends) {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				_, err := client.Put(ctx, key, "v")
				cancel()
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				lock.Lock()
				now := time.Now()
				if now.Sub(last) > longest {
					longest = now.Sub(last)
				}
				last = now
				lock.Unlock()
			}
		}(clients[loop%len(clients)], fmt.Sprintf("gap/%d", loop))
	}
	group.Wait()
	return result{"seconds": longest.Seconds()}
}

// Waits until each server answers a linearizable read. Each attempt uses a new connection, since gRPC would
// wait longer and longer between its own attempts.
func ready(clients []*clientv3.Client, _ time.Duration) result {
	begun := time.Now()
	for _, client := range clients {
		client.Close()
		for {
			one, err := connect(client.Endpoints()[0], grpc.WithBlock())
			if err == nil {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				_, err = one.Get(ctx, "ready")
				cancel()
				one.Close()
			}
			if err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return result{"seconds": time.Since(begun).Seconds()}
}
