package backend_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// A transport with a budget ends the context of its collector and hands the request on. The context
// of that request has ended then.
func TestTheContextOfAnExchangeEndsAtOnce(t *testing.T) {
	for range 300 {
		c := governed(t, colly.NewCollector(), new(watcher))
		ctx, cancel := context.WithCancelCause(t.Context())
		spent := errors.New("the budget is spent")
		c.Context = backend.Mark(ctx, new(watcher))
		c.WithTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
			within, stop := context.WithCancel(req.Context())
			defer stop()
			cancel(spent)
			if req.Context().Err() != context.Canceled || within.Err() != context.Canceled {
				t.Errorf("the request's context: %v, one made of it: %v; want both to have ended", req.Context().Err(), within.Err())
			}
			return nil, context.Cause(within)
		}))
		if err := c.Visit("http://a.test/"); !errors.Is(err, spent) || t.Failed() {
			t.Fatalf("Visit: %v, want the cause", err)
		}
	}
}

// punctual is a transport that looks at the deadline of the request's context, and not at its end.
// Its server takes an hour to answer.
func punctual(req *http.Request) (*http.Response, error) {
	wait := time.Hour
	if deadline, ok := req.Context().Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	time.Sleep(wait)
	return nil, errors.New("timeout")
}

func TestTheContextOfAnExchangeHasADeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout, within time.Duration // of the client, and of the collector's context
		lasts           time.Duration // the lease
		want            time.Duration
	}{
		"none":           {want: time.Hour},
		"client":         {timeout: 10 * time.Second, want: 10 * time.Second},
		"context":        {timeout: 10 * time.Second, within: 5 * time.Second, want: 5 * time.Second},
		"context, later": {timeout: 10 * time.Second, within: 15 * time.Second, want: 10 * time.Second},
		"lease":          {timeout: 10 * time.Second, lasts: 3 * time.Second, want: 3 * time.Second},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			ctx := t.Context()
			if tc.within > 0 {
				bounded, cancel := context.WithTimeout(ctx, tc.within)
				defer cancel()
				ctx = bounded
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = backend.Do(roundTripper(punctual), req, tc.timeout, &brief{trip: trip{new(watcher)}, lasts: tc.lasts})
			if took := time.Since(began); took != tc.want {
				t.Errorf("%v after %v, want %v", err, took, tc.want)
			}
			synctest.Wait()
		}))
	}
}
