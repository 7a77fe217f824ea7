// Package pacertest tests whether an implementation keeps the contract of package pacer.
package pacertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/store/pacer"
)

// Run tests the Pacers that open returns: two that share their hosts, as those of two processes do,
// and no host of which was used before. Run calls open for each of its tests, in a bubble of
// testing/synctest, so the Pacers must use the clock of package time. The tests use delays of ten
// seconds, and allow a wait to be five seconds longer than necessary.
func Run(t *testing.T, open func(t *testing.T) (a, b pacer.Pacer)) {
	const delay = 10 * time.Second
	run(t, func(t *testing.T, test func(*pair)) {
		synctest.Test(t, func(t *testing.T) {
			a, b := open(t)
			test(&pair{T: t, a: a, b: b, delay: delay, slack: delay / 2})
		})
	})
}

// RunRealTime is like Run, but the tests run in real time, and in parallel. Use it for Pacers that
// share a server. The tests use delays of 200 milliseconds. They do not fail if the machine is
// busy, as long as no wait is a minute longer than necessary. The leases should last for one or two
// seconds, because the tests use leases for half a second, and one of them waits until a lease has
// expired.
func RunRealTime(t *testing.T, open func(t *testing.T) (a, b pacer.Pacer)) {
	run(t, func(t *testing.T, test func(*pair)) {
		t.Parallel()
		a, b := open(t)
		test(&pair{T: t, a: a, b: b, delay: 200 * time.Millisecond, slack: time.Minute})
	})
}

// run runs each test with the function in.
func run(t *testing.T, in func(t *testing.T, test func(*pair))) {
	for _, test := range []struct {
		name string
		run  func(*pair)
	}{
		{"one request at a time", oneAtATime},
		{"a lease that was not used", unused},
		{"the longest delay applies", longestDelay},
		{"Retry-After", retryAfter},
		{"Retry-After while another process holds the host", lateRetryAfter},
		{"no delay", noDelay},
		{"a delay after leases without one", delayAfterNone},
		{"one fetch of robots.txt", oneFetch},
		{"the second Release has no effect", secondRelease},
		{"a lease expires", expires},
		{"the context ends", contextEnds},
		{"hosts are independent", otherHost},
		{"many goroutines", many},
	} {
		t.Run(test.name, func(t *testing.T) { in(t, test.run) })
	}
}

// A pair has the Pacers of two processes.
type pair struct {
	*testing.T
	a, b  pacer.Pacer
	delay time.Duration // of the host in most tests
	slack time.Duration // by how much a wait may be longer than necessary
}

const host = "a.test"

// acquire acquires the host with p. The lease is released when the test ends, if not before.
func (x *pair) acquire(p pacer.Pacer, delay time.Duration) pacer.Lease {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Context(), 10*x.delay+x.slack)
	defer cancel()
	l, err := p.Acquire(ctx, host, delay)
	if err != nil || l == nil {
		x.Fatalf("Acquire returned %v, %v", l, err)
	}
	x.Cleanup(func() { l.Release(false, 0, time.Time{}) })
	return l
}

// acquireAt acquires the host with p, and checks that it gets it when wait has passed since a time.
func (x *pair) acquireAt(p pacer.Pacer, delay time.Duration, since time.Time, wait time.Duration) pacer.Lease {
	x.Helper()
	l := x.acquire(p, delay)
	if got := time.Since(since); got < wait || got > wait+x.slack {
		x.Errorf("Acquire returned after %v, want %v", got, wait)
	}
	return l
}

// sent releases a lease whose request was sent, and returns when the request has ended.
func sent(l pacer.Lease, delay time.Duration) (ended time.Time) {
	ended = time.Now()
	l.Release(true, delay, time.Time{})
	return ended
}

func oneAtATime(x *pair) {
	began := time.Now()
	l := x.acquireAt(x.a, x.delay, began, 0)
	if !l.Deadline().After(began) {
		x.Errorf("the deadline is %v, want a time after %v", l.Deadline(), began)
	}
	if !l.Valid() && time.Since(began) < time.Second {
		x.Error("the lease is not valid when Acquire returns")
	}
	ended := sent(l, x.delay)
	x.isHeld(x.acquireAt(x.b, x.delay, ended, x.delay))
}

func unused(x *pair) {
	began := time.Now()
	const rounds = 20
	for range rounds {
		x.acquire(x.a, x.delay).Release(false, x.delay, time.Time{})
		x.acquire(x.b, x.delay).Release(false, x.delay, time.Time{})
	}
	if took := time.Since(began); took > rounds*x.delay {
		x.Errorf("%d leases that were not used took %v, although no request has ended", 2*rounds, took)
	}
}

func longestDelay(x *pair) {
	ended := sent(x.acquire(x.a, x.delay), x.delay)
	l := x.acquireAt(x.b, 2*x.delay, ended, 2*x.delay)
	l = x.acquireAt(x.a, x.delay, sent(l, 2*x.delay), 2*x.delay)
	x.acquireAt(x.b, 0, sent(l, 3*x.delay), 3*x.delay)
}

func retryAfter(x *pair) {
	ended := time.Now()
	x.acquire(x.a, x.delay).Release(true, x.delay, ended.Add(3*x.delay))
	x.acquireAt(x.b, x.delay, ended, 3*x.delay)
}

