package backend

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitContext checks when the context of a wait ends, before and after the first call of Done.
func TestWaitContext(t *testing.T) {
	for _, test := range []struct {
		name     string
		watched  bool // Done is called first
		deadline time.Duration
		closed   time.Duration // when the channel is closed
		want     error         // after two seconds
	}{
		{name: "the channel is closed", closed: time.Second, want: context.Canceled},
		{name: "the channel is closed, watched", watched: true, closed: time.Second, want: context.Canceled},
		{name: "the time is over", deadline: time.Second, closed: time.Second, want: context.DeadlineExceeded},
		{name: "the time is over, watched", watched: true, deadline: time.Second, closed: time.Second, want: context.DeadlineExceeded},
		{name: "neither", deadline: time.Hour, closed: time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent := t.Context()
				if test.deadline > 0 {
					limited, cancel := context.WithTimeout(parent, test.deadline)
					defer cancel()
					parent = limited
				}
				canceled := make(chan struct{})
				closing := time.AfterFunc(test.closed, func() { close(canceled) })
				defer closing.Stop()
				req := (&http.Request{Cancel: canceled}).WithContext(parent)
				ctx, stop := WaitContext(req)
				defer stop()
				if test.watched {
					ctx.Done()
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if err := ctx.Err(); err != test.want {
					t.Errorf("Err: %v, want %v", err, test.want)
				}
				isDone := false
				select {
				case <-ctx.Done():
					isDone = true
				case <-time.After(time.Second):
				}
				if isDone != (test.want != nil) {
					t.Errorf("done: %t", isDone)
				}
			})
		})
	}
}

// TestWaitContextStartsNoGoroutine checks that a request that does not wait needs no goroutine. The end
// of a bubble fails if one is left, and stop ends the one of a request that waits.
func TestWaitContextStartsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canceled := make(chan struct{})
		req := (&http.Request{Cancel: canceled}).WithContext(context.Background())
		without, _ := WaitContext(req)
		if without.Err() != nil {
			t.Error(without.Err())
		}
		waiting, stop := WaitContext(req)
		waiting.Done()
		stop()
	})
}
