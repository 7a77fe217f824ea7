package backend_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"
	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/internal/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// redirecting serves / as a redirect to /end, and /slow never.
func redirecting(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/", http.RedirectHandler("/end", http.StatusFound))
	mux.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "end") })
	mux.Handle("/hang", http.RedirectHandler("/slow", http.StatusFound))
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// A watcher asks a function about redirect hops, and counts.
type watcher struct {
	hop                           func(hop *http.Request) error
	asked, answers, ended, resent atomic.Int32
}

func (w *watcher) Before(_ *http.Client, req *http.Request) error {
	w.asked.Add(1)
	if req.Response == nil {
		return nil
	}
	return w.hop(req)
}

func (w *watcher) Again(*http.Request) error              { w.resent.Add(1); return nil }
func (w *watcher) Answered(*http.Request, *http.Response) { w.answers.Add(1) }
func (w *watcher) Ended(*http.Request)                    { w.ended.Add(1) }

// watched returns a collector whose redirect hops go through hop.
func watched(t *testing.T, hop func(*http.Request) error) *colly.Collector {
	t.Helper()
	return guarded(t, &watcher{hop: hop})
}

// guarded returns a collector that w watches.
func guarded(t *testing.T, w backend.Watcher) *colly.Collector {
	t.Helper()
	c := colly.NewCollector(colly.AllowURLRevisit())
	handle, err := backend.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	guard := backend.NewGuard(w)
	c.OnRequest(func(*colly.Request) { guard.Watch(handle.Client()) })
	t.Cleanup(func() { handle.Client().CloseIdleConnections() })
	return c
}

func TestOpenRefusesWhatIsNoCollector(t *testing.T) {
	for name, c := range map[string]*colly.Collector{"nil": nil, "zero": {}} {
		if _, err := backend.Open(c); !errors.Is(err, backend.ErrLayout) {
			t.Errorf("%s: %v, want ErrLayout", name, err)
		}
	}
}

func TestHandleFollowsSetClientAndClones(t *testing.T) {
	c := colly.NewCollector()
	clone := c.Clone()
	of, _ := backend.Open(c)
	ofClone, err := backend.Open(clone)
	if err != nil {
		t.Fatal(err)
	}
	mine := &http.Client{}
	c.SetClient(mine)
	if of.Client() != mine || ofClone.Client() != mine {
		t.Error("a handle does not follow SetClient")
	}
}

func TestHopIsAskedAboutRedirectsOnly(t *testing.T) {
	server := redirecting(t)
	var asked []string
	c := watched(t, func(hop *http.Request) error {
		asked = append(asked, hop.URL.Path)
		return nil
	})
	for range 2 {
		if err := c.Visit(server.URL + "/"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(asked, " "); got != "/end /end" {
		t.Errorf("asked about %q, want each hop once", got)
	}
}

// Every exchange that is not refused is asked about, answered and ended, whatever becomes of it.
func TestEveryExchangeEnds(t *testing.T) {
	server := redirecting(t)
	w := &watcher{hop: func(hop *http.Request) error {
		if hop.URL.Path == "/slow" {
			return errors.New("refused")
		}
		return nil
	}}
	c := guarded(t, w)
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
	if asked, answers, ended := w.asked.Load(), w.answers.Load(), w.ended.Load(); asked != 7 || answers != 5 || ended != 6 {
		t.Errorf("asked %d, answered %d, ended %d; want 7, 5, 6", asked, answers, ended)
	}
}

// net/http sends a GET again at once when the server drops a connection that it had kept.
func TestASecondAttemptIsAskedAbout(t *testing.T) {
	var dropped atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drop" && !dropped.Swap(true) {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	w := &watcher{}
	c := guarded(t, w)
	for _, path := range []string{"/", "/drop", "/after"} {
		if err := c.Visit(server.URL + path); err != nil {
			t.Error(err)
		}
	}
	if resent, ended := w.resent.Load(), w.ended.Load(); resent != 1 || ended != 3 {
		t.Errorf("%d second attempts, %d exchanges; want 1 of 3", resent, ended)
	}
}

func TestARefusedHopReachesVisitAndOnError(t *testing.T) {
	server := redirecting(t)
	refused := errors.New("refused")
	c := watched(t, func(*http.Request) error { return refused })
	var told error
	c.OnError(func(_ *colly.Response, err error) { told = err })
	if err := c.Visit(server.URL + "/"); !errors.Is(err, refused) || !errors.Is(told, refused) {
		t.Errorf("Visit: %v, OnError: %v; want both to be the refusal", err, told)
	}
}

func TestTheGuardSurvivesWhatUsersDoToTheClient(t *testing.T) {
	server := redirecting(t)
	changes := map[string]func(c *colly.Collector){
		"WithTransport": func(c *colly.Collector) { c.WithTransport(&http.Transport{DisableKeepAlives: true}) },
		"SetClient": func(c *colly.Collector) {
			c.SetClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
		},
		"SetRedirectHandler": func(c *colly.Collector) {
			c.SetRedirectHandler(func(*http.Request, []*http.Request) error { return nil })
		},
		"SetProxyFunc": func(c *colly.Collector) {
			c.SetProxyFunc(func(*http.Request) (*url.URL, error) { return nil, nil })
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := watched(t, func(*http.Request) error { asked++; return nil })
			for i := range 3 {
				if i == 1 {
					change(c)
				}
				if err := c.Visit(server.URL + "/"); err != nil {
					t.Fatal(err)
				}
			}
			if asked != 3 {
				t.Errorf("asked %d times, want 3", asked)
			}
		})
	}
}

func TestTheTimeoutMayChangeAtAnyTime(t *testing.T) {
	server := redirecting(t)
	c := watched(t, func(*http.Request) error { return nil })
	for _, timeout := range []time.Duration{100 * time.Millisecond, 0, 200 * time.Millisecond} {
		c.SetRequestTimeout(timeout)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		c.Context = ctx
		if err := c.Visit(server.URL + "/slow"); !errors.Is(err, context.DeadlineExceeded) || (ctx.Err() == nil) != (timeout > 0) {
			t.Errorf("timeout %v: %v, the context: %v", timeout, err, ctx.Err())
		}
		cancel()
	}
}

// Two guards on one client leave its timeout where the first has put it.
func TestGuardsShareAClient(t *testing.T) {
	server := redirecting(t)
	first, second := &watcher{hop: func(*http.Request) error { return nil }}, &watcher{hop: func(*http.Request) error { return nil }}
	c := guarded(t, first)
	handle, _ := backend.Open(c)
	guard := backend.NewGuard(second)
	c.OnRequest(func(*colly.Request) { guard.Watch(handle.Client()) })
	c.SetRequestTimeout(200 * time.Millisecond)
	if err := c.Visit(server.URL + "/hang"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a timeout", err)
	}
	if first.ended.Load() != 2 || second.ended.Load() != 2 {
		t.Errorf("ended %d and %d, want 2 each", first.ended.Load(), second.ended.Load())
	}
}

func TestSetProxyKeepsTheUsersTLSSettings(t *testing.T) {
	server := httptest.NewTLSServer(http.RedirectHandler("/", http.StatusNotFound))
	defer server.Close()
	pool := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	c := watched(t, func(*http.Request) error { return nil })
	c.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}})
	c.ParseHTTPErrorResponse = true
	proxied := 0
	for i := range 2 {
		if i == 1 { // after the guard stands before the transport
			c.SetProxyFunc(func(*http.Request) (*url.URL, error) { proxied++; return nil, nil })
		}
		if err := c.Visit(server.URL); err != nil {
			t.Fatalf("visit %d: %v", i, err)
		}
	}
	if proxied != 1 {
		t.Errorf("the proxy function ran %d times, want 1", proxied)
	}
}

