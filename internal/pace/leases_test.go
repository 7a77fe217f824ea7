package pace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A desk is a Pacer that grants the leases of its func and counts them.
type desk struct {
	grant func(ctx context.Context, delay time.Duration) (Lease, error)

	mu       sync.Mutex
	asked    int
	waiting  int // calls that wait now
	most     int // the largest number of calls that waited at the same time
	granted  int
	released []string // the arguments of each Release
}

func (d *desk) Acquire(ctx context.Context, _ string, delay time.Duration) (Lease, error) {
	d.mu.Lock()
	d.asked++
	d.waiting++
	d.most = max(d.most, d.waiting)
	d.mu.Unlock()
	lease, err := d.grant(ctx, delay)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
	if err == nil {
		d.granted++
	}
	return lease, err
}

// leaseFor returns a lease that lasts for ttl.
func (d *desk) leaseFor(ttl time.Duration) Lease {
	l := &deskLease{desk: d}
	if ttl > 0 {
		l.until = time.Now().Add(ttl)
	}
	return l
}

type deskLease struct {
	desk  *desk
	until time.Time
}

func (l *deskLease) Deadline() time.Time { return l.until }
func (l *deskLease) Valid() bool         { return l.until.IsZero() || time.Now().Before(l.until) }
func (l *deskLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	said := fmt.Sprintf("%v %v", sent, delay)
	if !notBefore.IsZero() {
		said += fmt.Sprintf(" %v", time.Until(notBefore))
	}
	l.desk.released = append(l.desk.released, said)
}

// sharedHost returns a host that asks d.
func sharedHost(d *desk, r Rules) (*Hosts, *Host) {
	hosts := New(func(string) *Rules { return &r })
	hosts.UsePacer(d)
	return hosts, hosts.At(time.Now(), "a.test")
}

func (d *desk) want(t *testing.T, granted int, released ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.granted != granted || fmt.Sprint(d.released) != fmt.Sprint(released) {
		t.Errorf("%d granted, released %q; want %d, %q", d.granted, d.released, granted, released)
	}
}

// TestRelease checks the arguments of the release of a lease, which depend on how its ticket ends.
func TestRelease(t *testing.T) {
	ctx := context.Background()
	enter := func(t *testing.T, h *Host, ticket *Ticket) {
		if err := h.Enter(ctx, ticket); err != nil {
			t.Fatal(err)
		}
	}
	start := func(t *testing.T, h *Host, ticket *Ticket, direct bool) {
		if err := h.Start(ctx, ticket, direct); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		do       func(t *testing.T, h *Host, ticket *Ticket)
		released string
	}{
		"sent": {func(t *testing.T, h *Host, ticket *Ticket) {
			enter(t, h, ticket)
			start(t, h, ticket, false)
			ticket.OnWire()
			ticket.End()
		}, "true 1s"},
		"sent directly":         {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, true); ticket.End(); ticket.End() }, "true 1s"},
		"ended when admitted":   {func(t *testing.T, h *Host, ticket *Ticket) { enter(t, h, ticket); ticket.End() }, "false 1s"},
		"ended when started":    {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, false); ticket.End() }, "false 1s"},
		"expired when admitted": {func(t *testing.T, h *Host, ticket *Ticket) { enter(t, h, ticket); time.Sleep(time.Second) }, "false 1s"},
		"expired when started":  {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, false); time.Sleep(startTime) }, "false 1s"},
		"expired when started, as another request noticed": {func(t *testing.T, h *Host, ticket *Ticket) {
			start(t, h, ticket, false)
			g, _ := h.lock()
			g.full(g.registry.now().add(startTime), time.Second)
			g.mu.Unlock()
			time.Sleep(startTime)
		}, "false 1s"},
		"closed when admitted": {func(t *testing.T, h *Host, ticket *Ticket) { enter(t, h, ticket); h.own.registry.Close(nil) }, "false 1s"},
		"closed when started":  {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, false); h.own.registry.Close(nil) }, "false 1s"},
		"closed when sent": {func(t *testing.T, h *Host, ticket *Ticket) {
			start(t, h, ticket, true)
			h.own.registry.Close(nil)
			ticket.End()
		}, "true 1s"},
		"Enter, then direct": {func(t *testing.T, h *Host, ticket *Ticket) {
			enter(t, h, ticket)
			start(t, h, ticket, true)
			ticket.End()
			ticket.End()
		}, "true 1s"},
		"answered: Retry-After": {func(t *testing.T, h *Host, ticket *Ticket) {
			start(t, h, ticket, true)
			h.SlowDown(time.Now(), ticket, time.Minute)
			ticket.End()
		}, "true 1s 1m0s"},
		"not wanted": {func(t *testing.T, h *Host, ticket *Ticket) {
			no := errors.New("no")
			if err := h.StartIf(ctx, ticket, func() error { return no }); err != no {
				t.Error(err)
			}
		}, "false 0s"},
		"wanted panics": {func(t *testing.T, h *Host, ticket *Ticket) {
			defer func() { recover(); ticket.End() }()
			h.StartIf(ctx, ticket, func() error { panic("no") })
		}, "false 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := new(desk)
				d.grant = func(context.Context, time.Duration) (Lease, error) { return d.leaseFor(time.Minute), nil }
				_, h := sharedHost(d, Rules{MinDelay: time.Second, MaxBackOff: -1})
				var ticket Ticket
				tc.do(t, h, &ticket)
				synctest.Wait()
				d.want(t, 1, tc.released)
				if s := h.Stats(time.Now()); s.Waiting != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestShortLeaseIsReplaced checks that Start uses the lease of Enter only if at least half of its
// time is left.
func TestShortLeaseIsReplaced(t *testing.T) {
	for wait, want := range map[time.Duration]int{29 * time.Second: 1, 31 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			d := new(desk)
			d.grant = func(context.Context, time.Duration) (Lease, error) { return d.leaseFor(time.Minute), nil }
			_, h := sharedHost(d, Rules{MinDelay: time.Hour})
			var ticket Ticket
			h.Enter(t.Context(), &ticket)
			time.Sleep(wait)
			h.Start(t.Context(), &ticket, true)
			if d.granted != want || !ticket.Valid() {
				t.Errorf("after %v: %d leases, want %d", wait, d.granted, want)
			}
			ticket.End()
		})
	}
}

