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

// This file reads the unexported fields of a collector. colly_test.go checks each of them, and what
// else the plugin expects of Colly.

// ErrUnsupported reports that a collector lacks an unexported field that this package reads.
var ErrUnsupported = errors.New("collyrobots: unsupported version of Colly")

// A Handle gives access to unexported fields of a collector. Its methods may be called from any
// goroutine that may call the methods of the collector.
type Handle struct {
	fields
	collector *colly.Collector
	found     atomic.Pointer[clientField] // the result of the last search for the client
	guard     guard                       // see Guard
	early     early                       // see Fail
	moved     atomic.Bool                 // the backend is not the one that Open found
	released  bool                        // Release was called; guarded by installing
}

// fields are the addresses of the fields of a collector.
type fields struct {
	backend                  **hidden
	store                    *storage.Storage
	debugger                 *debug.Debugger
	requestCallbacks         *[]colly.RequestCallback
	responseCallbacks        *[]colly.ResponseCallback
	responseHeadersCallbacks *[]colly.ResponseHeadersCallback
	errorCallbacks           *[]colly.ErrorCallback
	scrapedCallbacks         *[]colly.ScrapedCallback
	wg                       **sync.WaitGroup
	lock                     **sync.RWMutex // guards the callbacks
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
// colly.NewCollector, or if this version of Colly has other fields.
func Open(c *colly.Collector) (*Handle, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: the collector is nil", ErrUnsupported)
	}
	h := &Handle{collector: c}
	err := h.fields.open(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	_, err = h.find()
	return h, err
}

// open finds the fields of c. The error names all that are missing.
func (f *fields) open(c *colly.Collector) error {
	return errors.Join(
		field(c, "backend", &f.backend),
		field(c, "store", &f.store),
		field(c, "debugger", &f.debugger),
		field(c, "requestCallbacks", &f.requestCallbacks),
		field(c, "responseCallbacks", &f.responseCallbacks),
		field(c, "responseHeadersCallbacks", &f.responseHeadersCallbacks),
		field(c, "errorCallbacks", &f.errorCallbacks),
		field(c, "scrapedCallbacks", &f.scrapedCallbacks),
		field(c, "wg", &f.wg),
		field(c, "lock", &f.lock),
	)
}

// field sets at to the address of a field of c. The type of the field "backend" is not exported, so
// it only has to be a pointer to a struct.
func field[T any](c *colly.Collector, name string, at **T) error {
	f := reflect.ValueOf(c).Elem().FieldByName(name)
	want := reflect.TypeFor[T]()
	switch {
	case !f.IsValid():
		return fmt.Errorf("the collector has no field %s", name)
	case f.Type() != want && (want != reflect.TypeFor[*hidden]() || f.Kind() != reflect.Pointer || f.Type().Elem().Kind() != reflect.Struct):
		return fmt.Errorf("the field %s of the collector has the type %v", name, f.Type())
	}
	*at = (*T)(f.Addr().UnsafePointer())
	return nil
}

// find looks for the client in the collector's current backend.
func (h *Handle) find() (*clientField, error) {
	backend := reflect.ValueOf(h.collector).Elem().FieldByName("backend")
	if backend.IsNil() {
		return nil, fmt.Errorf("%w: the collector has no backend; make it with colly.NewCollector", ErrUnsupported)
	}
	client := backend.Elem().FieldByName("Client")
	if !client.IsValid() || client.Type() != reflect.TypeFor[*http.Client]() || client.IsNil() {
		return nil, fmt.Errorf("%w: the backend of the collector has no Client of the type *http.Client", ErrUnsupported)
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
	wait := *h.wg // Collector.Init replaces it
	wait.Add(1)
	return wait.Done
}

// RequestCallbacks returns the number of OnRequest callbacks.
func (h *Handle) RequestCallbacks() int { return len(*h.requestCallbacks) }

// ResponseHeadersCallbacks returns the number of OnResponseHeaders callbacks.
func (h *Handle) ResponseHeadersCallbacks() int { return len(*h.responseHeadersCallbacks) }

// OnRequestFirst registers an OnRequest callback that is called before all others. No request may
// be under way.
func (h *Handle) OnRequestFirst(f colly.RequestCallback) {
	*h.requestCallbacks = slices.Insert(*h.requestCallbacks, 0, f)
}

// OnResponseFirst registers an OnResponse callback that is called before all others. No request may
// be under way.
func (h *Handle) OnResponseFirst(f colly.ResponseCallback) {
	*h.responseCallbacks = slices.Insert(*h.responseCallbacks, 0, f)
}

// OnErrorFirst is like OnResponseFirst for an OnError callback. Requests of an earlier plugin may be
// under way, and their callbacks stay the same.
func (h *Handle) OnErrorFirst(f colly.ErrorCallback) {
	lock := *h.lock
	lock.Lock()
	defer lock.Unlock()
	*h.errorCallbacks = append([]colly.ErrorCallback{f}, *h.errorCallbacks...)
}

// ReplaceStorage replaces the storage of the collector by the result of wrap. No request may be
// under way.
func (h *Handle) ReplaceStorage(wrap func(storage.Storage) storage.Storage) {
	*h.store = wrap(*h.store)
}

// Storage returns the storage of the collector.
func (h *Handle) Storage() storage.Storage { return *h.store }

// Debugger returns the collector's debugger, or nil if it has none.
func (h *Handle) Debugger() debug.Debugger { return *h.debugger }

// SameDebugger reports whether a and b are the same debugger. It returns false if they cannot be
// compared.
func SameDebugger(a, b debug.Debugger) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
