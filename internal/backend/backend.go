// Package backend reaches the one part of a Colly collector that its public API hides: the http.Client it sends with.
//
// Colly has no hook for a redirect hop and no getter for its client, transport or redirect handler, so a plugin that must
// see every request on the wire has to look inside. This package is the only place that does. It reads unexported fields by
// reflection, seldom, and says so with an error where Colly's layout is not the one it knows.
package backend

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/gocolly/colly/v2"
)

// ErrLayout means that the collector does not hold its client where Colly v2 holds it.
var ErrLayout = errors.New("backend: the collector's http.Client is out of reach")

// Handle leads to a collector's client, also after SetClient has replaced it. A clone shares its parent's.
// The zero Handle leads nowhere; get one from Open.
type Handle struct{ client **http.Client }

// Open finds the client of c. The error wraps ErrLayout: c is nil, was not made by colly.NewCollector, or is of another
// Colly than the one this was written for.
func Open(c *colly.Collector) (Handle, error) {
	if c == nil {
		return Handle{}, fmt.Errorf("%w: no collector", ErrLayout)
	}
	backend := reflect.ValueOf(c).Elem().FieldByName("backend")
	if backend.Kind() != reflect.Pointer || backend.IsNil() {
		return Handle{}, fmt.Errorf("%w: it has no backend", ErrLayout)
	}
	client := backend.Elem().FieldByName("Client")
	if !client.IsValid() || client.Type() != reflect.TypeFor[*http.Client]() {
		return Handle{}, fmt.Errorf("%w: its backend has no Client", ErrLayout)
	}
	return Handle{(**http.Client)(client.Addr().UnsafePointer())}, nil
}

// Client returns the client that the collector sends with now.
func (h Handle) Client() *http.Client { return *h.client }

// A Hook is one of a collector's lists of callbacks.
type Hook string

const (
	OnRequest         Hook = "requestCallbacks"
	OnResponseHeaders Hook = "responseHeadersCallbacks"
)

// Callbacks counts the callbacks of a hook of c. The error wraps ErrLayout.
func Callbacks(c *colly.Collector, hook Hook) (int, error) {
	callbacks := reflect.ValueOf(c).Elem().FieldByName(string(hook))
	if callbacks.Kind() != reflect.Slice {
		return 0, fmt.Errorf("%w: it has no %s", ErrLayout, hook)
	}
	return callbacks.Len(), nil
}
