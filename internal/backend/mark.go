package backend

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
)

// This file finds the governor of a request, and the Trip of a context. A collector's Context
// carries a mark, which names the governor. Colly's Clone copies the Context, and every request
// inherits it.

// markKey is the key of the mark in a context. The value is the *marked itself.
type markKey struct{}

// A marked is a context with a mark.
type marked struct {
	context.Context
	governor atomic.Pointer[Governor]
}

// Value implements context.Context.
func (m *marked) Value(key any) any {
	if key == (markKey{}) {
		return m
	}
	return m.Context.Value(key)
}

// Mark returns a context that makes g the governor of its requests. It replaces the mark of an
// earlier governor, because one collector may have many of them, one after the other.
func Mark(ctx context.Context, g Governor) context.Context {
	if before, ok := ctx.(*marked); ok {
		ctx = before.Context
	}
	m := &marked{Context: ctx}
	m.governor.Store(&g)
	return m
}

// TakeOver makes g the governor in the mark of ctx if closed returns true for the current one. It
// reports whether it did. It does not change the collector's Context, which other goroutines may be
// reading.
func TakeOver(ctx context.Context, g Governor, closed func(Governor) bool) bool {
	m, ok := ctx.Value(markKey{}).(*marked)
	if !ok {
		return false
	}
	before := m.governor.Load()
	return closed(*before) && m.governor.CompareAndSwap(before, &g)
}

// Marked reports whether g is the governor in the mark of ctx.
func Marked(ctx context.Context, g Governor) bool { return governorIn(ctx) == g }

// EverMarked reports whether ctx has a mark. The mark stays when its governor is closed.
func EverMarked(ctx context.Context) bool { return governorIn(ctx) != nil }

// governorIn returns the governor in the mark of ctx, or nil.
func governorIn(ctx context.Context) Governor {
	m, ok := ctx.Value(markKey{}).(*marked)
	if !ok {
		return nil
	}
	return *m.governor.Load()
}

// governorOf returns the governor of req, or nil. The mark in the context of the request names it,
// or for a redirect the mark in the request that was redirected. If the user has replaced the
// collector's Context, there is no mark, and the governor is the one whose hook has accepted the
// request. A Seam from NewSeam has only one governor.
func (s *Seam) governorOf(req *http.Request) Governor {
	if s.only != nil {
		return s.only
	}
	if g := governorIn(req.Context()); g != nil {
		return g
	}
	if req.Response != nil && req.Response.Request != nil {
		return governorIn(req.Response.Request.Context())
	}
	return s.governorThatKnows(req.URL)
}

// governorThatKnows returns the governor whose hook has accepted a request with this URL, or nil.
func (s *Seam) governorThatKnows(u *url.URL) Governor {
	for _, g := range s.governors() {
		if g.Knows(u) {
			return g
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

// TripOf returns the Trip of the request that a transport is sending with this context, or nil if
// there is none.
func TripOf(ctx context.Context) Trip {
	t, ok := ctx.Value(transferKey{}).(*transfer)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trip
}
