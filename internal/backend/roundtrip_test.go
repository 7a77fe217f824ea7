package backend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
)

func TestBeforeIsCalledForRedirects(t *testing.T) {
	server := redirecting(t)
	var paths []string
	c := withRedirects(t, func(req *http.Request) error {
		paths = append(paths, req.URL.Path)
		return nil
	})
	for range 2 {
		if err := c.Visit(server.URL + "/"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(paths, " "); got != "/end /end" {
		t.Errorf("asked about the redirects %q, want /end once for each visit", got)
	}
}

func TestRefusedRedirectReachesVisitAndOnError(t *testing.T) {
	server := redirecting(t)
	refused := errors.New("refused")
	c := withRedirects(t, func(*http.Request) error { return refused })
	var received error
	c.OnError(func(_ *colly.Response, err error) { received = err })
	err := c.Visit(server.URL + "/")
	if !errors.Is(err, refused) || !errors.Is(received, refused) {
		t.Errorf("Visit: %v, OnError: %v; want %v from both", err, received, refused)
	}
}

// Ended is called for every request that was not refused, however it ends.
func TestEveryTripEnds(t *testing.T) {
	server := redirecting(t)
	r := &recorder{redirect: func(req *http.Request) error {
		if req.URL.Path == "/slow" {
			return errors.New("refused")
		}
		return nil
	}}
	c := install(t, colly.NewCollector(colly.AllowURLRevisit()), r)
	c.OnResponseHeaders(func(r *colly.Response) {
		if r.Request.URL.RawQuery == "abort" {
			r.Request.Abort()
		}
	})
	for _, path := range []string{"/", "/end", "/end?abort", "/hang"} {
		c.Visit(server.URL + path)
	}
	server.CloseClientConnections()
	server.Listener.Close()
	c.Visit(server.URL + "/down")
	r.wantCounts(t, 7, 5, 6)
}

// net/http repeats a GET at once if the server drops a connection that was kept alive.
func TestAgainAfterADroppedConnection(t *testing.T) {
	var dropped atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drop" && !dropped.Swap(true) {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	r := new(recorder)
	c := install(t, colly.NewCollector(colly.AllowURLRevisit()), r)
	for _, path := range []string{"/", "/drop", "/after"} {
		if err := c.Visit(server.URL + path); err != nil {
			t.Error(err)
		}
	}
	if repeats, ended := r.repeats.Load(), r.ended.Load(); repeats != 1 || ended != 3 {
		t.Errorf("%d repeats, %d requests ended; want 1, 3", repeats, ended)
	}
}

// net/http and Colly report the faults of a broken transport as without the plugin, and the Trip
// ends.
func TestBrokenTransports(t *testing.T) {
	for name, rt := range map[string]roundTripper{
		"no response": func(*http.Request) (*http.Response, error) { return nil, nil },
		"no body": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}}, nil
		},
		"panic": func(*http.Request) (*http.Response, error) { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			visit := func(c *colly.Collector) (panicked any, err error) {
				defer func() { panicked = recover() }()
				c.WithTransport(rt)
				c.SetRequestTimeout(0) // net/http does not stop its timer after a panic
				return nil, c.Visit("http://site.test/")
			}
			r := new(recorder)
			panicked, err := visit(install(t, colly.NewCollector(), r))
			wantPanic, wantErr := visit(colly.NewCollector(colly.IgnoreRobotsTxt()))
			text := strings.Replace(fmt.Sprint(err), "*backend.Seam", "backend_test.roundTripper", 1)
			if text != fmt.Sprint(wantErr) || fmt.Sprint(panicked) != fmt.Sprint(wantPanic) {
				t.Errorf("%v, panic %v; without a Seam %v, panic %v", err, panicked, wantErr, wantPanic)
			}
			if ended := r.ended.Load(); ended != 1 {
				t.Errorf("ended %d times, want once", ended)
			}
		})
	}
}

func TestSetRequestTimeoutAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withRedirects(t, nil)
		c.WithTransport(new(site))
		for _, timeout := range []time.Duration{100 * time.Millisecond, 0, 200 * time.Millisecond} {
			c.SetRequestTimeout(timeout)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			c.Context = ctx
			err := c.Visit("http://a.test/slow")
			endedByTimeout := ctx.Err() == nil
			if !errors.Is(err, context.DeadlineExceeded) || endedByTimeout != (timeout > 0) {
				t.Errorf("timeout %v: %v, error of the context: %v", timeout, err, ctx.Err())
			}
			cancel()
		}
	})
}

