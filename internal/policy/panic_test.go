package policy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
)

// TestPanicInReading: a reader that panics closes the host and hangs nobody, and the file is not asked for at once again.
func TestPanicInReading(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	c.reader.seen = nil // to be written to: a panic
	u := &url.URL{Scheme: "http", Host: "example.com"}
	fetches := 0
	do := func(req *http.Request) (*http.Response, error) { fetches++; return serve(usual)(req) }
	for range 2 {
		p, err := c.Get(context.Background(), u, "", do)
		var panicked *PanicError
		if err != nil || p.Meaning != Unreachable || !errors.As(p.Err, &panicked) {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if fetches != 1 {
		t.Errorf("%d fetches", fetches)
	}
}
