package backend

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"
	"github.com/gocolly/colly/v2/storage"
)

// This file reads the unexported fields of a collector.

// ErrUnsupported reports that a collector lacks an unexported field that this package reads.
var ErrUnsupported = errors.New("collyrobots: unsupported version of Colly")

// A Handle gives access to unexported fields of a collector. Its methods may be called from any
// goroutine that may call the methods of the collector.
type Handle struct {
	collector         *colly.Collector
	backend           **hidden                         // the collector's field
	found             atomic.Pointer[clientField]      // the result of the last search for the client
	requestCallbacks  *[]colly.RequestCallback         // the collector's field
	responseCallbacks *[]colly.ResponseHeadersCallback // the collector's field
	wait              **sync.WaitGroup                 // the collector's field; nil if it was not found
	guard             guard                            // see Guard
	early             early                            // see Fail
	moved             atomic.Bool                      // the backend is not the one that Open found
	released          bool                             // Release was called; guarded by installing
}

// hidden stands for Colly's unexported type of a backend. Only its address is used.
type hidden struct{ _ byte }

// A clientField is the field of a backend that holds the client.
type clientField struct {
	backend *hidden
	client  *clientPointer
}

// A clientPointer is a field that is a plain *http.Client to Colly. This package may change it
// while other goroutines read it.
type clientPointer = atomic.Pointer[http.Client]

// Open returns a Handle for c. The error wraps ErrUnsupported if c is nil, if c was not created by
// colly.NewCollector, or if this version of Colly has another layout.
func Open(c *colly.Collector) (*Handle, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: the collector is nil", ErrUnsupported)
	}
	h := &Handle{collector: c}
	var err error
	h.backend, err = field[*hidden](c, "backend", reflect.Pointer)
	if err != nil {
		return nil, err
	}
	h.requestCallbacks, err = field[[]colly.RequestCallback](c, "requestCallbacks", reflect.Slice)
	if err != nil {
		return nil, err
	}
	h.responseCallbacks, err = field[[]colly.ResponseHeadersCallback](c, "responseHeadersCallbacks", reflect.Slice)
	if err != nil {
		return nil, err
	}
	h.wait, err = field[*sync.WaitGroup](c, "wg", reflect.Pointer)
	if err != nil {
		h.wait = nil // Hold then does nothing
	}
	h.early.open(c)
	_, err = h.find()
	return h, err
}

// field returns the address of a field of c. The type of the field "backend" is not exported, so
// only its kind is compared.
func field[T any](c *colly.Collector, name string, kind reflect.Kind) (*T, error) {
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	if f.Kind() != kind || name != "backend" && f.Type() != reflect.TypeFor[T]() {
		return nil, fmt.Errorf("%w: the collector has no field %s of the expected type", ErrUnsupported, name)
	}
	return (*T)(f.Addr().UnsafePointer()), nil
}

// find looks for the client in the collector's current backend.
func (h *Handle) find() (*clientField, error) {
	backend := reflect.ValueOf(h.collector).Elem().FieldByName("backend")
	if backend.IsNil() {
		return nil, fmt.Errorf("%w: the collector has no backend; make it with colly.NewCollector", ErrUnsupported)
	}
	client := backend.Elem().FieldByName("Client")
	if !client.IsValid() || client.Type() != reflect.TypeFor[*http.Client]() || client.IsNil() {
		return nil, fmt.Errorf("%w: the backend of the collector has no Client", ErrUnsupported)
	}
	found := &clientField{
		backend: *h.backend,
		client:  (*clientPointer)(client.Addr().UnsafePointer()),
	}
	h.found.Store(found)
	return found, nil
}

// client returns the field that holds the client. It searches again if the collector has another
// backend, because Collector.Init creates one.
func (h *Handle) client() *clientPointer {
	found := h.found.Load()
	if found.backend == *h.backend {
		return found.client
	}
	now, err := h.find()
	if err != nil {
		return found.client
	}
	h.moved.Store(true)
	return now.client
}

// Moved reports whether the collector has another backend than when it was opened, because
// Collector.Init was called.
func (h *Handle) Moved() bool { return h.moved.Load() }

// Client returns the client that the collector currently sends with.
func (h *Handle) Client() *http.Client { return h.client().Load() }

// Hold makes Collector.Wait wait until release is called. It must be called while Wait waits for a
// request, and release must be called once.
func (h *Handle) Hold() (release func()) {
	if h.wait == nil || *h.wait == nil {
		return func() {}
	}
	wait := *h.wait // Collector.Init replaces it
	wait.Add(1)
	return wait.Done
}

// RequestCallbacks returns the number of OnRequest callbacks.
func (h *Handle) RequestCallbacks() int { return len(*h.requestCallbacks) }

// OnRequestFirst registers an OnRequest callback that is called before all others. No request may
// be under way.
func (h *Handle) OnRequestFirst(f colly.RequestCallback) {
	*h.requestCallbacks = slices.Insert(*h.requestCallbacks, 0, f)
}

// OnResponseFirst registers an OnResponse callback that is called before all others. No request may
// be under way. If this version of Colly keeps the callbacks elsewhere, the callback is called
// after those that were registered before.
func (h *Handle) OnResponseFirst(f colly.ResponseCallback) {
	callbacks, err := field[[]colly.ResponseCallback](h.collector, "responseCallbacks", reflect.Slice)
	if err != nil {
		h.collector.OnResponse(f)
		return
	}
	*callbacks = slices.Insert(*callbacks, 0, f)
}

// OnErrorFirst is like OnResponseFirst for an OnError callback. Requests of an earlier plugin may be
// under way, and their callbacks stay the same.
func (h *Handle) OnErrorFirst(f colly.ErrorCallback) {
	if !h.CanFail() {
		h.collector.OnError(f)
		return
	}
	lock := *h.early.lock
	lock.Lock()
	defer lock.Unlock()
	callbacks := h.early.errorCallbacks
	*callbacks = append([]colly.ErrorCallback{f}, *callbacks...)
}

// ReplaceStorage replaces the storage of the collector by the result of wrap. No request may be
// under way. It returns an error that wraps ErrUnsupported if this version of Colly keeps the storage
// elsewhere.
func (h *Handle) ReplaceStorage(wrap func(storage.Storage) storage.Storage) error {
	store, err := field[storage.Storage](h.collector, "store", reflect.Interface)
	if err != nil {
		return err
	}
	*store = wrap(*store)
	return nil
}

// Storage returns the storage of the collector, or nil if this version of Colly keeps it elsewhere.
func (h *Handle) Storage() storage.Storage {
	store, err := field[storage.Storage](h.collector, "store", reflect.Interface)
	if err != nil {
		return nil
	}
	return *store
}

// ResponseHeadersCallbacks returns the number of OnResponseHeaders callbacks.
func (h *Handle) ResponseHeadersCallbacks() int { return len(*h.responseCallbacks) }

// Debugger returns the collector's debugger. It returns nil if the collector has none, or if this
// version of Colly keeps it elsewhere.
func (h *Handle) Debugger() debug.Debugger {
	d, err := field[debug.Debugger](h.collector, "debugger", reflect.Interface)
	if err != nil {
		return nil
	}
	return *d
}

// SameDebugger reports whether a and b are the same debugger. It returns false if they cannot be
// compared.
func SameDebugger(a, b debug.Debugger) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
