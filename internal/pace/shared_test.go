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

// A desk is a Pacer: it gives out what its func says, and counts.
type desk struct {
	grant func(ctx context.Context, delay time.Duration) (Lease, error)

	mu       sync.Mutex
	asked    int
	waiting  int // now
	most     int // that waited at once
	granted  int
	released []string // as told to Release
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

// leaseFor returns a lease of a desk.
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

// sharedHost returns a host that asks d, in a bubble.
func sharedHost(d *desk, r Rules) (*Hosts, *Host) {
	hosts := New(func(string) *Rules { return &r })
	hosts.Share(d)
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

// What becomes of a lease, by what becomes of its ticket.
func TestWhatIsReleased(t *testing.T) {
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
		"sent directly":       {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, true); ticket.End(); ticket.End() }, "true 1s"},
		"ended when let in":   {func(t *testing.T, h *Host, ticket *Ticket) { enter(t, h, ticket); ticket.End() }, "false 1s"},
		"ended when started":  {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, false); ticket.End() }, "false 1s"},
		"lapsed when let in":  {func(t *testing.T, h *Host, ticket *Ticket) { enter(t, h, ticket); time.Sleep(time.Second) }, "false 1s"},
		"lapsed when started": {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, false); time.Sleep(startLease) }, "false 1s"},
		"closed when let in":  {func(t *testing.T, h *Host, ticket *Ticket) { enter(t, h, ticket); h.hosts.Close(nil) }, "false 1s"},
		"closed when started": {func(t *testing.T, h *Host, ticket *Ticket) { start(t, h, ticket, false); h.hosts.Close(nil) }, "false 1s"},
		"closed when sent": {func(t *testing.T, h *Host, ticket *Ticket) {
			start(t, h, ticket, true)
			h.hosts.Close(nil)
			ticket.End()
		}, "true 1s"},
		"Enter anew": {func(t *testing.T, h *Host, ticket *Ticket) {
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
		"a panic of who does not want it": {func(t *testing.T, h *Host, ticket *Ticket) {
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

// Start takes the lease of Enter if there is enough left of it.
func TestALeaseThatIsNearlyOverIsRenewed(t *testing.T) {
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

// A lease that may not be sent with any more is not used, and one that was not sent with is given
// back as such.
func TestALeaseThatIsNotValid(t *testing.T) {
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
			t.Error("it was started with a lease that had ended")
		}
		time.Sleep(sendable)
		if ticket.Valid() {
			t.Error("it may be sent too late")
		}
		ticket.End()
		d.want(t, 2, "false 1h0m0s", "false 1h0m0s")
	})
}

// A briefLease may be sent with for a shorter time than it lasts.
type briefLease struct {
	Lease
	until time.Time
}

func (l *briefLease) Valid() bool { return time.Now().Before(l.until) }

// What is urgent takes the lease of the page that was let in, which gets another one.
func TestWhatIsUrgentTakesTheLease(t *testing.T) {
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

// What is urgent gets what a page is waiting for, and the page is not forgotten.
func TestWhatIsUrgentGetsWhatAPageHasAskedFor(t *testing.T) {
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
			t.Errorf("it started after %v, the Pacer was asked %d times", at, d.asked)
		}
		robots.End()
		if at := <-done; at != 21*time.Second {
			t.Errorf("the page came in after %v", at)
		}
		page.End()
		d.want(t, 2, "true 1s", "false 1s")
	})
}

// The end of a ticket ends what the Pacer is asked for it.
func TestEndEndsTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(desk)
		d.grant = func(ctx context.Context, _ time.Duration) (Lease, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		_, h := sharedHost(d, Rules{})
		var ticket Ticket
		done := make(chan error)
		go func() { done <- h.Enter(t.Context(), &ticket) }()
		synctest.Wait()
		ticket.End()
		if err := <-done; err != ErrEnded {
			t.Error(err)
		}
	})
}

// A lease that comes when its ticket has ended is given back.
func TestALeaseThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(desk)
		d.grant = func(context.Context, time.Duration) (Lease, error) {
			time.Sleep(time.Second) // whatever the context says
			return d.leaseFor(time.Minute), nil
		}
		_, h := sharedHost(d, Rules{})
		var ticket Ticket
		done := make(chan error)
		go func() { done <- h.Enter(t.Context(), &ticket) }()
		synctest.Wait()
		ticket.End()
		if err := <-done; err != ErrEnded {
			t.Error(err)
		}
		d.want(t, 1, "false 0s")
	})
}

// Whatever happens, every lease is given back, one ticket of a host asks at a time, and no two
// requests overlap or come within the delay.
func TestLeasesAtRandom(t *testing.T) {
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
						time.Sleep(300 * time.Millisecond) // longer than its place lasts
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

// A ticket that StartNow has left with a lease has to wait behind one for which the Pacer is being
// asked: the lease is given back, since that one cannot get it any other way, and none is lost.
func TestALeaseIsNotGivenToWhoAsksForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d *desk
		d = &desk{grant: func(ctx context.Context, _ time.Duration) (Lease, error) {
			for { // as a Pacer does: one at a time
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
		if _, ok := h.StartNow(time.Now(), &page, true); ok || page.held == nil {
			t.Fatalf("started: %t, its lease: %v", ok, page.held)
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
