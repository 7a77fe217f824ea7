package pace

import (
	"context"
	"errors"
	"time"
)

// This file lets several processes share the pace of their hosts.
//
// Apart from the Pacer, everything is as in one process. A ticket whose turn it is here asks for a
// lease, and holds it until its request has ended. Enter passes the lease to Start, which checks that
// it has not expired. The sender asks once more when there is a connection (Ticket.Valid), and ends
// the exchange at the deadline of the lease. While a request for robots.txt waits for its lease,
// another process may read the file; see StartIf.
//
// A failure of the Pacer is an error of the request. It says nothing about the site.

// A Pacer grants the starts of requests at a host to one of many processes at a time. Package
// store/pacer documents the contract.
type Pacer interface {
	Acquire(ctx context.Context, host string, delay time.Duration) (Lease, error)
}

// A Lease reserves a host for one request, so that no other process may use it. Package store/pacer
// documents the contract.
type Lease interface {
	Deadline() time.Time
	Valid() bool
	Release(sent bool, delay time.Duration, notBefore time.Time)
}

// UsePacer makes all hosts ask p before a request starts, in addition to the delays that they keep
// themselves. It must be called before any other method.
//
// A ticket then needs a lease to pass Enter. It keeps the lease until Start. Start acquires a lease
// if the ticket has none or if less than half of the time of its lease is left. Of the tickets of
// one host, only the one whose turn it is asks for a lease. A local waiter holds no lease, so it
// does not block other processes.
func (h *Hosts) UsePacer(p Pacer) {
	h.pacer = p
	h.closing, h.cancelCalls = context.WithCancelCause(context.Background())
}

// asksPacer reports whether g asks a Pacer.
func (g *Group) asksPacer() bool { return g.registry.pacer != nil && !g.rules.Free }

// leasing is what a group needs to use the Pacer.
type leasing struct {
	asking  *Ticket                 // the Pacer is being asked for a lease for this ticket; may be nil
	cancel  context.CancelCauseFunc // cancels that call
	dropped []*heldLease            // leases that no ticket holds; unlock gives them back
	// blocking counts the exclusive leases that no ticket holds and that the Pacer does not have
	// back yet.
	blocking int
}

// A heldLease is a lease that a ticket holds.
type heldLease struct {
	Lease
	ticket  *Ticket     // nil if the ticket no longer holds it
	from    instant     // when the Pacer granted it
	until   instant     // its deadline; 0 if it has none
	sent    bool        // a request with the lease reached the transport
	passed  bool        // it was moved to a ticket by Pass, and that ticket is not on the wire yet
	overdue bool        // the place of its ticket has expired before the request reached the transport
	timer   *time.Timer // gives the lease back, see giveBackAfter; may be nil
}

// isExclusive reports whether no other process can have a lease of the same host as long as x lasts.
func (x *heldLease) isExclusive() bool { return x.until != 0 }

// exclusiveDelay is the shortest delay with which StartIf asks the Pacer. With a delay of 0, the Pacer
// may let several processes use the host at once, but only one of them should send the request.
const exclusiveDelay = time.Millisecond

// StartIf is like Start for a request that goes on the wire directly and that may no longer be
// needed when the Pacer grants a lease. wanted may be nil. If a Pacer is asked, StartIf calls wanted
// as soon as no other process can have a lease of the host. If wanted returns an error, StartIf gives
// the lease back and returns the error. If no Pacer is asked, wanted is not called.
func (h *Host) StartIf(ctx context.Context, t *Ticket, wanted func() error) error {
	t.wanted = wanted
	return h.Start(ctx, t, true)
}

// Deadline returns the deadline of the request of t: before that time, it must have ended, and its
// response must have been read. If there is no limit, it returns the zero time.
func (t *Ticket) Deadline() time.Time {
	if lease, _ := t.currentLease(); lease != nil {
		return lease.Deadline()
	}
	return time.Time{}
}

// Valid reports whether no other process can use the host at the moment. The caller asks before it
// sends the request. If Valid returns false, the request must go through Start again.
func (t *Ticket) Valid() bool {
	lease, needed := t.currentLease()
	if !needed || lease != nil && lease.Valid() {
		return true
	}
	t.unsent(lease)
	return false
}

