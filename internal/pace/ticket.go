package pace

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A Ticket is the place of one request at a host. The zero Ticket is ready for Enter or Start. A
// ticket that has ended may be used again; Enter and Start end whatever the ticket still holds. A
// Ticket must not be copied after first use. It is meant to be a field of the caller's own record
// of the request: hosts keep pointers to a ticket from Enter or Start until it ends, and none
// afterwards.
//
// Enter and Start of one ticket must not run at the same time. All other methods may be called at
// any time from any goroutine. To reuse the record, end the ticket, make sure that no call with it
// is running or will still come (a late End would end the place of the next request), and set it to
// Ticket{}.
type Ticket struct {
	host       atomic.Pointer[Host] // where it was last used; the lock of its group guards the other fields
	prev, next *Ticket              // in the list of its state
	wake       chan struct{}        // holds one signal to check again; nil if the ticket never had to wait
	expiry     instant              // when its place expires; 0 if it does not
	at         instant
	gap        time.Duration // the time from the moment before to at; 0 if there was none
	delay      time.Duration // in force when it started
	incident   uint32        // the number of complaints of the host when it started
	state      state
	direct     bool         // it goes on the wire as soon as it has started
	judged     bool         // the estimator has already used its response
	measured   bool         // measure was called for it
	lease      *heldLease   // the lease that it holds, or nil
	wanted     func() error // see Host.StartIf
	waits      func() error // see WaitWhile; may be nil
	obeyed     *crawlDelay  // see Host.Obey; may be nil
	renews     bool         // see Renew
	mayExpire  bool         // see Expires
	ifAway     error        // see GiveUpIfAway; may be nil
}

// A state says what a ticket holds.
type state uint8

const (
	idle     state = iota // nothing
	waiting               // a place in the queue of Enter
	admitted              // the front of that queue, with the turn of the host
	urgent                // a place in the queue of Start
	started               // a place on the wire that expires unless the request reaches the transport
	onWire                // a place on the wire
)

// ErrEnded is the error of Enter and Start if the ticket was ended while it waited.
var ErrEnded = errors.New("the ticket was ended while it waited")

// Renew records that the request of t reads a robots.txt of the host. As long as t waits or is on
// the wire, no crawl delay of the host expires. Renew must be called before Enter and Start.
func (t *Ticket) Renew() { t.renews = true }

// Expires records that the caller may forget to call End. The place of t then also expires under
// Rules.MaxInFlightPerHost. Expires must be called before Enter and Start.
func (t *Ticket) Expires() { t.mayExpire = true }

// WaitWhile makes Enter wait only as long as f returns nil. If f returns an error, Enter returns
// it. Enter calls f before t waits, when the turn of t may have come, and when a request of the
// host has ended. WaitWhile must be called before Enter.
//
// f must return quickly, and must not call the host or the ticket. It is called under the lock of the
// host, so such a call would wait for that lock forever.
func (t *Ticket) WaitWhile(f func() error) { t.waits = f }

// GiveUpIfAway makes Start return err as soon as the host is away, see Host.IsAway. If err is nil, Start
// goes on waiting. GiveUpIfAway must be called before Start.
func (t *Ticket) GiveUpIfAway(err error) { t.ifAway = err }

// stopsWaiting returns the error that ends the wait of t at now, or nil if t goes on waiting.
func (g *Group) stopsWaiting(now instant, t *Ticket) error {
	switch {
	case t.state == waiting && t.waits != nil:
		return t.waits()
	case t.state == urgent && t.ifAway != nil && g.isAway(now):
		return t.ifAway
	}
	return nil
}

// obeys reports whether t keeps d in force.
func (t *Ticket) obeys(d *crawlDelay) bool { return t.renews || t.obeyed == d }

// OnWire records that the transport has the request and that End will follow. The delay counts from
// this moment until Sent reports a better one. OnWire reports whether t has started and has not
// ended or expired, and is not Late. If it returns false, the request must first go through Start.
func (t *Ticket) OnWire() bool {
	g := t.lock()
	if g == nil {
		return false
	}
	defer g.unlock()
	if t.state == started {
		at := t.at
		if !g.plain() {
			at = g.registry.now()
		}
		if g.late(at, t) {
			g.leave(t)
			return false
		}
		t.state = onWire
		t.expiry = g.expiry(at, t)
		g.sent(at, t)
		g.dispatched(t)
	}
	return t.state == onWire
}

