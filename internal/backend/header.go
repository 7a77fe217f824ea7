package backend

import (
	"net/http"
	"reflect"
	"weak"
)

// A HeaderKey names the header map of a request, which Colly's Request.Retry hands on to the
// request that it makes: a request and its retries have the same key. It is comparable, and keeps
// nothing alive.
type HeaderKey struct{ header weak.Pointer[hidden] }

// KeyOf returns the key of a header.
func KeyOf(h http.Header) HeaderKey {
	return HeaderKey{weak.Make((*hidden)(reflect.ValueOf(h).UnsafePointer()))}
}

// Alive reports whether the header is still there.
func (k HeaderKey) Alive() bool { return k.header.Value() != nil }
