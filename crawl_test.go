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

// This file contains the helpers that the tests of this package share: collectors on a web of
// robotstest, and comparisons with its access log.

var (
	async   = []colly.CollectorOption{colly.Async()}
	noDenys = "User-agent: *\nDisallow:\n"
)

// A crawl is a collector with a plugin on a web. It records the results of its requests. If client
// is not nil, its requests are sent by client, and the collector sends none.
type crawl struct {
	*collyrobots.Collector
	client    *http.Client
	timeout   time.Duration  // limits each body that client reads; 0 if there is no limit
	requests  sync.WaitGroup // the requests of client under colly.Async
	follows   bool           // client requests the links of each page
	visited   sync.Map       // the URLs of these links
	robots    *collyrobots.Plugin
	transport *http.Transport // the transport of the web
	logged    *bytes.Buffer
	impolite  bool // whether the test may violate RFC 9309, so that Verify is not called

	mu     sync.Mutex
	denied map[string]error // the errors of OnDenied, or of refused requests of client, by URL
	pages  []string         // the URLs of OnResponse
	errs   map[string]error // the errors of OnError, by URL
}

// start returns a collector with a plugin whose requests all go to web. At the end of the test,
// Verify checks the access log.
func start(t testing.TB, web *robotstest.Web, collector []colly.CollectorOption, opts ...collyrobots.Option) *crawl {
	t.Helper()
	collector = append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, collector...)
	c := &crawl{
		Collector: collyrobots.NewCollector(collector...),
		transport: web.Transport(),
		denied:    make(map[string]error),
		errs:      make(map[string]error),
		logged:    new(bytes.Buffer),
	}
	c.WithTransport(c.transport)
	log := slog.New(slog.NewTextHandler(&lockedWriter{w: c.logged}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	opts = append([]collyrobots.Option{collyrobots.OnDenied(c.onDenied), collyrobots.Logger(log)}, opts...)
	var err error
	c.robots, err = c.WithRobots(opts...)
	if err != nil {
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

// limited sets copies of LimitRules, because a rule has a channel of the bubble where it is first used.
func limited(t *testing.T, c *crawl, rules ...*colly.LimitRule) {
	t.Helper()
	for _, r := range rules {
		if r != nil {
			must(t, c.Limit(&colly.LimitRule{
				DomainRegexp: r.DomainRegexp,
				DomainGlob:   r.DomainGlob,
				Delay:        r.Delay,
				RandomDelay:  r.RandomDelay,
				Parallelism:  r.Parallelism,
			}))
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

// inBubble calls f with a web of sites in a bubble, so that the times of the access log are exact.
func inBubble(t *testing.T, sites robotstest.Sites, f func(t *testing.T, web *robotstest.Web)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, robotstest.New(t, sites)) })
}

// hang is a handler that never answers.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drop is a handler that closes the connection without a response.
func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// dropFirst returns a handler that closes the connection of the first request without a response,
// and answers the other requests.
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

// wantSchedule compares the access log of a host with want. Lines in want end with a newline or ",
// ".
func wantSchedule(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), ", ", "\n")
	if got := web.Log(host).String(); got != want {
		t.Errorf("requests to %s:\n%s\nwant\n%s", host, got, want)
	}
}

// wantURIs compares the URIs of the requests to a host, in order, with want.
func wantURIs(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	if got := urisOf(web.Log(host)); got != want {
		t.Errorf("requests to %s: %s, want %s", host, got, want)
	}
}

// wantSortedURIs is like wantURIs for requests that are made concurrently.
func wantSortedURIs(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	if got := strings.Join(web.Log(host).SortedURIs(), " "); got != want {
		t.Errorf("requests to %s: %s, want %s", host, got, want)
	}
}

// wantPace fails the test if a host did not get n requests, or if a gap between two of them differs
// from the delay by more than a microsecond. A shorter gap would break the promise of the plugin,
// and a longer gap would waste time.
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

// wantNoSooner is like wantPace but allows longer gaps, for a crawl that also waits for something
// else.
func wantNoSooner(t *testing.T, web *robotstest.Web, host string, delay time.Duration, n int) {
	t.Helper()
	log := web.Log(host)
	if len(log) != n {
		t.Errorf("%s: %d requests, want %d:\n%s", host, len(log), n, log)
	}
	if gap := log.MinGap(); gap < delay-time.Microsecond {
		t.Errorf("%s: two requests within %v, want at least %v:\n%s", host, gap, delay, log)
	}
}

// wantDenied checks the error that OnDenied got for a URL.
func wantDenied(t *testing.T, c *crawl, url string, reason collyrobots.Reason, line int) {
	t.Helper()
	var denied *collyrobots.DisallowedError
	if err := c.denied[url]; !errors.As(err, &denied) || !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("%s: OnDenied got %v, want a DisallowedError", url, err)
		return
	}
	if d := denied.Decision; d.Reason != reason || d.Rule.Line != line || d.Allowed {
		t.Errorf("%s: got %v, want reason %q, line %d", url, d, reason, line)
	}
}
