// Package leasehold takes leases through a Leasehold gateway: exclusive, time-bounded ownership of named resources.
//
//	leases, err := leasehold.Open("http://127.0.0.1:7470", leasehold.Options{TTL: 10 * time.Second})
//	defer leases.Close()
//	lease, err := leases.Acquire(ctx, "reports/nightly", leasehold.Wait(5*time.Minute))
//	defer lease.Release()
//	if err := lease.AssertHeld(500 * time.Millisecond); err != nil {
//		return err
//	}
package leasehold

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// The longest wait of one request. The client then repeats it, so that no proxy considers the connection
	// dead.
	poll = 20 * time.Second
	// The time limit of requests that the gateway answers at once.
	timeout    = 5 * time.Second
	retryPause = 500 * time.Millisecond
	waitUsual  = time.Minute
	ttlUsual   = 10 * time.Second
	bodyMax    = 16 << 20
)

// Error is a refusal, with Leasehold's stable code: LEASE_HELD, TIMEOUT, NO_QUORUM, LEASE_LOST, and others.
type Error struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Status is the HTTP status; 0 if the gateway has not answered.
	Status int `json:"status"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Detail }

// Code returns the code of an error of this package, or "".
func Code(err error) string {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// moment is a point in time by two clocks. The steady clock may stand still while the machine sleeps, and the
// system clock may be set, so the elapsed time is the greater of the two.
type moment struct{ at time.Time }

func now() moment { return moment{time.Now()} }

func (m moment) ago() time.Duration {
	present := time.Now()
	steady, system := present.Sub(m.at), present.Round(0).Sub(m.at.Round(0))
	if steady > system {
		return steady
	}
	return system
}

// Options are the options of Open.
type Options struct {
	// TTL: leases end when the gateway has received nothing from this program for this long. Default: 10 s.
	TTL time.Duration
	// Token is the token of the gateway's user.
	Token string
	// Client is the HTTP client, with CAs and certificates. It must have no timeout of its own. Default: a new
	// one.
	Client *http.Client
}

// Leases are the leases of one client at one gateway. All methods are safe for concurrent use.
type Leases struct {
	url     string
	options Options
	wake    chan struct{}
	stop    context.CancelFunc
	stopped context.Context

	opening sync.Mutex
	mu      sync.Mutex
	session string
	held    map[string]*Lease
	undone  []undo
}

type undo struct {
	method, path string
	body         any
}

// Open returns the leases of the gateway at an address such as http://127.0.0.1:7470. Nothing is sent yet.
func Open(address string, options Options) (*Leases, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, &Error{Code: "INVALID_URL", Detail: strconv.Quote(address) + " is no address of a gateway"}
	}
	if options.TTL == 0 {
		options.TTL = ttlUsual
	}
	if options.Client == nil {
		// The cookies of a load balancer keep this program at its gateway.
		jar, err := cookiejar.New(nil)
		if err != nil {
			return nil, err
		}
		options.Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), Jar: jar}
	}
	l := &Leases{url: strings.TrimSuffix(address, "/"), options: options, wake: make(chan struct{}, 1), held: map[string]*Lease{}}
	l.stopped, l.stop = context.WithCancel(context.Background())
	go l.renew()
	return l, nil
}

// Option is an option of a call for a lease.
type Option func(wishes map[string]any)

// Wait sets how long to wait for the lease. Default: a minute; 0 does not wait.
func Wait(wait time.Duration) Option {
	return func(w map[string]any) { w["wait"] = wait.Milliseconds() }
}

// Limit sets how many may hold the resource at the same time.
func Limit(limit int) Option { return func(w map[string]any) { w["limit"] = limit } }

// Shared acquires the lease in shared mode, for names that end with /~rw.
func Shared() Option { return func(w map[string]any) { w["mode"] = "shared" } }

// Fair makes waiters acquire the lease in order.
func Fair() Option { return func(w map[string]any) { w["fair"] = true } }

// MaxHold ends the lease this long after it was acquired, in every case.
func MaxHold(d time.Duration) Option {
	return func(w map[string]any) { w["maxHold"] = d.Milliseconds() }
}

// Data sets data that others can read: up to 1,024 bytes of JSON.
func Data(data any) Option { return func(w map[string]any) { w["data"] = data } }

type leaseAnswer struct {
	Lease, Session, Resource, Holder, Token string
	Slot                                    int
	ValidForMs                              int64
	ReleaseRequested                        bool
	Lost                                    string
}

type answer struct {
	Session           string
	TTLMs, ValidForMs int64
	Waiting           bool
	Leases            []leaseAnswer
}

// Acquire waits for the lease and acquires it. When ctx ends, the call is cancelled and nothing is held.
func (l *Leases) Acquire(ctx context.Context, resource string, options ...Option) (*Lease, error) {
	wishes := map[string]any{"resource": resource, "wait": waitUsual.Milliseconds()}
	for _, option := range options {
		option(wishes)
	}
	var granted answer
	var sent moment
	// The session may have ended while the program, or the gateway, was stopped.
	for attempt := 0; ; attempt++ {
		session, err := l.open(ctx)
		if err == nil {
			granted, sent, err = l.acquire(ctx, session, wishes)
		}
		if err == nil {
			break
		}
		if Code(err) != "SESSION_GONE" || attempt > 0 {
			return nil, err
		}
	}
	first := granted.Leases[0]
	token, err := strconv.ParseUint(first.Token, 10, 64)
	if err != nil {
		return nil, &Error{Code: "INTERNAL", Detail: "the gateway's token is no number: " + strconv.Quote(first.Token)}
	}
	lease := &Lease{leases: l, id: first.Lease, session: first.Session, resource: resource, slot: first.Slot, holder: first.Holder, token: token, sent: sent, why: "expired"}
	lease.ctx, lease.cancel = context.WithCancel(context.Background())
	lease.heard(first, sent)
	l.mu.Lock()
	l.held[lease.id] = lease
	l.mu.Unlock()
	// The time of an answer counts from the start of the last request, which may have waited for long. A renewal
	// gives more.
	if lease.Remaining().Milliseconds() < granted.TTLMs/2 {
		l.renewNow()
	}
	l.wakeUp()
	return lease, nil
}

// TryAcquire acquires the lease if it is free now, or returns nil.
func (l *Leases) TryAcquire(ctx context.Context, resource string, options ...Option) (*Lease, error) {
	lease, err := l.Acquire(ctx, resource, append(options, Wait(0))...)
	if Code(err) == "LEASE_HELD" {
		return nil, nil
	}
	return lease, err
}

func (l *Leases) acquire(ctx context.Context, session string, wishes map[string]any) (answer, moment, error) {
	body := map[string]any{"session": session}
	for name, value := range wishes {
		body[name] = value
	}
	key := newKey()
	headers := map[string]string{"Idempotency-Key": key, "Prefer": fmt.Sprintf("wait=%.0f", poll.Seconds())}
	begun := now()
	for {
		var granted answer
		sent := now()
		err := l.ask(ctx, "POST", "/v1/leases", body, headers, poll+timeout, &granted)
		if err == nil && !granted.Waiting {
			return granted, sent, nil
		}
		if err == nil {
			continue
		}
		if refusal := new(Error); errors.As(err, &refusal) {
			if refusal.Code == "SESSION_GONE" {
				l.gone(session)
			}
			return answer{}, sent, err
		}
		// The call continues at the gateway; the same key finds it again.
		if ctx.Err() != nil || begun.ago() > time.Duration(wishes["wait"].(int64))*time.Millisecond+timeout {
			l.giveBack(undo{"POST", "/v1/sessions/" + session + "/cancel", map[string]any{"key": key}})
			if ctx.Err() != nil {
				return answer{}, sent, ctx.Err()
			}
			return answer{}, sent, &Error{Code: "UNREACHABLE", Detail: err.Error()}
		}
		pause(ctx, retryPause)
	}
}

// Hint is the last known state of a resource. It is out of date as soon as it is read.
type Hint struct {
	Resource    string
	State       string
	Holder      string
	Token       string
	RemainingMs int64
	Data        json.RawMessage
}

// Holder returns a hint about the holder of a resource.
func (l *Leases) Holder(ctx context.Context, resource string) (hint Hint, err error) {
	err = l.ask(ctx, "GET", "/v1/holder?"+url.Values{"resource": {resource}}.Encode(), nil, nil, timeout, &hint)
	return hint, err
}

// Close releases all leases.
func (l *Leases) Close() error {
	l.stop()
	l.mu.Lock()
	session, held := l.session, l.held
	l.session, l.held = "", map[string]*Lease{}
	l.mu.Unlock()
	for _, lease := range held {
		lease.end("closed")
	}
	if session == "" {
		return nil
	}
	err := l.ask(context.Background(), "DELETE", "/v1/sessions/"+session, nil, nil, timeout, nil)
	l.options.Client.CloseIdleConnections()
	if Code(err) == "SESSION_GONE" {
		return nil
	}
	return err
}

func (l *Leases) open(ctx context.Context) (string, error) {
	l.opening.Lock()
	defer l.opening.Unlock()
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if l.stopped.Err() != nil {
		return "", &Error{Code: "CLOSED", Detail: "these leases are closed"}
	}
	if session != "" {
		return session, nil
	}
	var opened answer
	ttl := map[string]any{"ttl": l.options.TTL.Milliseconds()}
	err := l.ask(ctx, "POST", "/v1/sessions", ttl, map[string]string{"Idempotency-Key": newKey()}, timeout, &opened)
	if err != nil {
		if Code(err) == "" && ctx.Err() == nil {
			err = &Error{Code: "UNREACHABLE", Detail: err.Error()}
		}
		return "", err
	}
	l.mu.Lock()
	l.session = opened.Session
	l.mu.Unlock()
	l.wakeUp()
	return opened.Session, nil
}

func (l *Leases) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Leases) gone(session string) {
	l.mu.Lock()
	if l.session == session {
		l.session = ""
	}
	var ended []*Lease
	for id, lease := range l.held {
		if lease.session == session {
			ended = append(ended, lease)
			delete(l.held, id)
		}
	}
	l.mu.Unlock()
	for _, lease := range ended {
		lease.end("expired")
	}
}

// giveBack sends the request now or, if that fails, with a later renewal.
func (l *Leases) giveBack(u undo) error {
	err := l.ask(context.Background(), u.method, u.path, u.body, nil, timeout, nil)
	if err == nil || Code(err) == "LEASE_LOST" || Code(err) == "SESSION_GONE" {
		return nil
	}
	if Code(err) != "" {
		return err
	}
	l.mu.Lock()
	l.undone = append(l.undone, u)
	l.mu.Unlock()
	return nil
}

func (l *Leases) renew() {
	timer := time.NewTimer(l.options.TTL)
	defer timer.Stop()
	for {
		select {
		case <-l.stopped.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
		timer.Reset(l.renewNow())
	}
}

// renewNow renews the session and returns the pause until the next renewal.
func (l *Leases) renewNow() time.Duration {
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session == "" {
		return l.options.TTL / 3
	}
	var renewed answer
	sent := now()
	err := l.ask(l.stopped, "POST", "/v1/sessions/"+session+"/renew", map[string]any{}, nil, timeout, &renewed)
	if Code(err) == "SESSION_GONE" {
		l.gone(session)
	}
	l.mu.Lock()
	known := make(map[string]*Lease, len(l.held))
	for id, lease := range l.held {
		known[id] = lease
	}
	var undone []undo
	if err == nil {
		undone, l.undone = l.undone, nil
	}
	l.mu.Unlock()
	if err != nil {
		// Ends are detected even when the gateway is unreachable.
		for _, lease := range known {
			lease.Remaining()
		}
		return retryPause
	}
	for _, u := range undone {
		_ = l.giveBack(u)
	}
	least := renewed.ValidForMs
	for _, each := range renewed.Leases {
		lease := known[each.Lease]
		if lease == nil {
			continue
		}
		lease.heard(each, sent)
		if each.ValidForMs == 0 {
			l.forget(lease)
		} else if each.ValidForMs < least {
			least = each.ValidForMs
		}
	}
	if least < 300 {
		least = 300
	}
	return time.Duration(least/3) * time.Millisecond
}

func (l *Leases) forget(lease *Lease) {
	l.mu.Lock()
	delete(l.held, lease.id)
	l.mu.Unlock()
}

func (l *Leases) ask(ctx context.Context, method, path string, body any, headers map[string]string, limit time.Duration, into any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return &Error{Code: "INVALID_CONFIG", Detail: err.Error()}
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, l.url+path, content)
	if err != nil {
		return &Error{Code: "INVALID_URL", Detail: err.Error()}
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if l.options.Token != "" {
		request.Header.Set("Authorization", "Bearer "+l.options.Token)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := l.options.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, bodyMax))
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		refusal := &Error{}
		if json.Unmarshal(text, refusal) != nil || refusal.Code == "" {
			switch response.StatusCode {
			case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
				// A load balancer answered because its gateway is gone.
				return errors.New("status " + response.Status)
			}
			refusal = &Error{Code: "HTTP", Detail: response.Status, Status: response.StatusCode}
		}
		return refusal
	}
	if into == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, into)
}

func newKey() string {
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		panic(err)
	}
	return hex.EncodeToString(key[:])
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
