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

// asksPacer reports whether h asks a Pacer.
func (h *Host) asksPacer() bool { return h.hosts.pacer != nil && !h.rules.Free }

// leasing is the state of a host's use of the Pacer.
type leasing struct {
	asking   *Ticket                 // the ticket that the Pacer is asked for now, or nil
	cancel   context.CancelCauseFunc // cancels that call
	dropped  []*heldLease            // leases that unlock has to give back
	blocking int                     // the leases that keep other processes out, and that the Pacer has not got back yet
}

// A heldLease is a lease that a ticket holds.
type heldLease struct {
	Lease
	ticket *Ticket // nil if the ticket no longer holds it
	// If until is 0, the lease has no limit, and other processes may hold one at the same time.
	from    instant
	until   instant
	sent    bool        // a request with the lease reached the transport
	passed  bool        // its response led to another request, see Pass
	overdue bool        // its request has started and was not sent in time, as another request has noticed
	timer   *time.Timer // gives the lease back, see giveBackAfter; may be nil
}

// StartIf asks the Pacer only if the delay is at least alone. Only one process is to send such a
// request, and with a delay of 0 the Pacer may let several processes use the host at once. The
// crawl delay of the host may not be known yet.
const exclusiveDelay = time.Millisecond

// StartIf is like Start for a request that goes on the wire directly and that may no longer be
// needed when the Pacer has granted the host. wanted may be nil. If a Pacer is asked, StartIf calls
// wanted after the lease was granted to this process alone. An error of wanted ends the wait. If no
// Pacer is asked, wanted is not called.
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
	if h := t.lockHost(); h != nil {
		defer h.mu.Unlock()
		if x := t.lease; x != nil && x.Lease == lease {
			x.sent = false
		}
	}
}

// currentLease returns the lease that t holds, or nil, and reports whether t needs one.
func (t *Ticket) currentLease() (lease Lease, needed bool) {
	h := t.lockHost()
	if h == nil {
		return nil, false
	}
	defer h.mu.Unlock()
	if t.lease != nil {
		lease = t.lease.Lease
	}
	return lease, h.asksPacer()
}

// ensureLease reports whether t needs no lease or holds one that lasts long enough. A ticket in Start
// takes over the lease of the ticket that Enter has admitted.
func (h *Host) ensureLease(now instant, t *Ticket) bool {
	if !h.asksPacer() {
		return true
	}
	if t.lease == nil && t.state != waiting && h.paced != nil {
		if front := h.paced.waiting.front; front != nil && front.state == admitted {
			front.moveLease(t)
		}
	}
	if t.lease != nil && !t.lease.lasts(now) {
		h.dropLease(t)
	}
	return t.lease != nil
}

// lasts reports whether at least half of the time of x is left, which counts as enough for a
// request.
func (x *heldLease) lasts(now instant) bool {
	return (x.until == 0 || 2*x.until.since(now) >= x.until.since(x.from)) && x.Valid()
}

// moveLease moves the lease of t, if it holds one, to another ticket.
func (t *Ticket) moveLease(to *Ticket) {
	if t.lease != nil {
		to.lease = t.lease
		to.lease.ticket = to
		t.lease = nil
	}
}

// mayAsk reports whether the Pacer may be asked: no call is under way, and no lease that keeps
// others out has still to be given back.
func (h *Host) mayAsk() bool {
	s := h.paced.leasing
	return s == nil || s.asking == nil && s.blocking == 0
}

// acquire asks the Pacer for a lease for t, whose turn it is. It is called with the lock held and
// returns with it, but releases it while it waits.
func (h *Host) acquire(ctx context.Context, t *Ticket) error {
	state := t.state
	lease, err := h.ask(ctx, t)
	h.wakeNext()
	if err != nil {
		return err
	}
	now := h.hosts.now()
	t.lease = &heldLease{Lease: lease, ticket: t, from: now}
	if by := lease.Deadline(); !by.IsZero() {
		t.lease.until = max(h.hosts.instant(by), 1)
	}
	if t.state != state {
		h.dropLease(t) // t was ended while the Pacer was asked
	}
	return nil
}

