package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// deadlineOnly returns a transport that ends a request at the deadline of its context, but not
// when the context is canceled, as adapters of fasthttp do. The response for the path silent
// takes an hour.
func deadlineOnly(web *robotstest.Web, silent string) http.RoundTripper {
	next := web.Transport()
	return kit.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Path != silent {
			return next.RoundTrip(req)
		}
		wait := time.Hour
		if deadline, ok := req.Context().Deadline(); ok {
			wait = min(wait, time.Until(deadline))
		}
		time.Sleep(wait)
		return nil, errors.New("timeout")
	})
}

// TestTransportUsesOnlyDeadline checks that such a transport ends in time for a page, a redirect,
// robots.txt and a sitemap.
func TestTransportUsesOnlyDeadline(t *testing.T) {
	const timeout = 10 * time.Second
	for silent, want := range map[string]struct {
		took time.Duration
		err  bool // of Visit
	}{
		"/":            {timeout, true},
		"/robots.txt":  {timeout, true},
		"/sitemap.xml": {5 * time.Minute, false}, // the time limit of a sitemap
		"/moved":       {timeout, true},
	} {
		t.Run(silent, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": "Sitemap: http://a.test/sitemap.xml\n", "/sitemap.xml": "", "/": robotstest.Redirect("/moved"), "/moved": robotstest.Page(),
			}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				c.WithTransport(deadlineOnly(web, silent))
				c.SetRequestTimeout(timeout)
				began := time.Now()
				err := c.Visit("http://a.test/")
				if took := time.Since(began); took != want.took || (err != nil) != want.err || want.err && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Visit returned %v after %v, want %+v", err, took, want)
				}
			})
		})
	}
}

// TestCloseDuringFetchThatCannotBeCanceled checks that Close ends the wait for robots.txt at
// once, and returns when such a transport does.
func TestCloseDuringFetchThatCannotBeCanceled(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		c.WithTransport(deadlineOnly(web, "/robots.txt"))
		began := time.Now()
		closed := make(chan time.Duration)
		time.AfterFunc(time.Second, func() {
			kit.Must(t, c.Robots.Close())
			closed <- time.Since(began)
		})
		err := c.Visit("http://a.test/")
		if took := time.Since(began); took != time.Second || !errors.Is(err, collyrobots.ErrClosed) {
			t.Errorf("Visit returned %v after %v, want ErrClosed after 1s", err, took)
		}
		if took := <-closed; took != 10*time.Second {
			t.Errorf("Close returned after %v, want 10s, Colly's timeout", took)
		}
	})
}

// TestTimeoutError checks that the error of a timeout has the words of net/http. Without the
// plugin they would be missing in a bubble, where the timeout is noticed at its exact instant.
func TestTimeoutError(t *testing.T) {
	halfway := func(out http.ResponseWriter, r *http.Request) {
		out.Write([]byte("half"))
		out.(http.Flusher).Flush()
		kit.Hang(out, r)
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		within time.Duration // how long the collector's context lasts; 0 if it does not end
		want   string
	}{
		"headers":     {answer: kit.Hang, want: `Get "http://a.test/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`},
		"body":        {answer: halfway, want: "context deadline exceeded (Client.Timeout or context cancellation while reading body)"},
		"the context": {answer: kit.Hang, within: time.Second, want: `Get "http://a.test/": context deadline exceeded`},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "", "/": tc.answer}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil)
				if tc.within > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), tc.within)
					defer cancel()
					c.Context = ctx
				}
				if err := c.Visit("http://a.test/"); err == nil || err.Error() != tc.want || !isTimeout(err) {
					t.Errorf("got %v, want %s", err, tc.want)
				}
			})
		})
	}
}

// isTimeout reports whether programs recognize err as a timeout of net/http.
func isTimeout(err error) bool {
	timeout := net.Error(nil)
	return errors.As(err, &timeout) && timeout.Timeout() && os.IsTimeout(err) &&
		errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrDeadlineExceeded)
}

// TestTimeoutErrorIsThatOfNetHTTP checks that the error of a timeout is the same as without the
// plugin.
func TestTimeoutErrorIsThatOfNetHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			kit.Hang(out, r)
		}
	}))
	defer server.Close()
	withPlugin := collyrobots.NewCollector()
	robots, err := withPlugin.WithRobots()
	kit.Must(t, err)
	defer robots.Close()
	_, err = robots.Check(t.Context(), server.URL)
	kit.Must(t, err)
	var errs []string
	for _, c := range []*colly.Collector{colly.NewCollector(), withPlugin.Collector} {
		c.WithTransport(server.Client().Transport)
		c.SetRequestTimeout(50 * time.Millisecond)
		err := c.Visit(server.URL)
		if err == nil || !isTimeout(err) {
			t.Errorf("got %v, want a timeout", err)
		}
		errs = append(errs, fmt.Sprint(err))
	}
	if errs[0] != errs[1] {
		t.Errorf("with the plugin got    %s\nwithout the plugin got %s", errs[1], errs[0])
	}
}
