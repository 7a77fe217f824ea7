package collyrobots_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// What the tests of this package share: collectors on a web of robotstest, and what they want its
// access log to say.

var (
	async   = []colly.CollectorOption{colly.Async()}
	noDenys = "User-agent: *\nDisallow:\n"
)

// A crawl is a collector on a web with a plugin, and what it was told.
type crawl struct {
	*collyrobots.Collector
	robots    *collyrobots.Plugin
	transport *http.Transport // of the web
	logged    *bytes.Buffer
	impolite  bool // robots.txt is not obeyed, or not as RFC 9309 reads it, and that is right

	mu     sync.Mutex
	denied map[string]error // by URL, as OnDenied was told
	pages  []string         // as OnResponse was told
	errs   map[string]error // as OnError was told
}

// start makes a collector whose requests all go to web, with robots. At the end of the test the log
// is held against what each robots.txt said.
func start(t testing.TB, web *robotstest.Web, collector []colly.CollectorOption, opts ...collyrobots.Option) *crawl {
	t.Helper()
	c := &crawl{Collector: collyrobots.NewCollector(append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, collector...)...)}
	c.denied, c.errs, c.logged = map[string]error{}, map[string]error{}, new(bytes.Buffer)
	c.transport = web.Transport()
	c.WithTransport(c.transport)
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
		if !c.impolite && len(web.Log("")) > 0 {
			robotstest.Verify(t, web, dialect.RFC9309())
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

// limited gives a crawl Colly's own limits.
func limited(t *testing.T, c *crawl, rules ...*colly.LimitRule) {
	t.Helper()
	for _, r := range rules {
		if r != nil {
			must(t, c.Limit(r))
		}
	}
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

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inBubble runs f on a web of sites in a bubble, where the log's instants are exact.
func inBubble(t *testing.T, sites robotstest.Sites, f func(t *testing.T, web *robotstest.Web)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, robotstest.New(t, sites)) })
}

// hang is an answer that never comes.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drop ends the connection without an answer.
func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// dropFirst ends the connection without an answer when it is asked for the first time, and answers
// from then on.
func dropFirst(answer string) http.HandlerFunc {
	var asked atomic.Bool
	return func(out http.ResponseWriter, r *http.Request) {
		if !asked.Swap(true) {
			drop(out, r)
		}
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprint(out, answer)
	}
}

// urisOf returns the URIs of the requests in a log in order, separated by spaces.
func urisOf(log robotstest.Log) string { return strings.Join(log.URIs(), " ") }

// wantSchedule compares the access log of a host with want. Lines in want end with a newline or
// ", ".
func wantSchedule(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), ", ", "\n")
	if got := web.Log(host).String(); got != want {
		t.Errorf("%s was asked for\n%s\nwant\n%s", host, got, want)
	}
}

// wantURIs compares what a host was asked for, in order, with want.
func wantURIs(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	if got := urisOf(web.Log(host)); got != want {
		t.Errorf("requests to %s: %s, want %s", host, got, want)
	}
}

// wantSortedURIs is wantURIs for a host that is asked for several pages at once.
func wantSortedURIs(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	if got := strings.Join(web.Log(host).SortedURIs(), " "); got != want {
		t.Errorf("requests to %s: %s, want %s", host, got, want)
	}
}

// wantPace fails the test unless a host was asked n times, every gap being the delay to the
// microsecond: never sooner, which is the promise, and never later, which is the cost.
func wantPace(t *testing.T, web *robotstest.Web, host string, delay time.Duration, n int) {
	t.Helper()
	log := web.Log(host)
	if len(log) != n {
		t.Errorf("%s: %d requests, want %d:\n%s", host, len(log), n, log)
	}
	for i := 1; i < len(log); i++ {
		if gap := log[i].Time.Sub(log[i-1].Time); gap.Round(time.Microsecond) != delay {
			t.Errorf("%s: %v between %s and %s, want %v", host, gap, log[i-1].URI, log[i].URI, delay)
		}
	}
}

// wantNoSooner is wantPace for a crawl that something else slows down.
func wantNoSooner(t *testing.T, web *robotstest.Web, host string, delay time.Duration, n int) {
	t.Helper()
	log := web.Log(host)
	if len(log) != n {
		t.Errorf("%s: %d requests, want %d:\n%s", host, len(log), n, log)
	}
	if gap := log.MinGap(); gap < delay-time.Microsecond {
		t.Errorf("%s was asked twice within %v, want %v:\n%s", host, gap, delay, log)
	}
}

// wantDenied checks what OnDenied was told of a URL.
func wantDenied(t *testing.T, c *crawl, url string, reason collyrobots.Reason, line int) {
	t.Helper()
	var denied *collyrobots.DisallowedError
	if err := c.denied[url]; !errors.As(err, &denied) || !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("%s: OnDenied got %v, want a DisallowedError", url, err)
		return
	}
	if d := denied.Decision; d.Reason != reason || d.Rule.Line != line || d.Allowed {
		t.Errorf("%s: %v, want reason %q, line %d", url, d, reason, line)
	}
}