// lateRetryAfter ends a request without a delay while another process holds the host.
func lateRetryAfter(x *pair) {
	l := x.acquire(x.a, 0)
	other := x.acquire(x.b, x.delay)
	ended := time.Now()
	l.Release(true, 0, ended.Add(4*x.delay))
	sent(other, x.delay)
	x.acquireAt(x.a, x.delay, ended, 4*x.delay)
}

func noDelay(x *pair) {
	began := time.Now()
	leases := []pacer.Lease{x.acquireAt(x.a, 0, began, 0), x.acquireAt(x.b, 0, began, 0)}
	for _, l := range leases {
		if !l.Deadline().IsZero() || !l.Valid() && time.Since(began) < time.Second {
			x.Errorf("the lease is valid: %v, its deadline is %v, want no deadline", l.Valid(), l.Deadline())
		}
	}
	sent(leases[0], 0)
	ended := time.Now()
	leases[1].Release(true, 0, ended.Add(3*x.delay))
	x.acquireAt(x.a, x.delay, ended, 3*x.delay)
}

// delayAfterNone sends a request as late as its lease allows. The lease has no deadline.
func delayAfterNone(x *pair) {
	l := x.acquire(x.a, 0)
	ended := make(chan time.Time, 1)
	go func() {
		last := time.Now()
		for range 100 {
			now := time.Now()
			if !l.Valid() {
				break
			}
			last = now
			time.Sleep(x.delay / 20)
		}
		sent(l, 0)
		ended <- last
	}()
	x.acquire(x.b, x.delay)
	granted := time.Now()
	if gap := granted.Sub(<-ended); gap < x.delay {
		x.Errorf("the host was granted %v after another process could send its last request, want %v", gap, x.delay)
	}
}

func oneFetch(x *pair) {
	const delay = time.Millisecond
	began := time.Now()
	l := x.acquireAt(x.a, delay, began, 0)
	if l.Deadline().IsZero() {
		x.Error("the lease has no deadline")
	}
	began = time.Now()
	time.AfterFunc(x.delay, func() { sent(l, 0) })
	x.acquireAt(x.b, delay, began, x.delay)
}

func secondRelease(x *pair) {
	l := x.acquire(x.a, x.delay)
	l.Release(false, x.delay, time.Time{})
	other := x.acquire(x.b, x.delay)
	l.Release(true, time.Hour, time.Now().Add(time.Hour))
	x.isHeld(other)
}

// isHeld checks that the Pacer a does not get the host while the Pacer b has the lease l.
func (x *pair) isHeld(l pacer.Lease) {
	x.Helper()
	began := time.Now()
	time.AfterFunc(2*x.delay, func() { sent(l, x.delay) })
	x.acquireAt(x.a, x.delay, began, 3*x.delay)
}

func expires(x *pair) {
	l := x.acquire(x.a, x.delay)
	ctx, cancel := context.WithDeadline(x.Context(), l.Deadline().Add(10*x.delay+x.slack))
	defer cancel()
	other, err := x.b.Acquire(ctx, host, x.delay)
	if err != nil {
		x.Fatalf("Acquire after the deadline of a lease that was not released: %v", err)
	}
	if gap := time.Since(l.Deadline()); gap < x.delay {
		x.Errorf("Acquire returned %v after the deadline of the lease before, want %v", gap, x.delay)
	}
	if l.Valid() {
		x.Error("the lease is valid after its deadline")
	}
	sent(l, x.delay) // has no effect on the lease of b
	x.isHeld(other)
}

func contextEnds(x *pair) {
	l := x.acquire(x.a, x.delay)
	ctx, cancel := context.WithCancelCause(x.Context())
	cause := errors.New("the cause")
	time.AfterFunc(x.delay, func() { cancel(cause) })
	began := time.Now()
	got, err := x.b.Acquire(ctx, host, x.delay)
	if took := time.Since(began); got != nil || !errors.Is(err, cause) || took > x.delay+x.slack {
		x.Errorf("Acquire returned %v, %v after %v, want the cause of the context after %v", got, err, took, x.delay)
	}
	got, err = x.b.Acquire(ctx, "b.test", x.delay)
	if got != nil || !errors.Is(err, cause) {
		x.Errorf("Acquire with an ended context returned %v, %v, want its cause", got, err)
	}
	l.Release(false, x.delay, time.Time{})
	x.acquireAt(x.a, x.delay, time.Now(), 0)
}

func otherHost(x *pair) {
	x.acquire(x.a, x.delay)
	ctx, cancel := context.WithTimeout(x.Context(), x.slack)
	defer cancel()
	l, err := x.b.Acquire(ctx, "b.test", x.delay)
	if err != nil {
		x.Fatalf("Acquire of a second host: %v", err)
	}
	l.Release(false, 0, time.Time{})
}

func many(x *pair) {
	var mu sync.Mutex
	var ended time.Time // of the last request; zero at first
	busy := false
	var group sync.WaitGroup
	for i := range 4 {
		p := []pacer.Pacer{x.a, x.b}[i%2]
		group.Go(func() {
			for range 3 {
				l, err := p.Acquire(x.Context(), host, x.delay)
				if err != nil {
					x.Error(err)
					return
				}
				mu.Lock()
				if gap := time.Since(ended); busy || gap < x.delay {
					x.Errorf("a request starts %v after the end of the last one, which is still sent: %v; want a gap of %v", gap, busy, x.delay)
				}
				busy = true
				mu.Unlock()
				time.Sleep(x.delay / 10)
				mu.Lock()
				busy = false
				ended = time.Now()
				mu.Unlock()
				l.Release(true, x.delay, time.Time{})
			}
		})
	}
	group.Wait()
}