// Late reports whether the delay would not be kept if t reached the wire now, because other
// requests have reached it since t started. This can happen where several requests may be in
// flight. The caller asks before it sends the request. After true, t holds nothing, as if it had
// not started, and the request must go through Start again.
func (t *Ticket) Late() bool {
	h := t.host.Load()
	if h == nil || h.own.plain() {
		return false
	}
	g := t.lock()
	if g == nil {
		return false
	}
	defer g.unlock()
	now := g.registry.now()
	if t.state != onWire || !g.late(now, t) {
		g.sent(now, t) // so that no other request starts before it is written
		return false
	}
	t.state = started
	g.leave(t)
	return true
}

// A Start says how a request went on the wire.
type Start struct {
	At     time.Time          // when it was started, or sent
	Gap    time.Duration      // since the moment of the request before it; 0 for the first request
	Delay  time.Duration      // in force when it started; 0 if there was none
	Source report.DelaySource // of Delay
	Line   int                // the line of robots.txt, if that is the Source
	Group  string             // the name of the group that shares the pace; "" if the host is paced alone
}

// Start returns how t, which has started, went on the wire. The result stays valid after t has
// ended, until t is used again.
func (t *Ticket) Start() Start {
	g := t.lock()
	if g == nil {
		return Start{}
	}
	defer g.mu.Unlock()
	return g.startOf(t)
}

// startOf returns the Start of t. g is locked.
func (g *Group) startOf(t *Ticket) Start {
	s := Start{At: g.registry.time(t.at), Gap: t.gap, Delay: t.delay}
	s.Source, s.Line = g.cause(t.at, t.delay)
	if g.paced != nil && g.paced.members != nil {
		s.Group = g.name
	}
	return s
}

// Report is like Start, for a log of all starts. Gap is the time since the latest start that Report has
// returned before for the host, and not since the request before, which may not be in the log (yet). Gap
// is 0 if Report has returned no start before, and negative if the start of t is earlier.
func (t *Ticket) Report() Start {
	g := t.lock()
	if g == nil {
		return Start{}
	}
	defer g.mu.Unlock()
	s := g.startOf(t)
	s.Gap = 0
	if g.reported != 0 {
		s.Gap = time.Duration(t.at - g.reported)
	}
	g.reported = max(g.reported, t.at)
	return s
}

// Sent records that the request reached the wire at now, when its headers were written. The delay
// counts from that moment, so that a slow dial does not shorten the gap that the server sees. Sent
// may be called again if a later moment turns out to be the true one. It does nothing if t is not
// in flight.
func (t *Ticket) Sent(now time.Time) {
	if g := t.lock(); g != nil {
		defer g.mu.Unlock()
		g.sent(g.registry.instant(now), t)
	}
}

// NotSent records that the request of t, which the transport has, is over and was never written.
// Neither the request nor the gap before it is then counted. The caller must call End afterwards.
func (t *Ticket) NotSent() {
	g := t.lock()
	if g == nil {
		return
	}
	defer g.mu.Unlock()
	if t.state == onWire {
		t.state = started
		g.notSent(t)
	}
}

// End gives back whatever t holds: its place in a queue or on the wire. A ticket that has not
// started does not delay the next request. If t holds nothing, End does nothing.
func (t *Ticket) End() {
	if g := t.lock(); g != nil {
		defer g.unlock()
		g.leave(t)
	}
}

// lock locks and returns the group of the host of t. It returns nil if t was never used with a host.
func (t *Ticket) lock() *Group {
	for {
		h := t.host.Load()
		if h == nil {
			return nil
		}
		g := h.group()
		g.mu.Lock()
		if g == h.group() && h == t.host.Load() {
			return g
		}
		g.mu.Unlock() // t has just been moved to another host, or h to another group
	}
}

// expired reports whether the place of t has expired: it was not used, or its request did not end,
// in time.
func (t *Ticket) expired(now instant) bool { return t.expiry != 0 && t.expiry <= now }

// ensureWake makes t.wake if it is nil.
func (t *Ticket) ensureWake() {
	if t.wake == nil {
		t.wake = make(chan struct{}, 1)
	}
}

// wakeUp makes the goroutine that waits with t, if there is one, check whether t may go on.
func (t *Ticket) wakeUp() {
	if t.wake == nil {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// sleep returns nil after d or when t is woken. If d is 0, only the latter applies. It returns the
// cause of ctx when ctx ends, and the error of Close when the registry is closed.
func (t *Ticket) sleep(ctx context.Context, hosts *Hosts, d time.Duration) error {
	var elapsed <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-elapsed:
	case <-t.wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-hosts.done:
		return hosts.err
	}
	return nil
}
