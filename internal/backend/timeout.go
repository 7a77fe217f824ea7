package backend

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// This file limits the time of a transfer. The timeout is the one of the user's client, and the
// deadline is the one of the terms of the trip.

// A timeouts ends the transfers that last longer than a timeout, which is the same for all of them. So
// they end in the order in which they have begun, and one timer is enough. It is not changed when a
// transfer ends while others are under way.
type timeouts struct {
	length time.Duration // the timeout; more than 0

	// mu protects the fields below it.
	mu      sync.Mutex
	list    list.List   // of *transfer, in the order of timeoutAt
	timer   *time.Timer // fires when the time of the first transfer is up, or before that
	running bool        // the timer will fire
}

// newTimeouts returns the timeouts of a length, or nil if the length is not more than 0.
func newTimeouts(length time.Duration) *timeouts {
	if length <= 0 {
		return nil
	}
	return &timeouts{length: length}
}

// start adds t and sets its timeoutAt and its place. t.mu is held.
func (l *timeouts) start(t *transfer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.timeoutAt = time.Now().Add(l.length)
	t.place = l.list.PushBack(t)
	l.startTimer(l.length)
}

// stop removes the transfer at a place. It returns false if the time of the transfer is up.
func (l *timeouts) stop(place *list.Element) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if place.Value == nil {
		return false
	}
	l.remove(place)
	if l.list.Len() == 0 {
		l.running = !l.timer.Stop()
	}
	return true
}

// remove removes a place. mu is held.
func (l *timeouts) remove(place *list.Element) {
	l.list.Remove(place)
	place.Value = nil
}

// startTimer makes the timer fire after d, unless it is running. mu is held.
func (l *timeouts) startTimer(d time.Duration) {
	switch {
	case l.running:
		return
	case l.timer == nil:
		l.timer = time.AfterFunc(d, l.fire)
	default:
		l.timer.Reset(d)
	}
	l.running = true
}

// fire ends the transfers whose time is up. The timer calls it.
func (l *timeouts) fire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = false
	now := time.Now()
	for place := l.list.Front(); place != nil; place = l.list.Front() {
		t := place.Value.(*transfer)
		left := t.timeoutAt.Sub(now)
		if left > 0 {
			l.startTimer(left)
			return
		}
		l.remove(place)
		go t.expire()
	}
}

// expire ends the transfer because its time is up. If its request is to be sent again, that happens when
// the transport has returned, and the host is free until then.
func (t *transfer) expire() {
	t.tellFailure(t.causeOf(context.DeadlineExceeded, noHeaders))
	t.end(context.DeadlineExceeded)
}

// startTimeout starts the timeout from the beginning.
func (t *transfer) startTimeout() {
	if t.timeouts == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timeouts.start(t)
}

// stopTimeout stops the timeout. It returns false if the time is up, and timeoutAt then keeps its
// value. mu is held.
func (t *transfer) stopTimeout() bool {
	if t.place != nil && !t.timeouts.stop(t.place) {
		return false
	}
	t.timeoutAt = time.Time{}
	return true
}

// startDeadline starts the deadline of new terms, if they have one. attempts is held.
func (t *transfer) startDeadline(terms Terms) {
	t.stopDeadline()
	if terms.Deadline.IsZero() {
		return
	}
	t.mu.Lock()
	t.deadlineAt = terms.Deadline
	t.mu.Unlock()
	t.deadlineTimer = time.AfterFunc(time.Until(terms.Deadline), func() { t.end(terms.Late) })
}

// stopDeadline stops the deadline. An attempt starts it again before the request is written: if the
// deadline has passed by then, the trip is not ready, and the request waits for new terms. attempts
// is held.
func (t *transfer) stopDeadline() {
	if t.deadlineTimer == nil {
		return
	}
	t.deadlineTimer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deadlineAt = time.Time{}
}

// Deadline implements context.Context. Some transports look at the deadline of a request and not at
// Done. The deadline moves when the request waits for its host again.
func (t *transfer) Deadline() (deadline time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	deadline, ok = t.Context.Deadline()
	for _, end := range []time.Time{t.timeoutAt, t.deadlineAt} {
		if !end.IsZero() && (!ok || end.Before(deadline)) {
			deadline = end
			ok = true
		}
	}
	return deadline, ok
}

// Err implements context.Context. The context is ended by cancel, so without this method it would
// report Canceled when the time of the transfer is up.
func (t *transfer) Err() error {
	err := t.Context.Err()
	if err != nil && errors.Is(context.Cause(t.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// causeOf returns the reason for err, which a transport or a body has returned. If the time of the
// transfer is up, that is an error like the one of http.Client.Timeout, with a note that says what
// took so long. If something else has canceled the transfer, it is the cause of that. Otherwise it
// is err.
func (t *transfer) causeOf(err error, note string) error {
	if t.isLate() {
		return &timeoutError{text: err.Error() + note}
	}
	return cmp.Or(context.Cause(t.Context), err)
}

// isLate reports whether the time of the timeout is up. The timer need not have fired: a transport
// that looks at the deadline of its context may fail just before that.
func (t *transfer) isLate() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.timeoutAt.IsZero() && !time.Now().Before(t.timeoutAt)
}

// A timeoutError is like the error of the same name in net/http.
type timeoutError struct{ text string }

func (e *timeoutError) Error() string     { return e.text }
func (e *timeoutError) Timeout() bool     { return true }
func (e *timeoutError) Temporary() bool   { return true }
func (e *timeoutError) Is(err error) bool { return err == context.DeadlineExceeded }
