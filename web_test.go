package collyrobots_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// A site is what one host answers, by path and query: a string is a page or a robots.txt, an int a status, an http.HandlerFunc
// itself. Anything else is not found.
type site map[string]any

// A web is a few hosts on loopback behind one listener, and what they were asked: the access log that judges a crawl.
type web struct {
	server *httptest.Server
	client *http.Transport

	mu    sync.Mutex
	sites map[string]site
	log   []hit
}

// A hit is a line of the access log.
type hit struct {
	at     time.Time
	host   string
	uri    string // path and query as they were on the wire
	header http.Header
}

// newWeb starts the hosts of sites: "a.test" is reached as http://a.test/ through the collectors that web makes.
func newWeb(t testing.TB, sites map[string]site) *web {
	w := &web{sites: sites}
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	w.client = &http.Transport{DialContext: w.dial, MaxIdleConnsPerHost: 8}
	t.Cleanup(func() { w.client.CloseIdleConnections(); w.server.Close() })
	return w
}

func (w *web) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
}

func (w *web) serve(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.log = append(w.log, hit{time.Now(), r.Host, r.RequestURI, r.Header.Clone()})
	answer := w.sites[r.Host][r.RequestURI]
	w.mu.Unlock()
	switch a := answer.(type) {
	case string:
		if strings.HasPrefix(a, "<") {
			out.Header().Set("Content-Type", "text/html; charset=utf-8")
		} else {
			out.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		io.WriteString(out, a)
	case []byte:
		out.Write(a)
	case int:
		out.WriteHeader(a)
	case http.HandlerFunc:
		a(out, r)
	default:
		http.NotFound(out, r)
	}
}

// set changes what a host answers, while it is there to be asked.
func (w *web) set(host, uri string, answer any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sites[host][uri] = answer
}

// redirect answers with a 302.
func redirect(to string) http.HandlerFunc {
	return http.RedirectHandler(to, http.StatusFound).ServeHTTP
}

// hits returns the log of a host, or of all of them.
func (w *web) hits(host string) []hit {
	w.mu.Lock()
	defer w.mu.Unlock()
	if host == "" {
		return slices.Clone(w.log)
	}
	return slices.DeleteFunc(slices.Clone(w.log), func(h hit) bool { return h.host != host })
}

// uris returns what a host was asked for, in order.
func (w *web) uris(host string) string {
	var uris []string
	for _, h := range w.hits(host) {
		uris = append(uris, h.uri)
	}
	return strings.Join(uris, " ")
}

// sortedURIs is for hosts that are asked at once.
func (w *web) sortedURIs(host string) string {
	uris := strings.Fields(w.uris(host))
	slices.Sort(uris)
	return strings.Join(uris, " ")
}

// minGap returns the smallest time between two hits of a host.
func (w *web) minGap(host string) time.Duration {
	hits := w.hits(host)
	gap := time.Duration(1<<63 - 1)
	for i := 1; i < len(hits); i++ {
		gap = min(gap, hits[i].at.Sub(hits[i-1].at))
	}
	return gap
}

// keepsGap fails the test if a host was asked n times other than, or closer than 80 % of, what it should.
func (w *web) keepsGap(t *testing.T, host string, delay time.Duration, n int) {
	t.Helper()
	if got := len(w.hits(host)); got != n {
		t.Errorf("%s was asked %d times, want %d: %s", host, got, n, w.uris(host))
	}
	if gap := w.minGap(host); gap < delay*8/10 {
		t.Errorf("%s was asked twice within %v, want %v", host, gap, delay)
	}
}

// A crawl is a collector on a web with a plugin, and what it was told.
type crawl struct {
	*collyrobots.Collector
	robots *collyrobots.Plugin
	logged *bytes.Buffer

	mu     sync.Mutex
	denied map[string]error // by URL, as OnDenied was told
	pages  []string         // as OnResponse was told
	errs   map[string]error // as OnError was told
}

// start makes a collector whose requests all go to w, with robots.
func (w *web) start(t testing.TB, collector []colly.CollectorOption, opts ...collyrobots.Option) *crawl {
	t.Helper()
	c := &crawl{Collector: collyrobots.NewCollector(append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, collector...)...)}
	c.denied, c.errs, c.logged = map[string]error{}, map[string]error{}, new(bytes.Buffer)
	c.WithTransport(w.client)
	log := slog.New(slog.NewTextHandler(&lockedWriter{w: c.logged}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	opts = append([]collyrobots.Option{collyrobots.OnDenied(c.onDenied), collyrobots.Logger(log)}, opts...)
	var err error
	if c.robots, err = c.WithRobots(opts...); err != nil {
		t.Fatal(err)
	}
	c.OnResponse(func(r *colly.Response) { c.note(func() { c.pages = append(c.pages, r.Request.URL.String()) }) })
	c.OnError(func(r *colly.Response, err error) { c.note(func() { c.errs[r.Request.URL.String()] = err }) })
	t.Cleanup(func() {
		if err := c.robots.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *crawl) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *crawl) onDenied(r *colly.Request, err error) {
	c.note(func() { c.denied[r.URL.String()] = err })
}

// follow visits the links of each page.
func (c *crawl) follow() *crawl {
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return c
}

// page is a page with links.
func page(links ...string) string {
	var b strings.Builder
	b.WriteString("<!doctype html>")
	for _, l := range links {
		fmt.Fprintf(&b, "<a href=%q>x</a>", l)
	}
	return b.String()
}

// pages is a site of n pages behind / and a robots.txt.
func pages(n int, robots string) site {
	s := site{"/robots.txt": robots}
	var links []string
	for i := range n {
		path := fmt.Sprintf("/%d", i)
		links = append(links, path)
		s[path] = page()
	}
	s["/"] = page(links...)
	return s
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
