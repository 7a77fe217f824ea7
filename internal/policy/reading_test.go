package policy

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestPanicInReading: a reader that panics closes the host and hangs nobody, and the file is not
// asked for at once again.
func TestPanicInReading(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	c.reader = nil // to be read with: a panic
	a := dialect.Authority{Scheme: "http", Host: "example.com"}
	fetches := 0
	do := func(req *http.Request) (*http.Response, error) { fetches++; return serve(usual)(req) }
	for range 2 {
		p, err := c.Get(context.Background(), a, Fetch{Do: do})
		var panicked *PanicError
		if err != nil || p.RobotsStatus != Unreachable || !errors.As(p.Err(), &panicked) {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if fetches != 1 {
		t.Errorf("%d fetches", fetches)
	}
}
