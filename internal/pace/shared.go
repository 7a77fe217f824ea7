package pace

import (
	"context"
	"errors"
	"time"
)

// A Pacer grants the starts of requests to a host to one of many processes at a time. Its contract
// is that of the root package's Pacer.
type Pacer interface {
	Acquire(ctx context.Context, host string, delay time.Duration) (Lease, error)
}

// A Lease is a host taken from the other processes for one request, as the root package says.
type Lease interface {
	Deadline() time.Time
	Valid() bool
	Release(sent bool, delay time.Duration, notBefore time.Time)
}

// Share makes all hosts ask p before a request starts, on top of what they keep themselves. It must
// be called before anything else.
//
// A ticket then needs a lease to pass Enter, which it keeps until Start, and Start takes one if
// there is none or not enough is left of it. At most one ticket of a host asks for one at a time,
// the one whose turn it is: whoever waits for his turn here keeps no other process from the host.
func (h *Hosts) Share(p Pacer) {
	h.pacer = p
	h.closing, h.end = context.WithCancelCause(context.Background())
}

// shared reports whether h asks a Pacer.
func (h *Host) shared() bool { return h.hosts.pacer != nil && !h.rules.Free }

// sharing is what a host has to do with the Pacer.
type sharing struct {
	asking  *Ticket                 // for which the Pacer is asked now; nil: it is not
	cancel  context.CancelCauseFunc // ends that
	freed   []*held                 // leases to be given back by unlock
	freeing int                     // how many of these, and of those under way, keep others out
}

// held is a lease that a ticket has.
type held struct {
	Lease
	ticket      *Ticket // nil: it has it no more
	from, until instant // until 0: no limit, and others may have one as well
	sent        bool    // a request reached the transport
	passed      bool    // and its response leads to another one, see Pass
	timer       *time.Timer
}

// alone is the least delay that is asked for where no other process may start the same: what delay
// the host asks for may not be known yet.
const alone = time.Millisecond

// StartIf is Start for what goes on the wire directly, and is perhaps not needed any more once the
// host was won from the other processes: wanted is asked then, with the host taken for this process
// alone, and its error ends the wait. Where no Pacer is asked, nor is wanted. It may be nil.
func (h *Host) StartIf(ctx context.Context, t *Ticket, wanted func() error) error {
	t.wanted = wanted
	return h.Start(ctx, t, true)
}

// Deadline returns by when the request of t must have ended, its response read; the zero time:
// there is no limit.
func (t *Ticket) Deadline() time.Time {
	if lease, _ := t.lent(); lease != nil {
		return lease.Deadline()
	}
	return time.Time{}
}

// Valid reports whether no other process may have the host meanwhile. It is asked before the
// request is sent: if it is false, that must be started anew.
func (t *Ticket) Valid() bool {
	lease, needed := t.lent()
	if !needed || lease != nil && lease.Valid() {
		return true
	}
	t.unsent(lease)
	return false
}

// unsent takes back that a request was sent with a lease that t has.
func (t *Ticket) unsent(lease Lease) {
	if h := t.lockHost(); h != nil {
		defer h.mu.Unlock()
		if x := t.held; x != nil && x.Lease == lease {
			x.sent = false
		}
	}
}

// lent returns the lease that t has, or nil, and whether it needs one.
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

// claim reports whether t has a lease that will do, if it needs one. What is urgent takes that of
// the ticket which was let in by Enter.
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

// lasts reports whether enough is left of x for a request.
func (x *held) lasts(now instant) bool {
	return (x.until == 0 || 2*x.until.since(now) >= x.until.since(x.from)) && x.Valid()
}

// lend gives t's lease, if it has one, to another ticket.
func (t *Ticket) lend(to *Ticket) {
	if t.held != nil {
		to.held, t.held = t.held, nil
		to.held.ticket = to
	}
}

// mayAsk reports whether the Pacer is not being asked for the host yet, and has it back.
func (h *Host) mayAsk() bool {
	s := h.paced.sharing
	return s == nil || s.asking == nil && s.freeing == 0
}