// ask is the part of acquire that runs without the lock.
func (h *Host) ask(ctx context.Context, t *Ticket) (lease Lease, err error) {
	delay := h.delay(h.hosts.now())
	wanted := t.wanted
	if wanted != nil {
		delay = max(delay, exclusiveDelay)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.hosts.closing, func() { cancel(context.Cause(h.hosts.closing)) })
	if h.paced.leasing == nil {
		h.paced.leasing = new(leasing)
	}
	s := h.paced.leasing
	s.asking = t
	s.cancel = cancel
	h.mu.Unlock()
	defer func() {
		stop()
		cancel(nil)
		h.mu.Lock()
		s.asking = nil
		s.cancel = nil
	}()
	lease, err = h.hosts.pacer.Acquire(ctx, h.name, delay)
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
func (h *Host) asksFor(t *Ticket) bool {
	s := h.paced.leasing
	return s != nil && s.asking == t
}

// giveUpLease gives up the lease of t, because t has to wait. If a ticket in Start needs a lease and the
// Pacer is not being asked for one for it, that ticket takes the lease over. Otherwise the lease is
// given back; a ticket that the Pacer is being asked for can get its lease only from the Pacer. A
// lease that was passed on to t (see Pass) stays with t.
func (h *Host) giveUpLease(t *Ticket) {
	if t.lease == nil || t.lease.passed {
		return
	}
	if first := h.paced.urgent.front; first != nil && first != t && first.lease == nil && !h.asksFor(first) {
		t.moveLease(first)
		first.wakeUp()
		return
	}
	h.dropLease(t)
}

// Pass ends t and moves its lease, if it holds one, to the ticket to. The ticket to must be new and
// must start at the same host next. Because the lease is not given back, no other process can use
// the host between the two requests.
func (t *Ticket) Pass(to *Ticket) {
	h := t.lockHost()
	if h == nil {
		return
	}
	defer h.unlock()
	t.moveLease(to)
	if to.lease != nil {
		to.lease.passed = true
		to.host.Store(t.host.Load())
	}
	h.leave(t)
}

// takeLease takes the lease from t that it keeps from Enter to Start and returns it. It returns nil if
// there is none.
func (t *Ticket) takeLease() *heldLease {
	x := t.lease
	if x == nil || x.sent && !x.passed || t.state > admitted {
		return nil
	}
	t.lease = nil
	return x
}

// dropLease takes its lease from t, if it holds one. unlock gives the lease back.
func (h *Host) dropLease(t *Ticket) {
	x := t.lease
	if x == nil {
		return
	}
	t.lease = nil
	x.ticket = nil
	if x.timer != nil {
		x.timer.Stop()
	}
	s := h.paced.leasing
	s.dropped = append(s.dropped, x)
	if x.until != 0 {
		s.blocking++
	}
}

// unlock gives the freed leases back and then unlocks h.
func (h *Host) unlock() {
	if h.paced != nil && h.paced.leasing != nil {
		h.giveBack(h.paced.leasing)
	}
	h.mu.Unlock()
}

// giveBack gives the freed leases back. No ticket of this process asks for the host before the
// Pacer has its lease back.
func (h *Host) giveBack(s *leasing) {
	for len(s.dropped) > 0 {
		x := s.dropped[0]
		s.dropped = s.dropped[1:]
		h.release(x)
		if x.until != 0 {
			s.blocking--
			h.wakeNext()
		}
	}
}

// release gives x back to the Pacer. It releases the lock for the call.
func (h *Host) release(x *heldLease) {
	now := h.hosts.now()
	delay := h.delay(now)
	notBefore := time.Time{}
	if until := h.notBefore(now); until != 0 {
		notBefore = h.hosts.time(until)
	}
	h.mu.Unlock()
	defer h.mu.Lock()
	x.Release(x.sent, delay, notBefore)
}

// dispatched updates the lease of t, if it holds one, after its request was started or has reached
// the transport.
func (h *Host) dispatched(t *Ticket) {
	x := t.lease
	switch {
	case x == nil:
	case t.state == started:
		x.overdue = false
		h.giveBackAfter(startTime, x)
	default:
		x.sent = true
		x.passed = false
		if x.timer != nil {
			x.timer.Stop()
		}
	}
}

// giveBackAfter gives x back after d if its request has not reached the transport. The timer is needed
// because this process may have no other request to the host, while other processes wait for it.
func (h *Host) giveBackAfter(d time.Duration, x *heldLease) {
	switch {
	case x.until == 0:
	case x.timer != nil:
		x.timer.Reset(d)
	default:
		x.timer = time.AfterFunc(d, func() {
			h.mu.Lock()
			defer h.unlock()
			t := x.ticket
			if t == nil || !t.expired(h.hosts.now()) {
				return
			}
			if t.state == admitted || t.state == started || x.overdue {
				h.leave(t)
			}
		})
	}
}

// forsake gives back the leases of requests that have not reached the transport.
func (h *Host) forsake() {
	h.mu.Lock()
	defer h.unlock()
	if h.paced == nil || h.paced.leasing == nil {
		return
	}
	if front := h.paced.waiting.front; front != nil && front.state == admitted {
		h.leave(front)
	}
	for t := range h.inFlight.all {
		if t.state == started {
			h.leave(t)
		}
	}
}
