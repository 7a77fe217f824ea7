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

// Share makes all hosts ask p before a request starts, in addition to the delays that they keep
// themselves. It must be called before any other method.
//
// A ticket then needs a lease to pass Enter. It keeps the lease until Start. Start acquires a lease
// if the ticket has none or if less than half of the time of its lease is left. Of the tickets of
// one host, only the one whose turn it is asks for a lease. A local waiter holds no lease, so it
// does not block other processes.
func (h *Hosts) Share(p Pacer) {
	h.pacer = p
	h.closing, h.end = context.WithCancelCause(context.Background())
}

// shared reports whether h asks a Pacer.
func (h *Host) shared() bool { return h.hosts.pacer != nil && !h.rules.Free }

// sharing is the state of a host's use of the Pacer.
type sharing struct {
	asking  *Ticket                 // the ticket that the Pacer is asked for now, or nil
	cancel  context.CancelCauseFunc // cancels that call
	freed   []*held                 // leases that unlock has to give back
	freeing int                     // how many leases that keep others out are being given back or are in freed
}

// held is a lease that a ticket holds.
type held struct {
	Lease
	ticket *Ticket // nil if the ticket no longer holds it
	// If until is 0, the lease has no limit, and other processes may hold one at the same time.
	from   instant
	until  instant
	sent   bool        // a request with the lease reached the transport
	passed bool        // its response led to another request, see Pass
	lapsed bool        // its request has started and was not sent in time, as another request has noticed
	timer  *time.Timer // gives the lease back, see lapseAfter; may be nil
}

// StartIf asks the Pacer only if the delay is at least alone. Only one process is to send such a
// request, and with a delay of 0 the Pacer may let several processes use the host at once. The
// crawl delay of the host may not be known yet.
const alone = time.Millisecond

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
	if lease, _ := t.lent(); lease != nil {
		return lease.Deadline()
	}
	return time.Time{}
}

// Valid reports whether no other process can use the host at the moment. The caller asks before it
// sends the request. If Valid returns false, the request must go through Start again.
func (t *Ticket) Valid() bool {
	lease, needed := t.lent()
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
		if x := t.held; x != nil && x.Lease == lease {
			x.sent = false
		}
	}
}

// lent returns the lease that t holds, or nil, and reports whether t needs one.
func (t *Ticket) lent() (lease Lease, needed bool) {
	h := t.lockHost()
	if h == nil {
		return nil, false
	}
	defer h.mu.Unlock()
	if t.held != nil {
		lease = t.held.Lease
	}
	return lease, h.shared()
}

// claim reports whether t needs no lease or holds one that lasts long enough. A ticket in Start
// takes over the lease of the ticket that Enter has admitted.
func (h *Host) claim(now instant, t *Ticket) bool {
	if !h.shared() {
		return true
	}
	if t.held == nil && t.state != waiting && h.paced != nil {
		if front := h.paced.waiting.front; front != nil && front.state == admitted {
			front.lend(t)
		}
	}
	if t.held != nil && !t.held.lasts(now) {
		h.free(t)
	}
	return t.held != nil
}

// lasts reports whether at least half of the time of x is left, which counts as enough for a
// request.
func (x *held) lasts(now instant) bool {
	return (x.until == 0 || 2*x.until.since(now) >= x.until.since(x.from)) && x.Valid()
}

// lend moves the lease of t, if it holds one, to another ticket.
func (t *Ticket) lend(to *Ticket) {
	if t.held != nil {
		to.held = t.held
		to.held.ticket = to
		t.held = nil
	}
}

// mayAsk reports whether the Pacer may be asked: no call is under way, and no lease that keeps
// others out has still to be given back.
func (h *Host) mayAsk() bool {
	s := h.paced.sharing
	return s == nil || s.asking == nil && s.freeing == 0
}

// acquire asks the Pacer for a lease for t, whose turn it is. It is called with the lock held and
// returns with it, but releases it while it waits.
func (h *Host) acquire(ctx context.Context, t *Ticket) error {
	state := t.state
	lease, err := h.ask(ctx, t)
	h.lookAgain()
	if err != nil {
		return err
	}
	now := h.hosts.now()
	t.held = &held{Lease: lease, ticket: t, from: now}
	if by := lease.Deadline(); !by.IsZero() {
		t.held.until = max(h.hosts.instant(by), 1)
	}
	if t.state != state {
		h.free(t) // t was ended while the Pacer was asked
	}
	return nil
}