// net/http lets one timeout run over a whole chain of redirects. A redirect that waits for its host
// must not use it up, but a server that hangs must be given up in time.
func TestTimeoutExcludesTheWaitOfARedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 500 * time.Millisecond
		c := withRedirects(t, func(req *http.Request) error {
			select {
			case <-time.After(2 * timeout):
			case <-req.Context().Done():
			}
			return nil
		})
		c.WithTransport(new(site))
		c.SetRequestTimeout(timeout)
		var body string
		c.OnResponse(func(r *colly.Response) { body = string(r.Body) })
		if err := c.Visit("http://a.test/"); err != nil || body != "end" {
			t.Errorf("after a long wait: %v, body %q; want the page", err, body)
		}
		began := time.Now()
		err := c.Visit("http://a.test/hang")
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 3*timeout {
			t.Errorf("a server that hangs: %v after %v, want a timeout after %v", err, took, 3*timeout)
		}
	})
}

func TestCollectorContextEndsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := withRedirects(t, nil)
		c.WithTransport(new(site))
		ctx, cancel := context.WithCancel(t.Context())
		c.Context = ctx
		time.AfterFunc(100*time.Millisecond, cancel)
		if err := c.Visit("http://a.test/slow"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
	})
}

// Do holds the host until the body is closed, because the caller closes it when the crawl delay of
// the robots.txt in the body is in force.
func TestDoEndsWhenTheBodyIsClosed(t *testing.T) {
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusNoContent, http.StatusNotModified} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			if status == http.StatusOK {
				io.WriteString(w, "User-agent: *\nCrawl-delay: 10\n")
			}
		}))
		defer server.Close()
		r := new(recorder)
		resp, err := backend.Do(http.DefaultTransport, get(t.Context(), t, server.URL), time.Minute, trip{r})
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		r.wantCounts(t, 0, 1, 0)
		resp.Body.Close()
		r.wantCounts(t, 0, 1, 1)
	}
}

func TestDoSendsOneRequest(t *testing.T) {
	server := redirecting(t)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	var calls atomic.Int32
	rt := roundTripper(func(req *http.Request) (*http.Response, error) {
		calls.Add(1)
		if req.Header.Get("Cookie") != "" {
			t.Error("a cookie was sent")
		}
		return http.DefaultTransport.RoundTrip(req)
	})
	r := new(recorder)
	resp, err := backend.Do(rt, get(t.Context(), t, server.URL), time.Minute, trip{r})
	if err != nil {
		t.Fatal(err)
	}
	r.wantCounts(t, 0, 1, 0)
	resp.Body.Close()
	resp.Body.Close()
	r.wantCounts(t, 0, 1, 1)
	if sent := r.sent.Load(); sent != 1 {
		t.Errorf("sent %d times, want once", sent)
	}
	if resp.StatusCode != http.StatusFound || calls.Load() != 1 {
		t.Errorf("status %d after %d calls of the transport, want the redirect after 1", resp.StatusCode, calls.Load())
	}
}

// TestRefusedConnectionIsClosed checks that a connection to an address that was refused when it was
// dialled is not left in the pool of the transport for the next request.
func TestRefusedConnectionIsClosed(t *testing.T) {
	server := redirecting(t)
	rt := &http.Transport{}
	defer rt.CloseIdleConnections()
	refusal := errors.New("refused")
	refusing := &recorder{guard: func(string, net.Addr) error { return refusal }}
	_, err := backend.Do(rt, get(t.Context(), t, server.URL+"/end"), time.Minute, trip{refusing})
	if !errors.Is(err, refusal) {
		t.Fatalf("got error %v", err)
	}
	reused := false
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused = reused || info.Reused || info.WasIdle },
	})
	time.Sleep(50 * time.Millisecond) // without the close, the connection is in the pool by then
	resp, err := backend.Do(rt, get(ctx, t, server.URL+"/end"), time.Minute, newTrip())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if reused {
		t.Error("the next request was sent on the refused connection")
	}
}
