package collectors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A detailedError is an error whose methods need its fields.
type detailedError struct {
	text  string
	cause error
}

func (e *detailedError) Error() string { return e.text }
func (e *detailedError) Unwrap() error { return e.cause }
func (e *detailedError) Is(error) bool { return e.text == "is" }
func (e *detailedError) Timeout() bool { return e.text == "timeout" }

// nilErrors are errors that are not nil, but are or wrap a nil pointer.
var nilErrors = []error{
	(*net.OpError)(nil),
	(*net.DNSError)(nil),
	(*url.Error)(nil),
	(*collyrobots.DeniedError)(nil),
	(*detailedError)(nil),
	fmt.Errorf("dial: %w", (*net.OpError)(nil)),
	errors.Join(io.EOF, (*net.OpError)(nil)),
	&url.Error{Op: "Get", URL: "http://a.test/", Err: (*detailedError)(nil)},
}

// The following types have methods that return err.
type (
	failingStore    struct{ err error }
	failingPacer    struct{ err error }
	failingFrontier struct {
		*kit.MemoryStore
		err error
	}
)

func (f failingStore) Get(context.Context, string) ([]byte, error) { return nil, f.err }
func (f failingStore) Update(context.Context, string, time.Duration, func([]byte) ([]byte, error)) error {
	return f.err
}
func (f failingStore) Close() error { return f.err }

// A failingUpdate is a failingStore that can be read, and is empty.
type failingUpdate struct{ failingStore }

func (failingUpdate) Get(context.Context, string) ([]byte, error) { return nil, nil }

func (f failingPacer) Acquire(context.Context, string, time.Duration) (pacer.Lease, error) {
	return nil, f.err
}

func (f failingFrontier) Next(context.Context) (*urlstore.Page, error) { return nil, f.err }
func (f failingFrontier) End(*urlstore.Page, urlstore.Result) error    { return f.err }
func (f failingFrontier) Add(p *urlstore.Page) (bool, error) {
	if strings.HasSuffix(p.URL, "/add") {
		return false, f.err
	}
	return f.MemoryStore.Add(p)
}

// examine looks at the errors of a crawl as programs do.
func examine(c *kit.Crawl) {
	for _, errs := range []map[string]error{c.Errs, c.Denied} {
		for _, err := range errs {
			lookAt(err)
		}
	}
}

// lookAt calls the methods of err that programs call.
func lookAt(err error) {
	timeout := interface{ Timeout() bool }(nil)
	_ = err != nil && errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, io.EOF) || err.Error() == ""
}

// doors are the ways in which a program may give err to the plugin.
var doors = []struct {
	name string
	give func(t *testing.T, web *robotstest.Web, err error)
}{
	{"Turn.Failed", func(t *testing.T, web *robotstest.Web, err error) {
		heard := kit.Hear("answered")
		p := kit.NewTurns(t, web, heard.On())
		turn, fault := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/"))
		kit.Must(t, fault)
		turn.Failed(err)
		for _, e := range heard.Wait() {
			if e.URL == "http://a.test/" && (e.Err == nil || !strings.Contains(e.Err.Error(), "a nil *")) {
				t.Errorf("the event has the error %v", e.Err)
			}
		}
		if n := p.Stats().Totals.Requests; n != 2 {
			t.Errorf("%d requests are counted, want 2: an error without details does not say that the request was not sent", n)
		}
	}},
	{"RoundTrip", func(t *testing.T, web *robotstest.Web, err error) {
		c := kit.Start(t, web, nil)
		c.WithTransport(kit.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, err }))
		c.Visit("http://a.test/")
		client := &http.Client{Transport: c.Robots.Transport(kit.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, err }))}
		_, failure := client.Get("http://b.test/")
		lookAt(failure)
		examine(c)
	}},
	{"Store.Update", func(t *testing.T, web *robotstest.Web, err error) {
		c := kit.Start(t, web, nil, collyrobots.Store(failingUpdate{failingStore{err}}), collyrobots.Revalidate(collyrobots.Revalidation{}))
		c.BadStore = true
		c.Visit("http://a.test/")
	}},
	{"Store", func(t *testing.T, web *robotstest.Web, err error) {
		c := kit.Start(t, web, nil, collyrobots.Store(failingStore{err}),
			collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}), collyrobots.Revalidate(collyrobots.Revalidation{}))
		c.BadStore = true
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{"Pacer", func(t *testing.T, web *robotstest.Web, err error) {
		c := kit.Start(t, web, nil, collyrobots.SharedPace(failingPacer{err}))
		c.Visit("http://a.test/")
		examine(c)
	}},
	{"Frontier", func(t *testing.T, web *robotstest.Web, err error) {
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(failingFrontier{kit.NewMemoryStore(), err}))
		c.BadStore = true
		c.Visit("http://a.test/add")
		c.Visit("http://a.test/1")
		c.Wait()
		if c.Robots.Stats().Frontier.Error == "" {
			t.Error("the error is not in Stats")
		}
	}},
}

// TestErrorsThatAreNilPointers checks that an error that is a nil pointer, or wraps one, is an error
// without details. Most of its methods panic.
func TestErrorsThatAreNilPointers(t *testing.T) {
	sites := robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /x\nSitemap: http://a.test/map.xml\n",
		"/map.xml":    robotstest.Sitemap("http://a.test/2"),
		"/to":         robotstest.Redirect("/target"),
		"*":           "page",
	}, "b.test": {}}
	for _, door := range doors {
		for _, err := range nilErrors {
			t.Run(fmt.Sprintf("%s/%T", door.name, err), func(t *testing.T) {
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) { door.give(t, web, err) })
			})
		}
	}
}

// TestOptionsWithNilPointers checks that New returns an OptionError for each interface that has a nil
// pointer, and for a logger without a handler.
func TestOptionsWithNilPointers(t *testing.T) {
	var dir *struct{ store.Store }
	var shared *struct{ pacer.Pacer }
	var pages *kit.MemoryStore
	for want, o := range map[string]collyrobots.Option{
		"Store: the store is nil":                                             collyrobots.Store(dir),
		"SharedPace: the Pacer is nil":                                        collyrobots.SharedPace(shared),
		"Frontier: the urlstore.Store is nil":                                 collyrobots.Frontier(pages),
		"RobotsClient: the Transport of the client is a nil pointer":          collyrobots.RobotsClient(&http.Client{Transport: (*http.Transport)(nil)}),
		"Logger: the logger or its handler is nil":                            collyrobots.Logger(new(slog.Logger)),
		"SignRequests: the Signer is nil or was not made by webbotauth.NewSi": collyrobots.SignRequests(nil),
	} {
		_, err := collyrobots.New(o)
		if fault := (*collyrobots.OptionError)(nil); !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), "collyrobots: "+want) {
			t.Errorf("%v: %v, want %s", o, err, want)
		}
	}
	if _, err := collyrobots.New(collyrobots.Logger(slog.New((*slog.JSONHandler)(nil)))); err == nil {
		t.Error("New accepts a logger whose handler is a nil pointer")
	}
	p, err := collyrobots.New(kit.Quiet())
	kit.Must(t, err)
	defer p.Close()
	if _, err := p.Queue(pages); err == nil {
		t.Error("Queue accepts a nil pointer")
	}
	c := collyrobots.NewCollector()
	kit.Must(t, p.Attach(c.Collector))
	if _, err := p.SitemapQueue((*queue.InMemoryQueueStorage)(nil), collyrobots.Feed{}); err == nil {
		t.Error("SitemapQueue accepts a nil pointer")
	}
}