// acquire asks for a lease for t, whose turn it is. It is called with the lock held and returns
// with it, but gives it up meanwhile.
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
		h.free(t) // it was ended meanwhile
	}
	return nil
}

// ask is the part of acquire without the lock.
func (h *Host) ask(ctx context.Context, t *Ticket) (lease Lease, err error) {
	delay, wanted := h.delay(h.hosts.now()), t.wanted
	if wanted != nil {
		delay = max(delay, alone)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.hosts.closing, func() { cancel(context.Cause(h.hosts.closing)) })
	if h.paced.sharing == nil {
		h.paced.sharing = new(sharing)
	}
	s := h.paced.sharing
	s.asking, s.cancel = t, cancel
	h.mu.Unlock()
	defer func() {
		stop()
		cancel(nil)
		h.mu.Lock()
		s.asking, s.cancel = nil, nil
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

// errUnwanted stands for a panic.
var errUnwanted = errors.New("pace: not wanted")

// asksFor reports whether the Pacer is being asked for a lease for t.
func (h *Host) asksFor(t *Ticket) bool {
	s := h.paced.sharing
	return s != nil && s.asking == t
}

// yield parts with t's lease, since t has to wait: to what is urgent, or for good, which is what a
// ticket waits for that the Pacer is being asked for. It keeps one that was passed on to it.
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

// Pass ends t. The lease that it may have is for to, which is new and to start at the same host
// next: so no other process comes between.
func (t *Ticket) Pass(to *Ticket) {
	h := t.lockHost()
	if h == nil {
		return
	}
	defer h.unlock()
	if t.lend(to); to.held != nil {
		to.held.passed = true
		to.host.Store(h)
	}
	h.leave(t)
}

// keep returns the lease that t goes on with from Enter to Start, taken from it, or nil.
func (t *Ticket) keep() *held {
	x := t.held
	if x == nil || x.sent && !x.passed || t.state > admitted {
		return nil
	}
	t.held = nil
	return x
}

// free takes t's lease, if it has one, from it. It is given back by unlock.
func (h *Host) free(t *Ticket) {
	x := t.held
	if x == nil {
		return
	}
	t.held, x.ticket = nil, nil
	if x.timer != nil {
		x.timer.Stop()
	}
	s := h.paced.sharing
	s.freed = append(s.freed, x)
	if x.until != 0 {
		s.freeing++
	}
}

// unlock unlocks h, once the leases that were freed are given back.
func (h *Host) unlock() {
	if h.paced != nil && h.paced.sharing != nil {
		h.giveBack(h.paced.sharing)
	}
	h.mu.Unlock()
}

// giveBack gives back what was freed. Nobody here asks for the host before the Pacer has it back.
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

// release gives a lease back, without the lock.
func (h *Host) release(x *held) {
	now := h.hosts.now()
	delay, notBefore := h.delay(now), time.Time{}
	if until := h.notBefore(now); until != 0 {
		notBefore = h.hosts.time(until)
	}
	h.mu.Unlock()
	defer h.mu.Lock()
	x.Release(x.sent, delay, notBefore)
}

// dispatched takes note of what has become of t's lease, if it has one: its request was started, or
// has reached the transport.
func (h *Host) dispatched(t *Ticket) {
	switch x := t.held; {
	case x == nil:
	case t.state == started:
		h.lapseAfter(startLease, x)
	default:
		x.sent, x.passed = true, false
		if x.timer != nil {
			x.timer.Stop()
		}
	}
}

// lapseAfter gives x back after d if its request is not on its way by then: nobody here may wait
// for the host, but others do.
func (h *Host) lapseAfter(d time.Duration, x *held) {
	switch {
	case x.until == 0:
	case x.timer != nil:
		x.timer.Reset(d)
	default:
		x.timer = time.AfterFunc(d, func() {
			h.mu.Lock()
			defer h.unlock()
			if t := x.ticket; t != nil && (t.state == admitted || t.state == started) && t.lapsed(h.hosts.now()) {
				h.leave(t)
			}
		})
	}
}

// forsake gives back what is held for requests that have not reached the transport.
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