// TestStartGetsTheLeaseThatAPageAskedFor checks that a request in Start gets the lease that the
// Pacer is being asked for a page, and that the page gets the next one.
func TestStartGetsTheLeaseThatAPageAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(desk)
		d.grant = func(context.Context, time.Duration) (Lease, error) {
			time.Sleep(10 * time.Second)
			return d.leaseFor(time.Minute), nil
		}
		_, h := sharedHost(d, Rules{MinDelay: time.Second})
		var page, robots Ticket
		begin, done := time.Now(), make(chan time.Duration)
		go func() {
			h.Enter(t.Context(), &page)
			done <- time.Since(begin)
		}()
		time.Sleep(time.Second)
		h.Start(t.Context(), &robots, true)
		if at := time.Since(begin); at != 10*time.Second || d.asked > 2 {
			t.Errorf("robots.txt started after %v with %d calls of the Pacer, want 10s and at most 2", at, d.asked)
		}
		robots.End()
		if at := <-done; at != 21*time.Second {
			t.Errorf("the page passed Enter after %v, want 21s", at)
		}
		page.End()
		d.want(t, 2, "true 1s", "false 1s")
	})
}

// endWhileAsking ends a ticket in Enter while d is asked for its lease.
func endWhileAsking(t *testing.T, d *desk) {
	t.Helper()
	_, h := sharedHost(d, Rules{})
	var ticket Ticket
	done := make(chan error)
	go func() { done <- h.Enter(t.Context(), &ticket) }()
	synctest.Wait()
	ticket.End()
	if err := <-done; err != ErrEnded {
		t.Error(err)
	}
}

// TestLateLease checks that a lease is released that the Pacer grants after its ticket has ended.
func TestLateLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(desk)
		d.grant = func(context.Context, time.Duration) (Lease, error) {
			time.Sleep(time.Second) // ignores the context
			return d.leaseFor(time.Minute), nil
		}
		endWhileAsking(t, d)
		d.want(t, 1, "false 0s")
	})
}

// TestRandomLeases checks that every lease is released and that only one ticket of a host asks at a
// time.
func TestRandomLeases(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 12))
			fate := make([]int, 200)
			for i := range fate {
				fate[i] = random.IntN(8)
			}
			d, n := new(desk), 0
			d.grant = func(ctx context.Context, _ time.Duration) (Lease, error) {
				d.mu.Lock()
				i := n
				n++
				d.mu.Unlock()
				select {
				case <-time.After(time.Duration(i%5) * 20 * time.Millisecond):
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
				if i%17 == 16 {
					return nil, errors.New("down")
				}
				return d.leaseFor(time.Second), nil
			}
			hosts, h := sharedHost(d, Rules{MinDelay: 10 * time.Millisecond})
			var running sync.WaitGroup
			for i, what := range fate {
				running.Go(func() {
					time.Sleep(time.Duration(i%40) * 50 * time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+what)*time.Second)
					defer cancel()
					var ticket Ticket
					defer ticket.End()
					if what%2 == 0 && h.Enter(ctx, &ticket) != nil {
						return
					}
					if what == 4 {
						time.Sleep(300 * time.Millisecond) // longer than the place of the ticket lasts
					}
					if what == 7 {
						go func() { time.Sleep(30 * time.Millisecond); ticket.End() }()
					}
					if h.Start(ctx, &ticket, what == 1) != nil || what != 1 && !ticket.OnWire() {
						return
					}
					time.Sleep(time.Duration(what) * time.Millisecond)
				})
			}
			running.Wait()
			time.Sleep(time.Minute)
			hosts.Close(nil)
			if d.most > 1 || d.granted == 0 || d.granted != len(d.released) || d.waiting != 0 {
				t.Errorf("seed %d: %d granted, %d released, %d asked at once", seed, d.granted, len(d.released), d.most)
			}
		})
	}
}

