// Package backend puts a client of its own into a Colly collector: the one place through which
// every request of the collector passes, redirect hops included.
//
// Colly has no hook for a redirect hop and no getter for its client, transport or redirect handler,
// so a plugin that must see every request on the wire has to look inside. This package is the only
// place that does. It reads unexported fields by reflection, once for each collector, and says so
// with an error where Colly's layout is not the one it knows.
//
// The user's client is never written to. The collector's backend gets a [Seam]: a client that is a
// copy of the user's but for its transport and its redirect check, which ask a [Governor] and then
// do what the user's would. What the user changes later counts, whether on his own client or
// through the collector's setters.
package backend

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
)

// ErrLayout means that the collector does not hold its client where Colly v2 holds it.
var ErrLayout = errors.New("backend: the collector's http.Client is out of reach")

// A Handle reaches what a collector hides. Its methods may be called from any goroutine that may
// call the collector's own.
type Handle struct {
	collector      *colly.Collector
	backend        **hidden                 // the collector's field
	place          atomic.Pointer[place]    // where the client was when it was last looked for
	onRequest      *[]colly.RequestCallback // the collector's fields
	onResponseHead *[]colly.ResponseHeadersCallback
	wait           **sync.WaitGroup // nil: out of reach
	moved          atomic.Bool      // the backend is not the one of Open
	released       bool             // guarded by installing
}

// hidden is Colly's backend, of which only the address is used.
type hidden struct{ _ byte }

// A place is where a backend holds its client.
type place struct {
	backend *hidden
	client  *slot
}

// A slot is the field of a backend that has its client, which is no more than a pointer to Colly.
type slot = atomic.Pointer[http.Client]

// Open reaches into c. The error wraps ErrLayout: c is nil, was not made by colly.NewCollector, or
// is of another Colly than the one this was written for.
func Open(c *colly.Collector) (*Handle, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: no collector", ErrLayout)
	}
	backend, err := field[*hidden](c, "backend", reflect.Pointer)
	if err != nil {
		return nil, err
	}
	h := &Handle{collector: c, backend: backend}
	if h.onRequest, err = field[[]colly.RequestCallback](c, "requestCallbacks", reflect.Slice); err != nil {
		return nil, err
	}
	if h.onResponseHead, err = field[[]colly.ResponseHeadersCallback](c, "responseHeadersCallbacks", reflect.Slice); err != nil {
		return nil, err
	}
	if h.wait, err = field[*sync.WaitGroup](c, "wg", reflect.Pointer); err != nil {
		h.wait = nil // Wait then waits for less
	}
	_, err = h.find()
	return h, err
}

// field returns the address of a field of c.
func field[T any](c *colly.Collector, name string, kind reflect.Kind) (*T, error) {
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	if f.Kind() != kind || name != "backend" && f.Type() != reflect.TypeFor[T]() {
		return nil, fmt.Errorf("%w: it has no %s", ErrLayout, name)
	}
	return (*T)(f.Addr().UnsafePointer()), nil
}

// find looks for the client.
func (h *Handle) find() (*place, error) {
	backend := reflect.ValueOf(h.collector).Elem().FieldByName("backend")
	if backend.IsNil() {
		return nil, fmt.Errorf("%w: it has no backend", ErrLayout)
	}
	client := backend.Elem().FieldByName("Client")
	if !client.IsValid() || client.Type() != reflect.TypeFor[*http.Client]() || client.IsNil() {
		return nil, fmt.Errorf("%w: its backend has no Client", ErrLayout)
	}
	p := &place{*h.backend, (*slot)(client.Addr().UnsafePointer())}
	h.place.Store(p)
	return p, nil
}

// slot returns where the client is: Collector.Init gives the collector another backend.
func (h *Handle) slot() *slot {
	p := h.place.Load()
	if p.backend == *h.backend {
		return p.client
	}
	if found, err := h.find(); err == nil {
		h.moved.Store(true)
		return found.client
	}
	return p.client
}

// Moved reports whether the collector has another backend than when it was opened: Collector.Init
// was called.
func (h *Handle) Moved() bool { return h.moved.Load() }

// Client returns the client that the collector sends with now.
func (h *Handle) Client() *http.Client { return h.slot().Load() }

// Hold makes Collector.Wait wait until release is called, once. It is for a time when Wait waits
// for a request.
func (h *Handle) Hold() (release func()) {
	if h.wait == nil || *h.wait == nil {
		return func() {}
	}
	wait := *h.wait // Collector.Init replaces it
	wait.Add(1)
	return wait.Done
}

// RequestCallbacks returns how many callbacks OnRequest has.
func (h *Handle) RequestCallbacks() int { return len(*h.onRequest) }

// ResponseHeadersCallbacks returns how many callbacks OnResponseHeaders has.
func (h *Handle) ResponseHeadersCallbacks() int { return len(*h.onResponseHead) }
