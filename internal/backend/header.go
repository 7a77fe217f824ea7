package backend

import (
	"net/http"
	"reflect"
	"weak"
)

// A HeaderKey identifies the header map of a request. Colly's Request.Retry passes the map on to the
// request that it creates, so a request and its retries have the same key. A HeaderKey is comparable
// and keeps nothing alive.
type HeaderKey struct{ header weak.Pointer[hidden] }

// KeyOf returns the key of a header.
func KeyOf(h http.Header) HeaderKey {
	return HeaderKey{header: weak.Make((*hidden)(reflect.ValueOf(h).UnsafePointer()))}
}

// Alive reports whether the header is still in memory.
func (k HeaderKey) Alive() bool { return k.header.Value() != nil }
