package backend_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
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

// A watcher governs collectors: it asks a function about redirect hops, and counts.
type watcher struct {
	hop                                 func(hop *http.Request) error
	guard                               func(hop string, addr net.Addr) error
	blind                               bool // it knows no request but those with its mark
	peers, strays                       atomic.Int32
	asked, sent, answers, ended, resent atomic.Int32
}

func (w *watcher) Knows(u *url.URL) bool { return !w.blind }

func (w *watcher) Followed(*http.Request) {}

func (w *watcher) Stray(*http.Request) { w.strays.Add(1) }

func (w *watcher) Before(_ *backend.Seam, req *http.Request) (backend.Trip, error) {
	w.asked.Add(1)
	if req.Response == nil {
		return trip{w}, nil
	}
	return trip{w}, w.hop(req)
}

type trip struct{ *watcher }

func (w trip) Guarded() bool { return w.guard != nil }
func (w trip) Peer(hop string, addr net.Addr) error {
	w.peers.Add(1)
	if w.guard != nil {
		return w.guard(hop, addr)
	}
	return nil
}

func (w trip) Deadline() (time.Time, error) {
	return time.Time{}, nil
}
func (w trip) Ready() bool                 { return true }
func (w trip) Sent()                       { w.sent.Add(1) }
func (w trip) Again(context.Context) error { w.resent.Add(1); return nil }
func (w trip) Answered(*http.Response) (again bool, report func()) {
	w.answers.Add(1)
	return false, nil
}
func (w trip) Ended(int64, error) { w.ended.Add(1) }

// watched returns a collector whose redirect hops go through hop.
func watched(t *testing.T, hop func(*http.Request) error) *colly.Collector {
	t.Helper()
	return governed(t, colly.NewCollector(colly.AllowURLRevisit()), &watcher{hop: hop})
}

// governed lets w govern c.
func governed(t *testing.T, c *colly.Collector, w *watcher) *colly.Collector {
	t.Helper()
	handle, err := backend.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	seam, fresh, err := handle.Install(w)
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	c.Context = backend.Mark(c.Context, w)
	c.OnRequestHeaders(func(*colly.Request) { seam = handle.Watch(seam, w) })
	t.Cleanup(func() { handle.Client().CloseIdleConnections() })
	return c
}

func agree(*http.Request) error { return nil }

// What a collector without a governor sends through a seam is let through, and each governor of the
// seam is told of it once.
func TestStraysAreTold(t *testing.T) {
	server := redirecting(t)
	c := colly.NewCollector(colly.AllowURLRevisit())
	early, second := c.Clone(), c.Clone()
	w, other := &watcher{hop: agree, blind: true}, &watcher{hop: agree, blind: true}
	governed(t, c, w)
	governed(t, second, other)
	for i, visit := range []struct {
		by     *colly.Collector
		strays int32
	}{{c, 0}, {second, 0}, {early, 1}, {c, 1}, {early, 2}} {
		if err := visit.by.Visit(server.URL + "/end"); err != nil {
			t.Fatal(err)
		}
		if w.strays.Load() != visit.strays || other.strays.Load() != visit.strays {
			t.Errorf("visit %d: %d and %d strays were told, want %d", i, w.strays.Load(), other.strays.Load(), visit.strays)
		}
	}
	if w.asked.Load() != 2 || other.asked.Load() != 1 {
		t.Errorf("asked about %d and %d requests, want 2 and 1", w.asked.Load(), other.asked.Load())
	}
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
	c := governed(t, colly.NewCollector(colly.AllowURLRevisit()), w)
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
	c := governed(t, colly.NewCollector(colly.AllowURLRevisit()), w)
	for _, path := range []string{"/", "/drop", "/after"} {
		if err := c.Visit(server.URL + path); err != nil {
			t.Error(err)
		}
	}
	if resent, ended := w.resent.Load(), w.ended.Load(); resent != 1 || ended != 3 {
		t.Errorf("%d second attempts, %d exchanges; want 1 of 3", resent, ended)
	}
}

// What is refused for its address is not written, on a new connection nor on one that was kept.
func TestARefusedAddressIsNotAsked(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/mine" {
					asked.Add(1)
				}
			}))
			if server.EnableHTTP2 = h2; h2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			refused := errors.New("refused")
			guarded := &watcher{guard: func(hop string, addr net.Addr) error {
				if hop != server.Listener.Addr().String() || addr.String() != hop {
					t.Errorf("asked about %s at %s", hop, addr)
				}
				return refused
			}}
			send := func(path string, w *watcher) error {
				req, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := backend.Do(server.Client().Transport, req, 0, trip{w})
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					err = resp.Body.Close()
				}
				return err
			}
			for i := range 50 {
				if err := send(fmt.Sprint("/", i), guarded); !errors.Is(err, refused) {
					t.Fatalf("%v, want the refusal", err)
				}
				if err := send("/mine", &watcher{}); err != nil {
					t.Fatal(err)
				}
			}
			if told := guarded.peers.Load(); told != 50 {
				t.Errorf("asked %d times, want once for each exchange", told)
			}
			server.Close() // waits for what it was asked
			if n := asked.Load(); n != 0 {
				t.Errorf("%d requests were written", n)
			}
		})
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

