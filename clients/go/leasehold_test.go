package leasehold

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var ctx = context.Background()

func fresh(name string) string { return "go/" + name + "/" + newKey() }

func open(t *testing.T) *Leases {
	t.Helper()
	url := os.Getenv("LEASEHOLD_GATEWAY")
	if url == "" {
		url = "http://127.0.0.1:7470"
	}
	leases, err := Open(url, Options{TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = leases.Close() })
	return leases
}

func acquire(t *testing.T, leases *Leases, name string, options ...Option) *Lease {
	t.Helper()
	lease, err := leases.Acquire(ctx, name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func hold(t *testing.T, lease *Lease) {
	t.Helper()
	if err := lease.AssertHeld(0); err != nil {
		t.Fatal(err)
	}
}

// way is the client's connection to the gateway, which the test can cut off.
type way struct{ isCut atomic.Bool }

func (w *way) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.isCut.Load() {
		return nil, errors.New("cut off")
	}
	return http.DefaultTransport.RoundTrip(request)
}

func cuttable(leases *Leases) *way {
	w := &way{}
	leases.options.Client = &http.Client{Transport: w}
	return w
}

func TestALeaseIsExclusiveUntilItIsReleased(t *testing.T) {
	one, other, name := open(t), open(t), fresh("exclusive")
	lease := acquire(t, one, name)
	hold(t, lease)
	if taken, err := other.TryAcquire(ctx, name); taken != nil || err != nil {
		t.Fatal(taken, err)
	}
	if hint, err := other.Holder(ctx, name); err != nil || hint.Token != fmt.Sprint(lease.Token()) {
		t.Fatal(hint, err)
	}
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	if lease.Remaining() != 0 || Code(lease.AssertHeld(0)) != "LEASE_LOST" || lease.Context().Err() == nil {
		t.Fatal("it is still held")
	}
	if again := acquire(t, other, name, Wait(0)); again.Token() <= lease.Token() {
		t.Fatal(again.Token(), lease.Token())
	}
}

func TestALeaseIsRenewedAndAWaiterGetsItInTheEnd(t *testing.T) {
	one, other, name := open(t), open(t), fresh("renewed")
	lease := acquire(t, one, name)
	waited := make(chan error, 1)
	go func() {
		taken, err := other.Acquire(ctx, name, Wait(30*time.Second))
		if err == nil {
			err = taken.AssertHeld(500 * time.Millisecond)
		}
		waited <- err
	}()
	for turn := 0; turn < 10; turn++ {
		time.Sleep(500 * time.Millisecond)
		hold(t, lease)
	}
	if len(waited) > 0 {
		t.Fatal("two have it", <-waited)
	}
	_ = lease.Release()
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
}

func TestAClientThatHasGoneLosesItsLeaseAndKnowsItByItself(t *testing.T) {
	one, other, name := open(t), open(t), fresh("gone")
	w := cuttable(one)
	lease := acquire(t, one, name)
	w.isCut.Store(true)
	taken := acquire(t, other, name, Wait(30*time.Second))
	if lease.Remaining() != 0 || taken.Token() <= lease.Token() {
		t.Fatal(lease.Remaining(), taken.Token(), lease.Token())
	}
	<-lease.Context().Done()
}

func TestAReleaseThatIsLostIsSentAgain(t *testing.T) {
	one, other, name := open(t), open(t), fresh("undone")
	w := cuttable(one)
	kept, lease := acquire(t, one, fresh("kept")), acquire(t, one, name)
	w.isCut.Store(true)
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	w.isCut.Store(false)
	hold(t, acquire(t, other, name, Wait(10*time.Second)))
	hold(t, kept)
}

func TestACallThatIsGivenUpHoldsNothing(t *testing.T) {
	one, other, name := open(t), open(t), fresh("given-up")
	lease := acquire(t, one, name)
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := other.Acquire(short, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	_ = lease.Release()
	hold(t, acquire(t, one, name, Wait(0)))
}

func TestASessionThatHasEndedIsOpenedAnew(t *testing.T) {
	one, other := open(t), open(t)
	lease := acquire(t, one, fresh("before"))
	if err := other.ask(ctx, "DELETE", "/v1/sessions/"+lease.session, nil, nil, timeout, nil); err != nil {
		t.Fatal(err)
	}
	hold(t, acquire(t, one, fresh("after")))
	<-lease.Context().Done()
	if lease.Remaining() != 0 {
		t.Fatal("it is still held")
	}
}

func TestRefusalsHaveTheirCodes(t *testing.T) {
	one := open(t)
	held := acquire(t, one, fresh("held"))
	for _, each := range []struct {
		name   string
		option Option
		code   string
	}{
		{"", Wait(0), "INVALID_NAME"},
		{"a\x00b", Wait(0), "INVALID_NAME"},
		{fresh("x"), Limit(65), "INVALID_CONFIG"},
		{fresh("x"), Shared(), "INVALID_NAME"},
		{held.Resource(), Wait(300 * time.Millisecond), "TIMEOUT"},
		{held.Resource(), Wait(0), "LEASE_HELD"},
	} {
		if _, err := one.Acquire(ctx, each.name, each.option); Code(err) != each.code {
			t.Errorf("%q: %v, not %s", each.name, err, each.code)
		}
	}
	if code := Code(held.AssertHeld(-1)); code != "INVALID_DURATION" {
		t.Error(code)
	}
	if _, err := Open("ftp://x", Options{}); Code(err) != "INVALID_URL" {
		t.Error(err)
	}
	nowhere, _ := Open("http://127.0.0.1:9", Options{})
	if _, err := nowhere.Acquire(ctx, "x", Wait(0)); Code(err) != "UNREACHABLE" {
		t.Error(err)
	}
	_ = nowhere.Close()
	if _, err := nowhere.Acquire(ctx, "x"); Code(err) != "CLOSED" {
		t.Error(err)
	}
}

func TestManyExcludeEachOther(t *testing.T) {
	one, other, name := open(t), open(t), fresh("many")
	var inside, most atomic.Int32
	var mu sync.Mutex
	var tokens []uint64
	var all sync.WaitGroup
	for worker := 0; worker < 6; worker++ {
		leases := []*Leases{one, other}[worker%2]
		all.Add(1)
		go func() {
			defer all.Done()
			for turn := 0; turn < 5; turn++ {
				lease, err := leases.Acquire(ctx, name)
				if err != nil {
					t.Error(err)
					return
				}
				if now := inside.Add(1); now > most.Load() {
					most.Store(now)
				}
				time.Sleep(5 * time.Millisecond)
				mu.Lock()
				tokens = append(tokens, lease.Token())
				mu.Unlock()
				inside.Add(-1)
				_ = lease.Release()
			}
		}()
	}
	all.Wait()
	isSorted := sort.SliceIsSorted(tokens, func(a, b int) bool { return tokens[a] < tokens[b] })
	if most.Load() != 1 || len(tokens) != 30 || !isSorted {
		t.Fatal(most.Load(), len(tokens), isSorted)
	}
}

func TestForms(t *testing.T) {
	one, other, seats := open(t), open(t), fresh("seats")
	if acquire(t, one, seats, Limit(2)).Slot() == acquire(t, other, seats, Limit(2)).Slot() {
		t.Fatal("both have one slot")
	}
	catalogue := fresh("catalogue") + "/~rw"
	reader, beside := acquire(t, one, catalogue, Shared()), acquire(t, other, catalogue, Shared())
	if taken, err := one.TryAcquire(ctx, catalogue); taken != nil || err != nil {
		t.Fatal(taken, err)
	}
	_, _ = reader.Release(), beside.Release()
	hold(t, acquire(t, one, catalogue, Data(map[string]int{"job": 7})))
}

func TestBalancer(t *testing.T) {
	var failed atomic.Bool
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("LEASEHOLD")
		switch {
		case r.URL.Path == "/v1/sessions":
			http.SetCookie(w, &http.Cookie{Name: "LEASEHOLD", Value: "one"})
			_, _ = w.Write([]byte(`{"session":"s","ttlMs":10000,"validForMs":9000,"leases":[]}`))
		case err != nil || cookie.Value != "one":
			http.Error(w, `{"code":"SESSION_GONE"}`, http.StatusGone)
		case r.Method == "DELETE":
			w.WriteHeader(http.StatusNoContent)
		case failed.CompareAndSwap(false, true):
			http.Error(w, "<html>", http.StatusBadGateway)
		default:
			_, _ = w.Write([]byte(`{"session":"s","ttlMs":10000,"validForMs":9000,"leases":[{"lease":"s.1","session":"s","resource":"x","token":"7","ttlMs":10000,"validForMs":9000}]}`))
		}
	}))
	defer balancer.Close()
	leases, err := Open(balancer.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Close()
	lease := acquire(t, leases, "x")
	if lease.Token() != 7 || !failed.Load() {
		t.Fatal(lease.Token(), failed.Load())
	}
}