// unsent records that the request of t was not sent with the lease, if t still holds it.
func (t *Ticket) unsent(lease Lease) {
	if g := t.lock(); g != nil {
		defer g.mu.Unlock()
		if x := t.lease; x != nil && x.Lease == lease {
			x.sent = false
		}
	}
}

// currentLease returns the lease that t holds, or nil, and reports whether t needs one.
func (t *Ticket) currentLease() (lease Lease, needed bool) {
	g := t.lock()
	if g == nil {
		return nil, false
	}
	defer g.mu.Unlock()
	if t.lease != nil {
		lease = t.lease.Lease
	}
	return lease, g.asksPacer()
}

// ensureLease reports whether t needs no lease or holds one that lasts long enough. A ticket in Start
// takes over the lease of the ticket that Enter has admitted.
func (g *Group) ensureLease(now instant, t *Ticket) bool {
	if !g.asksPacer() {
		return true
	}
	if t.lease == nil && t.state != waiting && g.paced != nil {
		if front := g.paced.waiting.front; front != nil && front.state == admitted {
			front.moveLease(t)
		}
	}
	if t.lease != nil && !t.lease.lasts(now) {
		g.dropLease(t)
	}
	return t.lease != nil
}

// lasts reports whether at least half of the time of x is left, which counts as enough for a
// request.
func (x *heldLease) lasts(now instant) bool {
	return (!x.isExclusive() || 2*x.until.since(now) >= x.until.since(x.from)) && x.Valid()
}

// moveLease moves the lease of t, if it holds one, to another ticket.
func (t *Ticket) moveLease(to *Ticket) {
	if t.lease != nil {
		to.lease = t.lease
		to.lease.ticket = to
		t.lease = nil
	}
}

// mayAsk reports whether the Pacer may be asked: no call is under way, and the Pacer has back all
// exclusive leases that no ticket holds.
func (g *Group) mayAsk() bool {
	s := g.paced.leasing
	return s == nil || s.asking == nil && s.blocking == 0
}

// acquire asks the Pacer for a lease for t, whose turn it is. It is called with the lock held and
// returns with it, but releases it while it waits.
func (g *Group) acquire(ctx context.Context, t *Ticket) error {
	state := t.state
	lease, err := g.ask(ctx, t)
	g.wakeNext()
	if err != nil {
		return err
	}
	now := g.registry.now()
	t.lease = &heldLease{Lease: lease, ticket: t, from: now}
	if by := lease.Deadline(); !by.IsZero() {
		t.lease.until = max(g.registry.instant(by), 1)
	}
	if t.state != state {
		g.dropLease(t) // t was ended while the Pacer was asked
	}
	return nil
}

// ask is the part of acquire that runs without the lock.
func (g *Group) ask(ctx context.Context, t *Ticket) (lease Lease, err error) {
	delay := g.delay(g.registry.now())
	wanted := t.wanted
	if wanted != nil {
		delay = max(delay, exclusiveDelay)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.registry.closing, func() { cancel(context.Cause(g.registry.closing)) })
	if g.paced.leasing == nil {
		g.paced.leasing = new(leasing)
	}
	s := g.paced.leasing
	s.asking = t
	s.cancel = cancel
	g.mu.Unlock()
	defer func() {
		stop()
		cancel(nil)
		g.mu.Lock()
		s.asking = nil
		s.cancel = nil
	}()
	lease, err = g.registry.pacer.Acquire(ctx, g.name, delay)
	if err != nil || wanted == nil {
		return lease, err
	}
	err = errUnwanted
	defer func() {
		if err != nil {
			lease.Release(false, 0, time.Time{})
		}
	}()
	err = wanted()
	return lease, err
}

// errUnwanted is the error of ask while wanted runs. It remains if wanted panics, so that the lease
// is given back.
var errUnwanted = errors.New("not wanted")

// asksFor reports whether the Pacer is being asked for a lease for t.
func (g *Group) asksFor(t *Ticket) bool {
	s := g.paced.leasing
	return s != nil && s.asking == t
}