func TestTheSeamSurvivesWhatUsersDoToTheClient(t *testing.T) {
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
	c := watched(t, agree)
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

// The user's client is shared, and never written to; each governor sees its own collector's
// requests.
func TestCollectorsShareTheUsersClient(t *testing.T) {
	server := redirecting(t)
	client := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{}}
	before := *client
	defer client.CloseIdleConnections()
	var watchers []*watcher
	var all sync.WaitGroup
	for range 4 {
		w := &watcher{hop: agree}
		watchers = append(watchers, w)
		c := colly.NewCollector()
		c.SetClient(client)
		governed(t, c, w)
		all.Go(func() {
			if err := c.Visit(server.URL + "/hang"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want a timeout", err)
			}
		})
	}
	all.Wait()
	for i, w := range watchers {
		if w.asked.Load() != 2 || w.ended.Load() != 2 || w.sent.Load() != 2 {
			t.Errorf("governor %d: asked %d, sent %d, ended %d; want 2 each", i, w.asked.Load(), w.sent.Load(), w.ended.Load())
		}
	}
	if client.Timeout != before.Timeout || client.Transport != before.Transport || client.CheckRedirect != nil || client.Jar != nil {
		t.Errorf("the user's client has changed: %+v", client)
	}
}

func TestACollectorHasOneGovernor(t *testing.T) {
	c := colly.NewCollector()
	first, second := &watcher{}, &watcher{}
	handle, _ := backend.Open(c)
	for i, want := range []struct {
		g     backend.Governor
		fresh bool
		err   error
	}{{first, true, nil}, {first, false, nil}, {second, false, backend.ErrOwned}} {
		again, _ := backend.Open(c)
		if _, fresh, err := again.Install(want.g); fresh != want.fresh || err != want.err {
			t.Errorf("%d: %v, %v", i, fresh, err)
		}
	}
	clone, _ := backend.Open(c.Clone())
	if _, fresh, err := clone.Install(second); !fresh || err != nil {
		t.Errorf("a clone: %v, %v, want a governor of its own", fresh, err)
	}
	handle.Release(first, idle)
	if _, fresh, err := handle.Install(second); !fresh || err != nil {
		t.Errorf("after Release: %v, %v", fresh, err)
	}
}

