// Package http takes the place of net/http in the WebAssembly of the playground. It has only what
// the packages in it mention. The playground sends no requests and reads no responses.
package http

import "io"

// StatusUnauthorized is the status 401.
const StatusUnauthorized = 401

// A Header is a header with canonical names.
type Header map[string][]string

// Values returns the values of a canonical name.
func (h Header) Values(name string) []string { return h[name] }

// Get returns the first value of a canonical name, or "".
func (h Header) Get(name string) string {
	if len(h[name]) == 0 {
		return ""
	}
	return h[name][0]
}

// A Response is a response.
type Response struct {
	StatusCode int
	Body       io.ReadCloser
}
