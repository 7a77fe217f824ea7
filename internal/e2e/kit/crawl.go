// Package kit has what the tests of the public API share: collectors and clients on a web of
// robotstest, comparisons with its access log, sites, stores and pacers.
package kit

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

var (
	// Async has the options of an asynchronous collector.
	Async = []colly.CollectorOption{colly.Async()}
	// NoDenys is a robots.txt that allows everything.
	NoDenys = "User-agent: *\nDisallow:\n"
)

// A Crawl is a collector with a plugin on a web. It records the results of its requests. If client
// is not nil, its requests are sent by client, and the collector sends none.
type Crawl struct {
	*collyrobots.Collector
	Client    *http.Client
	timeout   time.Duration  // limits each body that client reads; 0 if there is no limit
	requests  sync.WaitGroup // the requests of client under colly.Async
	follows   bool           // client requests the links of each page
	visited   sync.Map       // the URLs of these links
	Robots    *collyrobots.Plugin
	Transport *http.Transport // the transport of the web
	Logged    *bytes.Buffer
	Impolite  bool // whether the test may violate RFC 9309, so that Verify is not called
	BadStore  bool // whether a store of the test fails, so that Close may return its errors

	mu     sync.Mutex
	Denied map[string]error // the errors of OnDenied, or of refused requests of client, by URL
	Pages  []string         // the URLs of OnResponse
	Errs   map[string]error // the errors of OnError, by URL
}

// Start returns a collector with a plugin whose requests all go to web. At the end of the test,
// Verify checks the access log.
func Start(t testing.TB, web *robotstest.Web, collector []colly.CollectorOption, opts ...collyrobots.Option) *Crawl {
	t.Helper()
	collector = append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, collector...)
	c := &Crawl{
		Collector: collyrobots.NewCollector(collector...),
		Transport: web.Transport(),
		Denied:    make(map[string]error),
		Errs:      make(map[string]error),
		Logged:    new(bytes.Buffer),
	}
	c.WithTransport(c.Transport)
	log := slog.New(slog.NewTextHandler(&LockedWriter{W: c.Logged}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	opts = append([]collyrobots.Option{collyrobots.OnDenied(c.OnDenied), collyrobots.Logger(log)}, opts...)
	var err error
	c.Robots, err = c.WithRobots(opts...)
	if err != nil {
		t.Fatal(err)
	}
	c.OnResponse(func(r *colly.Response) { c.Note(func() { c.Pages = append(c.Pages, r.Request.URL.String()) }) })
	c.OnError(func(r *colly.Response, err error) { c.Note(func() { c.Errs[r.Request.URL.String()] = err }) })
	t.Cleanup(func() {
		if err := c.Robots.Close(); err != nil && !c.BadStore {
			t.Errorf("Close returned %v", err)
		}
		if !c.Impolite && len(web.Log("")) > 0 {
			robotstest.Verify(t, web, dialect.RFC9309())
		}
	})
	return c
}

// Note calls f, and calls from other goroutines wait meanwhile.
func (c *Crawl) Note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// OnDenied records the error of a denied page.
func (c *Crawl) OnDenied(r *colly.Request, err error) {
	c.Note(func() { c.Denied[r.URL.String()] = err })
}

// Limited sets copies of LimitRules, because a rule has a channel of the bubble where it is first used.
func Limited(t *testing.T, c *Crawl, rules ...*colly.LimitRule) {
	t.Helper()
	for _, r := range rules {
		if r != nil {
			Must(t, c.Limit(&colly.LimitRule{
				DomainRegexp: r.DomainRegexp,
				DomainGlob:   r.DomainGlob,
				Delay:        r.Delay,
				RandomDelay:  r.RandomDelay,
				Parallelism:  r.Parallelism,
			}))
		}
	}
}

// A LockedWriter may be used by several goroutines.
type LockedWriter struct {
	mu sync.Mutex
	W  io.Writer
}

func (l *LockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.W.Write(p)
}

// InBubble calls f with a web of sites in a bubble, so that the times of the access log are exact.
func InBubble(t *testing.T, sites robotstest.Sites, f func(t *testing.T, web *robotstest.Web)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, robotstest.New(t, sites)) })
}

// Modes has the options of a collector that is synchronous, and of one that is asynchronous.
var Modes = map[string][]colly.CollectorOption{"sync": nil, "async": Async}

// OnChange returns the option OnEvent with a function that calls f for each changed robots.txt.
func OnChange(f func(report.RobotsChange)) collyrobots.Option {
	return collyrobots.OnEvent(func(e *collyrobots.Event) {
		if e.Change != nil {
			f(*e.Change)
		}
	})
}

// VisitPages requests the pages /1 to /n of a host at once, and waits for them.
func VisitPages(c *Crawl, host string, n int) {
	for i := range n {
		c.Visit(fmt.Sprintf("http://%s/%d", host, i+1))
	}
	c.Wait()
}

// Quiet returns an option without a log.
func Quiet() collyrobots.Option { return collyrobots.Logger(slog.New(slog.DiscardHandler)) }

// LogsTo returns an option that makes the plugin log to lines as text, without the time.
func LogsTo(lines *strings.Builder, level slog.Level) collyrobots.Option {
	return collyrobots.Logger(slog.New(slog.NewTextHandler(&LockedWriter{W: lines}, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
}
