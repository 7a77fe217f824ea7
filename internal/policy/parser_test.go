package policy

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestPanicInParser checks that after a panic of the parser nothing is allowed, Get returns, and
// the file is not fetched again at once.
func TestPanicInParser(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	c.parser = nil // using it panics
	a := dialect.Authority{Scheme: "http", Host: "example.com"}
	fetches := 0
	do := func(req *http.Request) (*http.Response, error) {
		fetches++
		return serve(usual)(req)
	}
	for range 2 {
		p, err := c.Get(context.Background(), a, Fetch{Do: do})
		var panicked *PanicError
		if err != nil || p.RobotsStatus != Unreachable || !errors.As(p.Err(), &panicked) {
			t.Fatalf("got %+v, %v, want unreachable with a PanicError", p, err)
		}
	}
	if fetches != 1 {
		t.Errorf("%d fetches, want 1", fetches)
	}
}