// TestLeaseIsNotLentToATicketThatAsks checks a ticket that holds a lease after StartNow and then
// waits behind a ticket that the Pacer is being asked for. The lease must be released: the other
// ticket can get its lease only from the Pacer.
func TestLeaseIsNotLentToATicketThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d *desk
		d = &desk{grant: func(ctx context.Context, _ time.Duration) (Lease, error) {
			for { // grants one lease at a time, as a real Pacer does
				d.mu.Lock()
				free := d.granted == len(d.released)
				d.mu.Unlock()
				if free {
					return d.leaseFor(time.Minute), nil
				}
				time.Sleep(time.Millisecond)
			}
		}}
		_, h := sharedHost(d, Rules{MinDelay: time.Second})
		ctx := t.Context()
		var before, page, other Ticket
		h.Start(ctx, &before, true)
		before.End()
		h.Enter(ctx, &page)
		h.SlowDown(time.Now(), nil, 10*time.Second)
		if _, ok := h.StartNow(time.Now(), &page, true); ok || page.lease == nil {
			t.Fatalf("started: %t, its lease: %v", ok, page.lease)
		}
		time.Sleep(10 * time.Second)
		began := time.Now()
		var all sync.WaitGroup
		all.Go(func() { h.Start(ctx, &other, true); other.End() })
		synctest.Wait()
		all.Go(func() { h.Start(ctx, &page, true); page.End() })
		all.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("both have started after %v, want about a second", took)
		}
		if d.granted != len(d.released) {
			t.Errorf("%d leases granted, %d given back: %q", d.granted, len(d.released), d.released)
		}
	})
}

// A closingLease calls Close of the registry when it is released, as a Pacer may whose failure the
// program takes as a reason to end the crawl.
type closingLease struct {
	Lease
	hosts *Hosts
}

func (l closingLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	l.hosts.Close(nil)
	l.Lease.Release(sent, delay, notBefore)
}

// TestCloseInRelease runs outside a bubble, because the time of a bubble stands still while a
// goroutine waits for a mutex.
func TestCloseInRelease(t *testing.T) {
	d := new(desk)
	hosts, h := sharedHost(d, Rules{MinDelay: time.Hour})
	d.grant = func(context.Context, time.Duration) (Lease, error) {
		return closingLease{Lease: d.leaseFor(2 * time.Hour), hosts: hosts}, nil
	}
	var ticket Ticket
	err := h.Enter(t.Context(), &ticket)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan bool)
	go func() {
		hosts.Close(nil)
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close did not return")
	}
	d.want(t, 1, "false 1h0m0s")
}

// TestInvalidLease checks that a lease that is not valid is not used, and that it is released as
// not sent.
func TestInvalidLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sendable := new(desk), time.Second
		d.grant = func(context.Context, time.Duration) (Lease, error) {
			return &briefLease{d.leaseFor(time.Minute), time.Now().Add(sendable)}, nil
		}
		_, h := sharedHost(d, Rules{MinDelay: time.Hour})
		var ticket Ticket
		h.Enter(t.Context(), &ticket)
		time.Sleep(sendable)
		h.Start(t.Context(), &ticket, true)
		d.want(t, 2, "false 1h0m0s")
		if !ticket.Valid() {
			t.Error("Start used a lease that is not valid")
		}
		time.Sleep(sendable)
		if ticket.Valid() {
			t.Error("Valid = true after the lease has become invalid")
		}
		ticket.End()
		d.want(t, 2, "false 1h0m0s", "false 1h0m0s")
	})
}

// A briefLease becomes invalid before its deadline.
type briefLease struct {
	Lease
	until time.Time
}

func (l *briefLease) Valid() bool { return time.Now().Before(l.until) }

// TestEndCancelsAcquire checks that the end of a ticket cancels the call of the Pacer for it.
func TestEndCancelsAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(desk)
		d.grant = func(ctx context.Context, _ time.Duration) (Lease, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		endWhileAsking(t, d)
	})
}

// TestStartTakesTheLeaseOfAPage checks that a request in Start takes the lease of the page that
// Enter has admitted, and that the page gets another lease.
func TestStartTakesTheLeaseOfAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(desk)
		d.grant = func(context.Context, time.Duration) (Lease, error) { return d.leaseFor(time.Minute), nil }
		_, h := sharedHost(d, Rules{MinDelay: time.Second})
		var page, robots Ticket
		h.Enter(t.Context(), &page)
		h.Start(t.Context(), &robots, true)
		d.want(t, 1)
		robots.End()
		h.Start(t.Context(), &page, true)
		page.End()
		d.want(t, 2, "true 1s", "true 1s")
	})
}