// What was put into the backend is taken out again; what the collector's setters changed stays.
func TestReleaseGivesTheClientBack(t *testing.T) {
	mine := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	for name, change := range map[string]func(*colly.Collector){
		"nothing":           func(*colly.Collector) {},
		"SetRequestTimeout": func(c *colly.Collector) { c.SetRequestTimeout(time.Second) },
		"WithTransport":     func(c *colly.Collector) { c.WithTransport(roundTripper(nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := colly.NewCollector()
			c.SetClient(mine)
			w := &watcher{}
			handle, _ := backend.Open(c)
			handle.Install(w)
			change(c)
			handle.Release(w, func() bool { return false })
			if handle.Client() == mine {
				t.Error("given back while something was under way")
			}
			handle.Release(w, idle)
			got := handle.Client()
			_, changed := got.Transport.(roundTripper)
			switch {
			case name == "nothing" && got != mine,
				name == "SetRequestTimeout" && got.Timeout != time.Second,
				name == "WithTransport" && !changed,
				mine.Timeout != time.Minute:
				t.Errorf("%+v", got)
			}
		})
	}
}

// Whoever sets a transport while a request is under way is not rid of its hops.
func TestHopsAreSeenWhateverReplacesTheTransport(t *testing.T) {
	server := redirecting(t)
	bare := &http.Transport{}
	defer bare.CloseIdleConnections()
	for name, at := range map[string]func(c *colly.Collector, replace func()){
		"OnRequestHeaders": func(c *colly.Collector, replace func()) { c.OnRequestHeaders(func(*colly.Request) { replace() }) },
		"redirect handler": func(c *colly.Collector, replace func()) {
			c.SetRedirectHandler(func(*http.Request, []*http.Request) error { replace(); return nil })
		},
		"OnError": func(c *colly.Collector, replace func()) { c.OnError(func(*colly.Response, error) { replace() }) },
	} {
		t.Run(name, func(t *testing.T) {
			hops := 0
			c := watched(t, func(*http.Request) error { hops++; return nil })
			at(c, func() { c.WithTransport(bare) })
			c.Visit("http://127.0.0.1:1/")
			for range 2 {
				if err := c.Visit(server.URL + "/"); err != nil {
					t.Fatal(err)
				}
			}
			if hops != 2 {
				t.Errorf("%d hops were seen, want 2", hops)
			}
		})
	}
}

// Collector.Init keeps the callbacks and replaces the backend.
func TestInitIsNoticed(t *testing.T) {
	server := redirecting(t)
	hops := 0
	c := watched(t, func(*http.Request) error { hops++; return nil })
	c.Init()
	if err := c.Visit(server.URL + "/"); err != nil || hops != 1 {
		t.Errorf("%v, %d hops", err, hops)
	}
}

// A transport that breaks its contract is net/http's business, and no exchange stays open.
func TestBrokenTransports(t *testing.T) {
	for name, rt := range map[string]roundTripper{
		"nothing": func(*http.Request) (*http.Response, error) { return nil, nil },
		"nil body": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}}, nil
		},
		"panic": func(*http.Request) (*http.Response, error) { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			visit := func(c *colly.Collector) (panicked any, err error) {
				defer func() { panicked = recover() }()
				c.WithTransport(rt)
				c.SetRequestTimeout(0) // after a panic net/http leaves its timer behind
				return nil, c.Visit("http://site.test/")
			}
			w := &watcher{}
			panicked, err := visit(governed(t, colly.NewCollector(), w))
			wantPanic, want := visit(colly.NewCollector())
			if strings.Replace(fmt.Sprint(err), "*backend.Seam", "backend_test.roundTripper", 1) != fmt.Sprint(want) || fmt.Sprint(panicked) != fmt.Sprint(wantPanic) {
				t.Errorf("%v, panic %v; without a governor %v, panic %v", err, panicked, want, wantPanic)
			}
			if w.ended.Load() != 1 {
				t.Errorf("ended %d times, want once", w.ended.Load())
			}
		})
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
		if i == 1 { // after the seam is in place
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

// net/http lets one timeout run over a whole chain of redirects. A hop that waits for its host's
// turn must not use it up, and a server that hangs must still be given up in time.
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

func TestDoUsesTheTransportAndNothingElse(t *testing.T) {
	server := redirecting(t)
	var used atomic.Int32
	rt := roundTripper(func(r *http.Request) (*http.Response, error) {
		used.Add(1)
		if r.Header.Get("Cookie") != "" {
			t.Error("a cookie was sent")
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	req, _ := http.NewRequest(http.MethodGet, server.URL, nil)
	w := new(watcher)
	resp, err := backend.Do(rt, req, time.Minute, trip{w})
	if err != nil {
		t.Fatal(err)
	}
	if w.ended.Load() != 0 {
		t.Error("ended before its body was closed")
	}
	resp.Body.Close()
	resp.Body.Close()
	if w.ended.Load() != 1 || w.sent.Load() != 1 || w.answers.Load() != 1 {
		t.Errorf("ended %d times, sent %d, answered %d; want once", w.ended.Load(), w.sent.Load(), w.answers.Load())
	}
	if resp.StatusCode != http.StatusFound || used.Load() != 1 {
		t.Errorf("status %d by %d uses of the transport, want the redirect itself by 1", resp.StatusCode, used.Load())
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Others may read the client at any time: what was put there for them stays, and does no harm.
func TestAKeptSeamStays(t *testing.T) {
	server := redirecting(t)
	c, w := colly.NewCollector(), &watcher{}
	handle, _ := backend.Open(c)
	seam, _, err := handle.Install(w)
	if err != nil {
		t.Fatal(err)
	}
	before := handle.Client()
	seam.Keep()
	if handle.Release(w, idle); handle.Client() != before {
		t.Error("the client was given back")
	}
	if err := c.Visit(server.URL + "/"); err != nil || w.asked.Load() > 0 {
		t.Errorf("%v; the governor was asked %d times after Release", err, w.asked.Load())
	}
	before.CloseIdleConnections()
	if again := handle.Watch(seam, w); again != seam || handle.Owner() != nil {
		t.Error("Watch governs a collector that was released")
	}
}

func TestHoldMakesWaitWait(t *testing.T) {
	c := colly.NewCollector()
	handle, err := backend.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	first, second := handle.Hold(), handle.Hold()
	var released atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c.Wait(); !released.Load() {
			t.Error("Wait did not wait")
		}
	}()
	first()
	time.Sleep(50 * time.Millisecond)
	released.Store(true)
	second()
	<-done
}

// idle says that no request is under way.
func idle() bool { return true }