func TestProxyURLIsTold(t *testing.T) {
	server := redirecting(t)
	c := watched(t, func(*http.Request) error { return nil })
	switcher, err := proxy.RoundRobinProxySwitcher(server.URL) // the server answers a proxy's requests as its own
	if err != nil {
		t.Fatal(err)
	}
	c.SetProxyFunc(switcher)
	var told string
	c.OnResponse(func(r *colly.Response) { told = r.Request.ProxyURL })
	if err := c.Visit("http://site.test/end"); err != nil {
		t.Fatal(err)
	}
	if told != server.URL {
		t.Errorf("ProxyURL %q, want %q", told, server.URL)
	}
}

// net/http lets one timeout run over a whole chain of redirects. A hop that waits for its host's turn must not use it up, and a
// server that hangs must still be given up in time.
func TestAWaitingHopDoesNotUseUpTheTimeout(t *testing.T) {
	server := redirecting(t)
	const timeout = 500 * time.Millisecond
	c := watched(t, func(hop *http.Request) error {
		select {
		case <-time.After(2 * timeout):
		case <-hop.Context().Done():
		}
		return nil
	})
	c.SetRequestTimeout(timeout)
	var body string
	c.OnResponse(func(r *colly.Response) { body = string(r.Body) })
	if err := c.Visit(server.URL + "/"); err != nil || body != "end" {
		t.Errorf("after a long wait: %v, body %q; want the page", err, body)
	}
	err := c.Visit(server.URL + "/hang")
	if timedOut := interface{ Timeout() bool }(nil); !errors.As(err, &timedOut) || !timedOut.Timeout() {
		t.Errorf("a hanging server: %v, want a timeout", err)
	}
}

func TestContextEndsAnExchange(t *testing.T) {
	server := redirecting(t)
	c := watched(t, func(*http.Request) error { return nil })
	var cancel context.CancelFunc
	c.Context, cancel = context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if err := c.Visit(server.URL + "/slow"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's end", err)
	}
}

func TestExchangeUsesTheTransportAndNothingElse(t *testing.T) {
	server := redirecting(t)
	c := watched(t, func(*http.Request) error { return errors.New("guarded") })
	handle, _ := backend.Open(c)
	var used atomic.Int32
	c.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		used.Add(1)
		if r.Header.Get("Cookie") != "" {
			t.Error("a cookie was sent")
		}
		return http.DefaultTransport.RoundTrip(r)
	}))
	c.SetCookies(server.URL, []*http.Cookie{{Name: "a", Value: "b"}})
	backend.NewGuard(&watcher{}).Watch(handle.Client())
	req, _ := http.NewRequest(http.MethodGet, server.URL, nil)
	ended := 0
	resp, err := backend.Exchange(handle.Client(), req, time.Minute, nil, func() { ended++ })
	if err != nil {
		t.Fatal(err)
	}
	if ended != 0 {
		t.Error("ended before its body was closed")
	}
	resp.Body.Close()
	resp.Body.Close()
	if ended != 1 {
		t.Errorf("ended %d times, want once", ended)
	}
	if resp.StatusCode != http.StatusFound || used.Load() != 1 {
		t.Errorf("status %d by %d uses of the transport, want the redirect itself by 1", resp.StatusCode, used.Load())
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
