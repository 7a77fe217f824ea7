package pace

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Ticket is one request's place with a host. The zero Ticket is ready for Enter or Start, and so
// is one that has ended; a later Enter or Start ends what it still holds. It must not be copied
// after first use, and is meant to be a field of the caller's own record of the request: hosts keep
// pointers to it from Enter or Start on until it ends, and none afterwards.
//
// Enter and Start of one ticket must not run at the same time. All other methods may be called at
// any time from any goroutine. To reuse the record, end the ticket, see to it that no call with it
// is running or will still come (a late End would end the next request's place), and set it to
// Ticket{}.
type Ticket struct {
	host       atomic.Pointer[Host] // where it was last used; guards, by that host's lock, the rest
	prev, next *Ticket              // in the list that state says
	wake       chan struct{}        // holds one "look again"; nil: never had to wait
	lease      instant              // when a place lapses that is not used, or never ends; 0: not by itself
	at         instant              // when it started, or was sent
	gap        time.Duration        // between the moment before and at; 0: there was none
	delay      time.Duration        // in force when it started
	incident   uint32               // how often the host had complained when it started
	state      state
	direct     bool         // goes on the wire as soon as it has started
	judged     bool         // what its answer says about the host's rate was taken note of
	held       *held        // the lease that it has; nil: none
	wanted     func() error // see Host.StartIf
	obeyed     *crawlDelay  // see Host.Obey; nil: none
	renews     bool         // see Renew
}

// A state is what a ticket holds.
type state uint8

const (
	idle     state = iota // nothing
	waiting               // a place in the line of Enter
	admitted              // the front of that line: the host's one undispatched ticket
	urgent                // a place in the line of Start
	started               // a place on the wire, leased until the transport has it
	onWire                // a place on the wire
)

// ErrEnded is why a wait ended whose ticket was ended meanwhile.
var ErrEnded = errors.New("pace: the ticket was ended while it waited")

// Renew says that t is for reading a robots.txt of the host: as long as it waits or is on the wire, no
// crawl delay of the host lapses. It must be called before Enter and Start.
func (t *Ticket) Renew() { t.renews = true }

// obeys reports whether t keeps d in force.
func (t *Ticket) obeys(d *crawlDelay) bool { return t.renews || t.obeyed == d }

// OnWire says that the transport has the request, and that End will follow. The delay counts from
// here until Sent names a better moment. It reports whether t has started and neither ended nor
// lapsed, and is not Late; if not, the request must go through Start first.
func (t *Ticket) OnWire() bool {
	h := t.lockHost()
	if h == nil {
		return false
	}
	defer h.unlock()
	if t.state == started {
		at := t.at
		if !h.plain() {
			at = h.hosts.now()
		}
		if h.late(at, t) {
			h.leave(t)
			return false
		}
		t.state, t.lease = onWire, h.longest(at)
		h.sent(at, t)
		h.dispatched(t)
	}
	return t.state == onWire
}

// Late reports whether others have reached the wire since t started, so lately that the delay would
// not be kept if t did now, as can be where several requests may be in flight. It is asked before
// the request is sent; after true t holds nothing, as if it had not started, and the request must
// go through Start once more.
func (t *Ticket) Late() bool {
	h := t.host.Load()
	if h == nil || h.plain() {
		return false
	}
	if h = t.lockHost(); h == nil {
		return false
	}
	defer h.unlock()
	if t.state != onWire || !h.late(h.hosts.now(), t) {
		return false
	}
	t.state = started
	h.leave(t)
	return true
}

// A Start is how a request went on the wire.
type Start struct {
	At    time.Time     // when it was started, or sent
	Gap   time.Duration // since the moment of the request before it; 0: it is the first
	Delay time.Duration // in force when it started; 0: none
	Cause Cause         // of Delay
	Line  int           // of robots.txt, if that is the Cause
}

// Start returns how t, which has started, did. It also holds after t has ended, until it is used
// again.
func (t *Ticket) Start() Start {
	h := t.lockHost()
	if h == nil {
		return Start{}
	}
	defer h.mu.Unlock()
	s := Start{At: h.hosts.time(t.at), Gap: t.gap, Delay: t.delay}
	s.Cause, s.Line = h.cause(t.at, t.delay)
	return s
}

// Sent says that the request reached the wire at now: its headers were written. The delay counts
// from here, so that a slow dial does not shorten the gap that the server sees. It may be called
// again if a later moment turns out to be the true one, and does nothing if t is not in flight.
func (t *Ticket) Sent(now time.Time) {
	if h := t.lockHost(); h != nil {
		defer h.mu.Unlock()
		h.sent(h.hosts.instant(now), t)
	}
}

// NotSent says that the request of t, which the transport has, is over and was never written. It is
// not counted then. End must follow.
func (t *Ticket) NotSent() {
	h := t.lockHost()
	if h == nil {
		return
	}
	defer h.mu.Unlock()
	if t.state == onWire {
		t.state = started
	}
}

// End gives back whatever t holds: its place in a line or on the wire. A ticket that has not
// started costs its host nothing. Ending a ticket that holds nothing does nothing.
func (t *Ticket) End() {
	if h := t.lockHost(); h != nil {
		defer h.unlock()
		h.leave(t)
	}
}

// lockHost locks and returns the host that t is with, or nil if it was never with one.
func (t *Ticket) lockHost() *Host {
	for {
		h := t.host.Load()
		if h == nil {
			return nil
		}
		h.mu.Lock()
		if h == t.host.Load() {
			return h
		}
		h.mu.Unlock() // it went elsewhere meanwhile
	}
}

// lapsed reports whether the place of t was not used, or its request not ended, in time.
func (t *Ticket) lapsed(now instant) bool { return t.lease != 0 && t.lease <= now }

// look makes the goroutine that waits with t, if there is one, look again.
func (t *Ticket) look() {
	if t == nil || t.wake == nil {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// sleep returns after d (0: never), when woken, or with the cause when ctx or everything ends.
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

// A list is a ring of tickets in the order in which they came. A ticket is in one list at a time.
type list struct{ front *Ticket }

func (l *list) push(t *Ticket) {
	if l.front == nil {
		l.front, t.prev, t.next = t, t, t
		return
	}
	t.prev, t.next = l.front.prev, l.front
	t.prev.next, t.next.prev = t, t
}

func (l *list) remove(t *Ticket) {
	if l.front == t {
		l.front = l.second()
	}
	t.prev.next, t.next.prev = t.next, t.prev
	t.prev, t.next = nil, nil
}

// second returns the ticket behind the front one, or nil.
func (l *list) second() *Ticket {
	if l.front == nil || l.front.next == l.front {
		return nil
	}
	return l.front.next
}

// all yields the tickets from the front on. The one that is yielded may be removed.
func (l *list) all(yield func(*Ticket) bool) {
	if l.front == nil {
		return
	}
	last := l.front.prev
	for t := l.front; ; {
		next := t.next
		if !yield(t) || t == last {
			return
		}
		t = next
	}
}
