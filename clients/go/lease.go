package leasehold

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Lease is the right to a resource until a deadline.
type Lease struct {
	leases                *Leases
	id, session, resource string
	holder                string
	slot                  int
	token                 uint64
	ctx                   context.Context
	cancel                context.CancelFunc

	mu        sync.Mutex
	sent      moment
	valid     time.Duration
	requested bool
	over      bool
	why       string
}

// Resource returns the resource's name. A counted lease has the name of its slot.
func (l *Lease) Resource() string { return l.resource }

// Holder returns the gateway's name, which others see as the holder.
func (l *Lease) Holder() string { return l.holder }

// Slot returns the slot of a counted lease.
func (l *Lease) Slot() int { return l.slot }

// Token returns the fencing token, which is greater in each later tenure of the resource. The protected
// resource should refuse a token smaller than the greatest it has seen.
func (l *Lease) Token() uint64 { return l.token }

// Context is cancelled when a loss or a release is noticed, which may be late. AssertHeld is never late.
func (l *Lease) Context() context.Context { return l.ctx }

// ReleaseRequested reports whether another participant has asked for the resource.
func (l *Lease) ReleaseRequested() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requested
}

// Remaining returns how long the lease can be trusted. Once it is 0, it stays 0.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remaining()
}

func (l *Lease) remaining() time.Duration {
	if l.over {
		return 0
	}
	left := l.valid - l.sent.ago()
	if left <= 0 {
		l.over = true
		l.cancel()
		return 0
	}
	return left
}

// AssertHeld returns nil only if the lease is held now and for at least this time.
func (l *Lease) AssertHeld(atLeast time.Duration) error {
	if atLeast < 0 {
		return &Error{Code: "INVALID_DURATION", Detail: "atLeast must be 0 or more"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.remaining()
	if left > 0 && left >= atLeast {
		return nil
	}
	why := l.why
	if left > 0 {
		why = fmt.Sprintf("only %v are left", left)
	}
	return &Error{Code: "LEASE_LOST", Detail: fmt.Sprintf("the lease on %q is gone (%s)", l.resource, why), Status: 410}
}

// Release releases the resource. The program must have stopped using it. A lost lease is not an error.
func (l *Lease) Release() error {
	l.end("released")
	l.leases.forget(l)
	return l.leases.giveBack(undo{"DELETE", "/v1/leases/" + l.id, nil})
}

func (l *Lease) end(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		l.why = why
		l.cancel()
	}
}

func (l *Lease) heard(answer leaseAnswer, sent moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requested = answer.ReleaseRequested
	if l.over {
		return
	}
	valid := time.Duration(answer.ValidForMs) * time.Millisecond
	if valid <= 0 {
		l.over = true
		if answer.Lost != "" {
			l.why = answer.Lost
		}
		l.cancel()
	} else if valid-sent.ago() > l.valid-l.sent.ago() {
		// Answers may arrive out of order: the later end counts.
		l.sent, l.valid = sent, valid
	}
}