// ask is the part of acquire that runs without the lock.
func (h *Host) ask(ctx context.Context, t *Ticket) (lease Lease, err error) {
	delay := h.delay(h.hosts.now())
	wanted := t.wanted
	if wanted != nil {
		delay = max(delay, alone)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.hosts.closing, func() { cancel(context.Cause(h.hosts.closing)) })
	if h.paced.sharing == nil {
		h.paced.sharing = new(sharing)
	}
	s := h.paced.sharing
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
	s := h.paced.sharing
	return s != nil && s.asking == t
}

// yield gives up the lease of t, because t has to wait. If a ticket in Start needs a lease and the
// Pacer is not being asked for one for it, that ticket takes the lease over. Otherwise the lease is
// given back; a ticket that the Pacer is being asked for can get its lease only from the Pacer. A
// lease that was passed on to t (see Pass) stays with t.
func (h *Host) yield(t *Ticket) {
	if t.held == nil || t.held.passed {
		return
	}
	if first := h.paced.urgent.front; first != nil && first != t && first.held == nil && !h.asksFor(first) {
		t.lend(first)
		first.look()
		return
	}
	h.free(t)
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
	t.lend(to)
	if to.held != nil {
		to.held.passed = true
		to.host.Store(t.host.Load())
	}
	h.leave(t)
}

// keep takes the lease from t that it keeps from Enter to Start and returns it. It returns nil if
// there is none.
func (t *Ticket) keep() *held {
	x := t.held
	if x == nil || x.sent && !x.passed || t.state > admitted {
		return nil
	}
	t.held = nil
	return x
}

// free takes its lease from t, if it holds one. unlock gives the lease back.
func (h *Host) free(t *Ticket) {
	x := t.held
	if x == nil {
		return
	}
	t.held = nil
	x.ticket = nil
	if x.timer != nil {
		x.timer.Stop()
	}
	s := h.paced.sharing
	s.freed = append(s.freed, x)
	if x.until != 0 {
		s.freeing++
	}
}

// unlock gives the freed leases back and then unlocks h.
func (h *Host) unlock() {
	if h.paced != nil && h.paced.sharing != nil {
		h.giveBack(h.paced.sharing)
	}
	h.mu.Unlock()
}

// giveBack gives the freed leases back. No ticket of this process asks for the host before the
// Pacer has its lease back.
func (h *Host) giveBack(s *sharing) {
	for len(s.freed) > 0 {
		x := s.freed[0]
		s.freed = s.freed[1:]
		h.release(x)
		if x.until != 0 {
			s.freeing--
			h.lookAgain()
		}
	}
}

// release gives x back to the Pacer. It releases the lock for the call.
func (h *Host) release(x *held) {
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
	x := t.held
	switch {
	case x == nil:
	case t.state == started:
		x.lapsed = false
		h.lapseAfter(startLease, x)
	default:
		x.sent = true
		x.passed = false
		if x.timer != nil {
			x.timer.Stop()
		}
	}
}

// lapseAfter gives x back after d if its request has not reached the transport. The timer is needed
// because this process may have no other request to the host, while other processes wait for it.
func (h *Host) lapseAfter(d time.Duration, x *held) {
	switch {
	case x.until == 0:
	case x.timer != nil:
		x.timer.Reset(d)
	default:
		x.timer = time.AfterFunc(d, func() {
			h.mu.Lock()
			defer h.unlock()
			t := x.ticket
			if t == nil || !t.lapsed(h.hosts.now()) {
				return
			}
			if t.state == admitted || t.state == started || x.lapsed {
				h.leave(t)
			}
		})
	}
}

// forsake gives back the leases of requests that have not reached the transport.
func (h *Host) forsake() {
	h.mu.Lock()
	defer h.unlock()
	if h.paced == nil || h.paced.sharing == nil {
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
