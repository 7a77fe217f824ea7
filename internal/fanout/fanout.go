// Package fanout delivers each event to several listeners. A listener that is slow or panics does
// not delay the sender or the other listeners, unless it has asked for all events.
package fanout

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// closeWait is how long Close waits for all listeners together.
const closeWait = 5 * time.Second

// A Broadcaster sends each event to all of its listeners. Each listener has its own queue. Methods
// may be called from any goroutine, and also by listeners.
type Broadcaster[E any] struct {
	config[E]
	listeners atomic.Pointer[[]*Listener[E]] // nil if there are no listeners

	mu     sync.Mutex // held while listeners is replaced
	closed bool
}

// config is what all listeners of a Broadcaster share.
type config[E any] struct {
	missedEvent func(count int) E
	size        func(E) int
	log         *slog.Logger
}

// New returns a Broadcaster without listeners. missedEvent makes the event that tells a listener
// how many events were dropped because its queue was full. size returns the size of an event in
// bytes, which is limited for each queue. Panics of listeners are logged to log.
func New[E any](missedEvent func(count int) E, size func(E) int, log *slog.Logger) *Broadcaster[E] {
	return &Broadcaster[E]{config: config[E]{missedEvent: missedEvent, size: size, log: log}}
}

// Active reports whether there are listeners. If not, the caller does not need to make an event.
func (b *Broadcaster[E]) Active() bool { return b.listeners.Load() != nil }

// Send adds an event to the queue of each listener. Then it waits until the queues of ListenToAll are
// not overfull. All listeners have the event before it waits, so a slow one delays no other.
func (b *Broadcaster[E]) Send(e E) {
	listeners := b.listeners.Load()
	if listeners == nil {
		return
	}
	for _, l := range *listeners {
		l.put(e)
	}
	for _, l := range *listeners {
		if l.lossless {
			l.awaitRoom()
		}
	}
}

// Listen calls f, on a goroutine of its own, with each event that is sent from now on. Calling stop
// or Close ends that. After stop has returned, no call of f begins. If the Broadcaster is closed, f
// is never called.
func (b *Broadcaster[E]) Listen(f func(E)) (stop func()) {
	l := newListener(f, b.config, false)
	b.add(l)
	return func() { b.remove(l) }
}

// ListenToAll is like Listen, but no event is dropped: while the queue of f is overfull, Send waits.
// f must not wait for a goroutine that sends.
func (b *Broadcaster[E]) ListenToAll(f func(E)) (stop func()) {
	l := newListener(f, b.config, false)
	l.lossless = true
	b.add(l)
	return func() { b.remove(l) }
}

// ListenOnDemand returns a Listener that calls f only in Listener.Deliver, with each event that is
// sent from now on.
func (b *Broadcaster[E]) ListenOnDemand(f func(E)) *Listener[E] {
	l := newListener(f, b.config, true)
	b.add(l)
	return l
}

// add adds l, unless b is closed.
func (b *Broadcaster[E]) add(l *Listener[E]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.set(append(b.list(), l))
	}
}

// remove removes l and drops the events in its queue.
func (b *Broadcaster[E]) remove(l *Listener[E]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(slices.DeleteFunc(b.list(), func(other *Listener[E]) bool { return other == l }))
	l.stop()
}

// list returns a copy of the listeners. b.mu is held.
func (b *Broadcaster[E]) list() []*Listener[E] {
	if listeners := b.listeners.Load(); listeners != nil {
		return slices.Clone(*listeners)
	}
	return nil
}

// set replaces the listeners. b.mu is held.
func (b *Broadcaster[E]) set(listeners []*Listener[E]) {
	if len(listeners) == 0 {
		b.listeners.Store(nil)
		return
	}
	b.listeners.Store(&listeners)
}

// Close removes all listeners. It waits until they have been called with the events in their
// queues, but not longer than five seconds. For those of ListenToAll, it waits for as long as at
// least one call ends in each five seconds. Events that are left in a queue after that are dropped,
// and their number is logged. Listeners that are called on demand keep their queues.
func (b *Broadcaster[E]) Close() {
	b.mu.Lock()
	listeners := b.list()
	b.closed = true
	b.set(nil)
	b.mu.Unlock()
	var drained sync.WaitGroup
	for _, l := range listeners {
		if !l.onDemand {
			drained.Go(l.close)
		}
	}
	drained.Wait()
}

// close drains l for as long as Close says, and then stops it.
func (l *Listener[E]) close() {
	if !l.drainPatiently() {
		l.log.Warn("listener too slow, Close has dropped its last events", "count", l.stop())
	}
}

// drainPatiently is drain for closeWait. For a lossless listener, the time begins again when it is
// over and f was called in it.
func (l *Listener[E]) drainPatiently() bool {
	timeout := time.NewTimer(closeWait)
	defer timeout.Stop()
	left := l.left()
	for !l.drain(timeout.C) {
		before := left
		left = l.left()
		if !l.lossless || left == before {
			return false
		}
		timeout.Reset(closeWait)
	}
	return true
}