// giveUpLease gives up the lease of t, because t has to wait. If the first ticket in Start needs a
// lease, it takes this one over, unless the Pacer is being asked for a lease for it. Otherwise the
// Pacer gets the lease back. If t has got the lease by Pass, t keeps it.
func (g *Group) giveUpLease(t *Ticket) {
	if t.lease == nil || t.lease.passed {
		return
	}
	if first := g.nextUrgent(); first != nil && first != t && first.lease == nil && !g.asksFor(first) {
		t.moveLease(first)
		first.wakeUp()
		return
	}
	g.dropLease(t)
}

// Pass ends t and moves its lease, if it holds one, to the ticket to. The ticket to must be new and
// must start at the same host next. Because the lease is not given back, no other process can use
// the host between the two requests.
func (t *Ticket) Pass(to *Ticket) {
	g := t.lock()
	if g == nil {
		return
	}
	defer g.unlock()
	t.moveLease(to)
	if to.lease != nil {
		to.lease.passed = true
		to.host.Store(t.host.Load())
	}
	g.leave(t)
}

// takeLease takes from t the lease that it holds between Enter and Start, and returns it. If t holds no
// such lease, takeLease returns nil.
func (t *Ticket) takeLease() *heldLease {
	x := t.lease
	if x == nil || x.sent && !x.passed || t.state > admitted {
		return nil
	}
	t.lease = nil
	return x
}

// dropLease takes its lease, if there is one, from t. unlock then gives the lease back.
func (g *Group) dropLease(t *Ticket) {
	x := t.lease
	if x == nil {
		return
	}
	t.lease = nil
	x.ticket = nil
	if x.timer != nil {
		x.timer.Stop()
	}
	s := g.paced.leasing
	s.dropped = append(s.dropped, x)
	if x.isExclusive() {
		s.blocking++
	}
}

// unlock gives the dropped leases back and then unlocks g.
func (g *Group) unlock() {
	if g.paced != nil && g.paced.leasing != nil {
		g.giveBack(g.paced.leasing)
	}
	g.mu.Unlock()
}

// giveBack gives the dropped leases back. As long as the Pacer does not have an exclusive lease back,
// it is not asked for another one.
func (g *Group) giveBack(s *leasing) {
	for len(s.dropped) > 0 {
		x := s.dropped[0]
		s.dropped = s.dropped[1:]
		g.release(x)
		if x.isExclusive() {
			s.blocking--
			g.wakeNext()
		}
	}
}

// release gives x back to the Pacer. It releases the lock for the call.
func (g *Group) release(x *heldLease) {
	now := g.registry.now()
	delay := g.delay(now)
	notBefore := time.Time{}
	if until := g.notBefore(now); until != 0 {
		notBefore = g.registry.time(until)
	}
	g.mu.Unlock()
	defer g.mu.Lock()
	x.Release(x.sent, delay, notBefore)
}

// dispatched updates the lease of t, if it holds one, after its request was started or has reached
// the transport.
func (g *Group) dispatched(t *Ticket) {
	x := t.lease
	switch {
	case x == nil:
	case t.state == started:
		x.overdue = false
		g.giveBackAfter(startTime, x)
	default:
		x.sent = true
		x.passed = false
		if x.timer != nil {
			x.timer.Stop()
		}
	}
}

// giveBackAfter gives x back after d if its request has not reached the transport. This needs a timer,
// because this process may have no other request to the host that would notice it.
func (g *Group) giveBackAfter(d time.Duration, x *heldLease) {
	switch {
	case !x.isExclusive():
	case x.timer != nil:
		x.timer.Reset(d)
	default:
		x.timer = time.AfterFunc(d, func() {
			g.mu.Lock()
			defer g.unlock()
			t := x.ticket
			if t == nil || !t.expired(g.registry.now()) {
				return
			}
			if t.state == admitted || t.state == started || x.overdue {
				g.leave(t)
			}
		})
	}
}

// dropUnsent gives back the leases of requests that have not reached the transport.
func (g *Group) dropUnsent() {
	g.mu.Lock()
	defer g.unlock()
	if g.paced == nil || g.paced.leasing == nil {
		return
	}
	if front := g.paced.waiting.front; front != nil && front.state == admitted {
		g.leave(front)
	}
	for t := range g.inFlight.all {
		if t.state == started {
			g.leave(t)
		}
	}
}
