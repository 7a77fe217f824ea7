package fanout

import (
	"sync"
	"time"
)

const (
	// maxEvents is the maximum number of events in the queue of a listener. In a lossless queue there
	// may also be one event of each sender that waits.
	maxEvents = 4096
	// maxBytes is the maximum size of the events in a queue. A single event may be larger.
	maxBytes = 16 << 20
	// pause is how long the goroutine of a listener sleeps when the queue is empty. Waking it for
	// each event would cost more than the event itself.
	pause = 50 * time.Millisecond
)

// A Listener is a function and the queue of events that it has not been called with.
type Listener[E any] struct {
	config[E]
	f        func(E)
	onDemand bool          // f is called by Deliver only
	lossless bool          // put drops no event; the sender calls awaitRoom after it
	wake     chan struct{} // has an element if the pause must end now

	// mu protects the fields below it, except panicked.
	mu       sync.Mutex
	room     sync.Cond     // with lossless: an event has left the queue, or l has stopped
	batch    []E           // the front of the queue, from the index next on
	next     int           // the index in batch of the next event
	tail     []E           // the end of the queue
	bytes    int           // the size of the events in the queue
	missed   int           // events that were dropped because the queue was full, and not reported yet
	running  bool          // a goroutine calls f
	stopped  bool          // f is not called again
	panicked bool          // f has panicked; used only by the goroutine that calls f
	idle     chan struct{} // if not nil, closed when f was called with all events
}

func newListener[E any](f func(E), c config[E], onDemand bool) *Listener[E] {
	l := &Listener[E]{config: c, f: f, onDemand: onDemand, wake: make(chan struct{}, 1)}
	l.room.L = &l.mu
	return l
}

// put adds e to the queue. If the queue is full and not lossless, e is dropped.
func (l *Listener[E]) put(e E) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	if !l.lossless && l.full(e) {
		l.missed++
		return
	}
	l.pushMissed()
	l.push(e)
	switch {
	case l.onDemand:
	case !l.running:
		l.running = true
		go l.run()
	case l.waiting() == maxEvents/2:
		l.endPause()
	}
}

// awaitRoom waits while the queue is overfull.
func (l *Listener[E]) awaitRoom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.stopped && l.overfull() {
		l.room.Wait()
	}
}

// overfull reports whether the queue has more events than it should. l.mu is held.
func (l *Listener[E]) overfull() bool {
	n := l.waiting()
	return n > maxEvents || n > 1 && l.bytes > maxBytes
}

// full reports whether the queue has no room for e. l.mu is held.
func (l *Listener[E]) full(e E) bool {
	return l.waiting() >= maxEvents || l.bytes > 0 && l.bytes+l.size(e) > maxBytes
}

// waiting returns the number of events in the queue. l.mu is held.
func (l *Listener[E]) waiting() int { return len(l.batch) - l.next + len(l.tail) }

// left is like waiting, for a caller that does not hold l.mu.
func (l *Listener[E]) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting()
}

// push appends e to the queue. l.mu is held.
func (l *Listener[E]) push(e E) {
	l.tail = append(l.tail, e)
	l.bytes += l.size(e)
}

// pushMissed appends the event that says how many events were dropped, if there are any. l.mu is
// held.
func (l *Listener[E]) pushMissed() {
	if l.missed > 0 {
		l.push(l.missedEvent(l.missed))
		l.missed = 0
	}
}

func (l *Listener[E]) endPause() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run calls f with the events in the queue and returns when the queue was empty for a pause.
func (l *Listener[E]) run() {
	finished := false
	defer func() {
		if !finished { // f has ended the goroutine, as T.FailNow does
			go l.run()
		}
	}()
	for l.callAll() || !l.finish() {
		select {
		case <-time.After(pause):
		case <-l.wake:
		}
	}
	finished = true
}

// Deliver calls f, on the goroutine of the caller, with the events in the queue. It returns at once
// if another call of Deliver is still running.
func (l *Listener[E]) Deliver() {
	if !l.begin() {
		return
	}
	finished := false
	defer func() {
		if !finished { // f has ended the goroutine, as T.FailNow does
			l.mu.Lock()
			defer l.mu.Unlock()
			l.running = false
		}
	}()
	for l.callAll() || !l.finish() {
	}
	finished = true
}

// begin reports whether there are events and no other goroutine calls f. If so, the caller must
// call f with them.
func (l *Listener[E]) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running || l.waiting() == 0 && l.missed == 0 {
		return false
	}
	l.running = true
	return true
}

// callAll calls f with each event in the queue. It reports whether there was one.
func (l *Listener[E]) callAll() (called bool) {
	for {
		e, ok := l.take()
		if !ok {
			return called
		}
		l.call(e)
		called = true
	}
}

// take removes the first event from the queue. ok is false if the queue is empty or l has stopped.
func (l *Listener[E]) take() (e E, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == len(l.batch) {
		if len(l.tail) == 0 {
			l.pushMissed()
		}
		l.batch, l.tail = l.tail, l.batch[:0]
		l.next = 0
	}
	if l.stopped || len(l.batch) == 0 {
		return e, false
	}
	e = l.batch[l.next]
	clear(l.batch[l.next : l.next+1]) // the queue no longer refers to what e refers to
	l.next++
	l.bytes -= l.size(e)
	l.room.Broadcast()
	return e, true
}

// call calls f with e. It logs only the first panic.
func (l *Listener[E]) call(e E) {
	defer func() {
		if v := recover(); v != nil && !l.panicked {
			l.panicked = true
			l.log.Error("listener panicked, it stays registered and further panics are not logged", "panic", v)
		}
	}()
	l.f(e)
}

// finish reports whether the queue is empty or l has stopped. If so, it frees the queue, and the
// calling goroutine must not call f again.
func (l *Listener[E]) finish() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped && (l.waiting() > 0 || l.missed > 0) {
		return false
	}
	l.batch = nil
	l.tail = nil
	l.next = 0
	l.bytes = 0
	l.running = false
	if l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
	return true
}

// stop drops the events in the queue, and all later ones. It returns the number of events in the
// queue.
func (l *Listener[E]) stop() (dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.room.Broadcast()
	l.endPause()
	return l.waiting()
}

// drain waits until f was called with all events in the queue, and then stops l. It returns false,
// without stopping l, if it receives from timeout before that.
func (l *Listener[E]) drain(timeout <-chan time.Time) bool {
	l.mu.Lock()
	running := l.running
	idle := make(chan struct{})
	l.idle = idle
	l.mu.Unlock()
	if running {
		l.endPause()
		select {
		case <-idle:
		case <-timeout:
			return false
		}
	}
	l.stop()
	return true
}
