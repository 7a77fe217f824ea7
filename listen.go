package collyrobots

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxEvents is how many events wait for a slow listener.
	maxEvents = 4096
	// maxEventBodies bounds the octets of the robots.txt files among them.
	maxEventBodies = 16 << 20
	// pause is for how long a listener that has heard everything is let alone: waking it for each
	// event costs more than the event.
	pause = 50 * time.Millisecond
	// lastWords is how long Close waits for listeners that have not heard everything.
	lastWords = 5 * time.Second
)

// listeners are who hears of events. While there are none, an event costs one look at all.
type listeners struct {
	all    atomic.Pointer[[]*listener] // nil: nobody listens
	mu     sync.Mutex
	closed bool
}

// any reports whether anybody listens: if not, there is no need to make an event.
func (ls *listeners) any() bool { return ls.all.Load() != nil }

// tell hands an event to everybody.
func (ls *listeners) tell(e Event) {
	if all := ls.all.Load(); all != nil {
		for _, l := range *all {
			l.put(e)
		}
	}
}

// add makes f hear of what happens from now on, until stop is called.
func (ls *listeners) add(f func(Event), log *slog.Logger) (stop func()) {
	l := newListener(f, log)
	ls.put(l)
	return func() { ls.remove(l) }
}

// put adds l, unless the listeners are closed.
func (ls *listeners) put(l *listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.closed {
		ls.set(append(ls.list(), l))
	}
}

func (ls *listeners) remove(l *listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.set(slices.DeleteFunc(ls.list(), func(other *listener) bool { return other == l }))
	l.stop()
}

// list returns a copy of who listens. ls.mu is held.
func (ls *listeners) list() []*listener {
	if all := ls.all.Load(); all != nil {
		return slices.Clone(*all)
	}
	return nil
}

// set makes all those who listen. ls.mu is held.
func (ls *listeners) set(all []*listener) {
	if len(all) == 0 {
		ls.all.Store(nil)
		return
	}
	ls.all.Store(&all)
}

// close ends it for everybody, after what has happened was told, if that does not take too long.
func (ls *listeners) close() {
	ls.mu.Lock()
	all := ls.list()
	ls.closed = true
	ls.set(nil)
	ls.mu.Unlock()
	late := time.NewTimer(lastWords)
	defer late.Stop()
	for _, l := range all {
		if l.called || l.drain(late.C) {
			continue
		}
		l.log.Warn("a listener has not heard of all events before Close", "count", l.stop())
		late.Reset(0) // for the others, which have had the same time
	}
}

// A listener is one function that hears of events, and those that it has not heard of yet.
type listener struct {
	f      func(Event)
	log    *slog.Logger
	called bool          // f is only called by deliver, and by no goroutine of the listener's own
	hurry  chan struct{} // has an element if the pause is to end
	idle   chan struct{} // after drain: has an element once all was heard

	mu      sync.Mutex
	next    []Event // wait to be heard
	batch   []Event // is being heard, from at on
	at      int
	bodies  int // octets of the robots.txt files in both
	missed  int
	running bool // a goroutine is at it
	stopped bool // nothing is to be heard any more
	ending  bool // idle is waited for
	panics  bool // it has panicked
}

func newListener(f func(Event), log *slog.Logger) *listener {
	return &listener{f: f, log: log, hurry: make(chan struct{}, 1), idle: make(chan struct{}, 1)}
}

// deliver calls f with all events that wait, unless another goroutine is doing that. It is for a
// listener with called set, and l may be nil.
func (l *listener) deliver() {
	if l == nil || !l.begin() {
		return
	}
	over := false
	defer func() {
		if !over { // f has ended its goroutine, as a test does that fails
			l.mu.Lock()
			defer l.mu.Unlock()
			l.running = false
		}
	}()
	for l.hear() || !l.leave() {
	}
	over = true
}

// begin reports whether the caller is to call f now: there are events, and no other goroutine calls
// f.
func (l *listener) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running || l.waiting() == 0 && l.missed == 0 {
		return false
	}
	l.running = true
	return true
}

// put adds an event to those that wait.
func (l *listener) put(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	if l.waiting() >= maxEvents || l.bodies > 0 && l.bodies+len(e.Body) > maxEventBodies {
		l.missed++
		return
	}
	l.tellMissed()
	l.next = append(l.next, e)
	l.bodies += len(e.Body)
	switch {
	case l.called:
	case !l.running:
		l.running = true
		go l.run()
	case l.waiting() == maxEvents/2:
		l.hurryUp()
	}
}

// hurryUp ends the pause.
func (l *listener) hurryUp() {
	select {
	case l.hurry <- struct{}{}:
	default:
	}
}

// waiting returns how many events are to be heard. l.mu is held.
func (l *listener) waiting() int { return len(l.next) + len(l.batch) - l.at }

// tellMissed says how many events were dropped before the next one. l.mu is held.
func (l *listener) tellMissed() {
	if l.missed > 0 {
		l.next = append(l.next, Event{Kind: EventMissed, Time: time.Now(), Count: l.missed})
		l.missed = 0
	}
}

// run calls f until there has been nothing to hear for a pause. f may end its goroutine, as a test
// does that fails: then another one goes on.
func (l *listener) run() {
	over := false
	defer func() {
		if !over {
			go l.run()
		}
	}()
	for l.hear() || !l.leave() {
		select {
		case <-time.After(pause):
		case <-l.hurry:
		}
	}
	over = true
}

// hear calls f with all that waits, and reports whether there was anything.
func (l *listener) hear() (heard bool) {
	for {
		e, ok := l.take()
		if !ok {
			return heard
		}
		heard = true
		l.call(e)
	}
}

// take returns the next event to be heard, if there is one.
func (l *listener) take() (Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == len(l.batch) {
		if len(l.next) == 0 {
			l.tellMissed()
		}
		l.batch, l.next, l.at = l.next, l.batch[:0], 0
	}
	if l.stopped || len(l.batch) == 0 {
		return Event{}, false
	}
	e := l.batch[l.at]
	l.batch[l.at] = Event{}
	l.at++
	l.bodies -= len(e.Body)
	return e, true
}

// leave reports whether nothing is left to hear. Then nobody is at it any more.
func (l *listener) leave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped && (l.waiting() > 0 || l.missed > 0) {
		return false
	}
	l.batch, l.next, l.at, l.bodies, l.running = nil, nil, 0, 0, false
	if l.ending {
		l.idle <- struct{}{}
		l.ending = false
	}
	return true
}

// call calls f.
func (l *listener) call(e Event) {
	defer func() {
		if v := recover(); v != nil && !l.panics {
			l.panics = true
			l.log.Error("a listener panicked: it goes on hearing of events, and this is not said again", "panic", v)
		}
	}()
	l.f(e)
}

// stop drops what was not heard, and returns how much that is.
func (l *listener) stop() (dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.hurryUp()
	return l.waiting()
}

// drain waits until all was heard, and reports whether it was before it is too late.
func (l *listener) drain(late <-chan time.Time) bool {
	l.mu.Lock()
	l.ending = l.running
	running := l.running
	l.mu.Unlock()
	if !running {
		l.stop()
		return true
	}
	l.hurryUp()
	select {
	case <-l.idle:
		l.stop()
		return true
	case <-late:
		return false
	}
}
