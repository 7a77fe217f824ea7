package backend_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// redirecting returns a server that redirects / to /end and /hang to /slow, and never answers
// /slow.
func redirecting(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/", http.RedirectHandler("/end", http.StatusFound))
	mux.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "end") })
	mux.Handle("/hang", http.RedirectHandler("/slow", http.StatusFound))
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// A site is a transport with the pages of redirecting, for tests in a bubble.
type site struct{}

func (*site) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusFound, Header: http.Header{}, Body: http.NoBody, Request: req}
	switch req.URL.Path {
	case "/":
		resp.Header.Set("Location", "/end")
	case "/hang":
		resp.Header.Set("Location", "/slow")
	case "/end":
		resp.StatusCode = http.StatusOK
		resp.Body = io.NopCloser(strings.NewReader("end"))
	case "/slow":
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return resp, nil
}

// A recorder is a Controller that counts calls. It accepts every request, and asks a function about
// redirects.
type recorder struct {
	redirect func(req *http.Request) error              // if nil, every redirect is accepted
	guard    func(hostPort string, addr net.Addr) error // if nil, every address is accepted
	knowsNo  bool                                       // Knows returns false
	sign     func(*http.Request)                        // of the Terms

	strays   atomic.Int32
	followed atomic.Int32
	asked    atomic.Int32 // calls of Before
	peers    atomic.Int32 // calls of Peer, and so on
	sent     atomic.Int32
	repeats  atomic.Int32
	answered atomic.Int32
	ended    atomic.Int32
}

func (r *recorder) Knows(*url.URL) bool { return !r.knowsNo }

func (r *recorder) Redirected(*http.Request, error) {}

func (r *recorder) Followed(*http.Request) { r.followed.Add(1) }

func (r *recorder) Stray(*http.Request) { r.strays.Add(1) }

func (r *recorder) Before(_ *backend.Seam, req *http.Request) (backend.Trip, error) {
	r.asked.Add(1)
	if req.Response == nil || r.redirect == nil {
		return trip{r}, nil
	}
	return trip{r}, r.redirect(req)
}

// A trip is a Trip that is counted by a recorder.
type trip struct{ *recorder }

func newTrip() trip { return trip{new(recorder)} }

func (t trip) Header() http.Header { return nil }

func (t trip) Ready() (terms backend.Terms, ok bool) {
	return backend.Terms{CheckDials: t.guard != nil, Sign: t.sign}, true
}

func (t trip) Peer(hostPort string, addr net.Addr) error {
	t.peers.Add(1)
	if t.guard == nil {
		return nil
	}
	return t.guard(hostPort, addr)
}

func (t trip) Sent() { t.sent.Add(1) }

func (t trip) Again(context.Context) error {
	t.repeats.Add(1)
	return nil
}

func (t trip) Answered(*http.Response) (again bool, report func()) {
	t.answered.Add(1)
	return false, nil
}

func (t trip) Failed(*http.Request, error) (again bool, report func()) { return false, nil }

func (t trip) Ended(int64, error) { t.ended.Add(1) }

// wantCounts checks how many requests the recorder was asked about, how many were answered and how
// many have ended.
func (r *recorder) wantCounts(t *testing.T, asked, answered, ended int32) {
	t.Helper()
	if r.asked.Load() != asked || r.answered.Load() != answered || r.ended.Load() != ended {
		t.Errorf("asked about %d requests, %d answered, %d ended; want %d, %d, %d",
			r.asked.Load(), r.answered.Load(), r.ended.Load(), asked, answered, ended)
	}
}

// withRedirects returns a new collector that asks f about its redirects. If f is nil, every
// redirect is accepted.
func withRedirects(t *testing.T, f func(*http.Request) error) *colly.Collector {
	t.Helper()
	return install(t, colly.NewCollector(colly.AllowURLRevisit()), &recorder{redirect: f})
}

// countRedirects returns a new collector and a pointer to the number of its redirects.
func countRedirects(t *testing.T) (c *colly.Collector, redirects *int) {
	t.Helper()
	redirects = new(int)
	c = withRedirects(t, func(*http.Request) error {
		*redirects++
		return nil
	})
	return c, redirects
}

// install makes r the controller of c, as the plugin does.
func install(t *testing.T, c *colly.Collector, r *recorder) *colly.Collector {
	t.Helper()
	handle := open(t, c)
	seam, fresh, err := handle.Install(r)
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	c.IgnoreRobotsTxt = true
	c.Context = backend.Mark(c.Context, r)
	var current atomic.Pointer[backend.Seam]
	current.Store(seam)
	c.OnRequestHeaders(func(*colly.Request) { current.Store(handle.Watch(current.Load(), r)) })
	t.Cleanup(func() { handle.Client().CloseIdleConnections() })
	return c
}

func open(t *testing.T, c *colly.Collector) *backend.Handle {
	t.Helper()
	handle, err := backend.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

func get(ctx context.Context, t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// inBubble returns f as a test in a bubble of testing/synctest.
func inBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}
