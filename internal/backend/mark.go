package backend

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"sync/atomic"
)

// This file finds the controller of a request, and the Carriers of a context. A collector's Context
// carries a mark, which names the controller. Colly's Clone copies the Context, and every request
// inherits it.

// markKey is the key of the mark in a context. The value is the *marked itself.
type markKey struct{}

// A marked is a context with a mark.
type marked struct {
	context.Context
	controller atomic.Pointer[Controller]
}

// Value implements context.Context.
func (m *marked) Value(key any) any {
	if key == (markKey{}) {
		return m
	}
	return m.Context.Value(key)
}

// Mark returns a context that makes ctl the controller of its requests. It replaces the mark of an
// earlier controller, because one collector may have many of them, one after the other.
func Mark(ctx context.Context, ctl Controller) context.Context {
	if before, ok := ctx.(*marked); ok {
		ctx = before.Context
	}
	m := &marked{Context: ctx}
	m.controller.Store(&ctl)
	return m
}

// TakeOver makes ctl the controller in the mark of ctx if closed returns true for the current one.
// It reports whether it did. It does not change the collector's Context, which other goroutines may
// be reading.
func TakeOver(ctx context.Context, ctl Controller, closed func(Controller) bool) bool {
	m, ok := ctx.Value(markKey{}).(*marked)
	if !ok {
		return false
	}
	before := m.controller.Load()
	return closed(*before) && m.controller.CompareAndSwap(before, &ctl)
}

// Marked reports whether ctl is the controller in the mark of ctx.
func Marked(ctx context.Context, ctl Controller) bool { return controllerIn(ctx) == ctl }

// EverMarked reports whether ctx has a mark. The mark stays when its controller is closed.
func EverMarked(ctx context.Context) bool { return controllerIn(ctx) != nil }

// controllerIn returns the controller in the mark of ctx, or nil.
func controllerIn(ctx context.Context) Controller {
	m, ok := ctx.Value(markKey{}).(*marked)
	if !ok {
		return nil
	}
	return *m.controller.Load()
}

// controllerOf returns the controller of req, or nil. The mark in the context of the request names
// it, or for a redirect the mark in the request that was redirected. If the user has replaced the
// collector's Context, there is no mark, and the controller is the one whose hook has accepted the
// request. A Seam from NewSeam has only one controller.
func (s *Seam) controllerOf(req *http.Request) Controller {
	if s.only != nil {
		return s.only
	}
	if ctl := controllerIn(req.Context()); ctl != nil {
		return ctl
	}
	if req.Response != nil && req.Response.Request != nil {
		return controllerIn(req.Response.Request.Context())
	}
	return s.controllerThatKnows(req.URL)
}

// controllerThatKnows returns the controller whose hook has accepted a request with this URL, or
// nil.
func (s *Seam) controllerThatKnows(u *url.URL) Controller {
	for _, ctl := range s.controllers() {
		if ctl.Knows(u) {
			return ctl
		}
	}
	return nil
}

// transferKey is the key of a transfer in its own context.
type transferKey struct{}

// Value implements context.Context.
func (t *transfer) Value(key any) any {
	if key == (transferKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// A Carrier is a request that a transport is sending, for code that has got its context.
type Carrier struct{ t *transfer }

// Carriers yields the requests that transports are sending with this context, the innermost first. There
// are several if one Seam is in the transport of another one.
func Carriers(ctx context.Context) iter.Seq[Carrier] {
	return func(yield func(Carrier) bool) {
		for {
			t, ok := ctx.Value(transferKey{}).(*transfer)
			if !ok || !yield(Carrier{t}) {
				return
			}
			ctx = t.Context
		}
	}
}

// Use calls f with the Trip of the request, which does not end before f returns. If the request is over,
// Use returns false and does not call f. f must return quickly.
func (c Carrier) Use(f func(Trip)) bool {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	if c.t.over {
		return false
	}
	f(c.t.trip)
	return true
}

// Repeat calls Again of the Trip, whose place was given back. It waits, and then the request may be
// sent. The timeout starts again after that.
func (c Carrier) Repeat() error {
	t := c.t
	t.attempts.Lock()
	defer t.attempts.Unlock()
	if !t.again() {
		return cmp.Or(context.Cause(t), context.Canceled)
	}
	return nil
}
