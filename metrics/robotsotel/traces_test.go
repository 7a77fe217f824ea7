package robotsotel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A tracedCrawl is a crawl whose spans are kept in memory.
type tracedCrawl struct {
	*collyrobots.Collector
	robots   *collyrobots.Plugin
	web      *robotstest.Web
	tracer   trace.Tracer
	exporter *tracetest.InMemoryExporter
	stop     func()
	began    time.Time
}

// traced calls f in a bubble with a crawl over sites.
func traced(t *testing.T, sites robotstest.Sites, f func(t *testing.T, c *tracedCrawl), options ...collyrobots.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &tracedCrawl{
			Collector: collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)")),
			web:       robotstest.New(t, sites),
			exporter:  tracetest.NewInMemoryExporter(),
			began:     time.Now(),
		}
		c.WithTransport(c.web.Transport())
		robots, err := c.WithRobots(options...)
		if err != nil {
			t.Fatal(err)
		}
		c.robots = robots
		c.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(c.exporter)).Tracer("test")
		c.stop, err = Trace(c.tracer, robots)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.stop)
		f(t, c)
	})
}

// want compares the spans that have ended with a text; see textOfSpans.
func (c *tracedCrawl) want(t *testing.T, want string) {
	t.Helper()
	c.robots.Close() // all events are delivered when it returns
	c.stop()
	if got := textOfSpans(c.exporter.GetSpans(), c.began); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

// textOfSpans returns a line for each span: its name, its start, its length, and its attributes. A
// span is indented under its parent, and spans are in the order of their starts.
func textOfSpans(spans tracetest.SpanStubs, began time.Time) string {
	children := make(map[trace.SpanID]tracetest.SpanStubs)
	known := make(map[trace.SpanID]bool)
	for _, s := range spans {
		known[s.SpanContext.SpanID()] = true
	}
	for _, s := range spans {
		parent := s.Parent.SpanID()
		if !known[parent] {
			parent = trace.SpanID{}
		}
		children[parent] = append(children[parent], s)
	}
	var b strings.Builder
	var write func(parent trace.SpanID, indent string)
	write = func(parent trace.SpanID, indent string) {
		slices.SortStableFunc(children[parent], func(a, b tracetest.SpanStub) int {
			return cmp.Or(a.StartTime.Compare(b.StartTime), a.EndTime.Compare(b.EndTime))
		})
		for _, s := range children[parent] {
			line := fmt.Sprintf("%-18s %6v %6v  %s", indent+s.Name, s.StartTime.Sub(began), s.EndTime.Sub(s.StartTime), attributesOf(s))
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			write(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return b.String()
}

// attributeOf returns the value of an attribute as text.
func attributeOf(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// attributesOf returns the attributes of a span that a reader needs to understand it.
func attributesOf(s tracetest.SpanStub) string {
	var words []string
	if url := attributeOf(s, "url.full"); url != "" && s.Name != "robots.txt" {
		words = append(words, url)
	}
	for _, key := range []attribute.Key{"collyrobots.request_kind", "http.response.status_code", "collyrobots.reason"} {
		if text := attributeOf(s, key); text != "" && text != "robots" {
			words = append(words, text)
		}
	}
	for _, key := range []string{"delay", "source", "line"} {
		if text := attributeOf(s, attribute.Key("collyrobots."+key)); text != "" {
			words = append(words, key+"="+text)
		}
	}
	for _, key := range []string{"denied", "shared", "incomplete"} {
		if attributeOf(s, attribute.Key("collyrobots."+key)) == "true" {
			words = append(words, key)
		}
	}
	if len(s.Links) > 0 {
		words = append(words, "linked")
	}
	if s.Status.Code == codes.Error {
		words = append(words, strings.TrimSpace("error "+s.Status.Description))
	}
	return strings.Join(words, " ")
}

// takes returns an answer that takes some time.
func takes(d time.Duration, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d)
		io.WriteString(w, body)
	}
}

// busyOnce returns an answer that has a status the first time.
func busyOnce(status int, then http.HandlerFunc) http.HandlerFunc {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request) {
		first := false
		once.Do(func() { first = true })
		if first {
			w.WriteHeader(status)
			return
		}
		then(w, r)
	}
}

// shop is the site of the trace in docs/reference/metrics.md.
func shop() robotstest.Sites {
	return robotstest.Sites{"shop.test": {
		"/robots.txt": takes(300*time.Millisecond, "User-agent: *\nCrawl-delay: 2\nDisallow: /cart\n"),
		"/tea":        busyOnce(503, takes(400*time.Millisecond, "")),
		"/cart":       "",
	}}
}

// TestPicture checks the trace in docs/reference/metrics.md.
func TestPicture(t *testing.T) {
	traced(t, shop(), func(t *testing.T, c *tracedCrawl) {
		c.Visit("http://shop.test/tea")
		c.Visit("http://shop.test/cart")
		c.robots.Close()
		c.stop()
		picture := textOfSpans(c.exporter.GetSpans(), c.began)
		guide, err := os.ReadFile("../../docs/reference/metrics.md")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(guide), "```text\n"+picture+"```\n") {
			t.Errorf("docs/reference/metrics.md does not contain\n%s", picture)
		}
	}, collyrobots.RetryThrottled(1))
}

// TestAttempts checks the spans of pages that are redirected, retried after status 429 and after a
// dropped connection, not found, and redirected to a page that is denied.
func TestAttempts(t *testing.T) {
	traced(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n",
		"/old":        robotstest.Redirect("/new"),
		"/new":        busyOnce(429, takes(time.Second, "")),
		"/gone":       404,
		"/drop":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"/back":       robotstest.Redirect("/closed"),
	}}, func(t *testing.T, c *tracedCrawl) {
		for _, path := range []string{"/old", "/gone", "/drop", "/back"} {
			c.Visit("http://a.test" + path)
		}
		c.want(t, `
collyrobots.page       0s     7s  http://a.test/old no_rule
  robots.txt           0s     0s  200
  wait                 0s     2s  delay=2 source=crawl_delay line=2
  request              2s     0s  http://a.test/old page 302
  wait                 2s     2s  delay=2 source=crawl_delay line=2
  request              4s     0s  http://a.test/new redirect 429 error
  wait                 4s     2s  delay=2 source=crawl_delay line=2
  request              6s     1s  http://a.test/new retry 200
collyrobots.page       7s     1s  http://a.test/gone no_rule error
  wait                 7s     1s  delay=2 source=crawl_delay line=2
  request              8s     0s  http://a.test/gone page 404 error
collyrobots.page       8s     4s  http://a.test/drop no_rule error EOF
  wait                 8s     2s  delay=2 source=crawl_delay line=2
  request             10s     0s  http://a.test/drop page error collyrobots: the connection was dropped before an answer
  wait                10s     2s  delay=2 source=crawl_delay line=2
  request             12s     0s  http://a.test/drop retry error EOF
collyrobots.page      12s     2s  http://a.test/back rule denied
  wait                12s     2s  delay=2 source=crawl_delay line=2
  request             14s     0s  http://a.test/back page 302
`)
	}, collyrobots.RetryThrottled(1))
}

// TestDenials checks the spans of pages that are denied, or are sent only because of a dry run.
func TestDenials(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(2, "User-agent: *\nDisallow: /0\n"), "down.test": {"/robots.txt": 500}}
	traced(t, sites, func(t *testing.T, c *tracedCrawl) {
		c.Visit("http://a.test/0")
		c.Visit("http://a.test/1")
		c.Visit("http://a.test/")
		c.Visit("http://down.test/")
		c.want(t, `
collyrobots.page       0s     0s  http://a.test/0 rule denied
  robots.txt           0s     0s  200
collyrobots.page       0s     0s  http://a.test/1 no_rule
  request              0s     0s  http://a.test/1 page 200
collyrobots.page       0s     0s  http://a.test/ budget denied
collyrobots.page       0s     0s  http://down.test/ unreachable denied
  robots.txt           0s     0s  500 error
`)
		for _, s := range c.exporter.GetSpans() {
			if s.Name == "collyrobots.page" && attributeOf(s, "url.full") == "http://a.test/0" {
				if got := attributeOf(s, "collyrobots.decision"); !strings.Contains(got, `"Disallow: /0", line 2`) {
					t.Errorf("the decision is %q", got)
				}
			}
		}
	}, collyrobots.MaxPagesPerHost(1))
	traced(t, sites, func(t *testing.T, c *tracedCrawl) {
		c.Visit("http://a.test/0")
		c.want(t, `
collyrobots.page       0s     0s  http://a.test/0 rule denied
  robots.txt           0s     0s  200
  request              0s     0s  http://a.test/0 page 200
`)
	}, collyrobots.DryRun(true))
}

// TestSharedFile has two pages that wait for one robots.txt.
func TestSharedFile(t *testing.T) {
	traced(t, robotstest.Sites{"a.test": {
		"/robots.txt": takes(time.Second, "User-agent: *\nDisallow: /3\n"), "/1": "", "/2": "", "/3": "",
	}}, func(t *testing.T, c *tracedCrawl) {
		c.Async = true
		c.Visit("http://a.test/1")
		time.Sleep(100 * time.Millisecond)
		c.Visit("http://a.test/2")
		time.Sleep(100 * time.Millisecond)
		c.Visit("http://a.test/3")
		c.Wait()
		c.want(t, `
collyrobots.page       0s     1s  http://a.test/1 no_rule
  robots.txt           0s     1s  200
  request              1s     0s  http://a.test/1 page 200
collyrobots.page    100ms  900ms  http://a.test/2 no_rule
  robots.txt        100ms  900ms  shared linked
  request              1s     0s  http://a.test/2 page 200
collyrobots.page    200ms  800ms  http://a.test/3 rule denied
  robots.txt        200ms  800ms  shared linked
`)
		spans := c.exporter.GetSpans()
		var file trace.SpanID
		for _, s := range spans {
			if s.Name == "robots.txt" && len(s.Links) == 0 {
				file = s.SpanContext.SpanID()
			}
		}
		for _, s := range spans {
			for _, link := range s.Links {
				if link.SpanContext.SpanID() != file {
					t.Errorf("%s has a link to %v, want the request for robots.txt", s.Name, link)
				}
			}
		}
	})
}

// TestClients checks the spans of requests of an http.Client, with and without a span in their
// context, and that no header is sent to the site.
func TestClients(t *testing.T) {
	traced(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "/": func(w http.ResponseWriter, r *http.Request) {
			for name := range r.Header {
				if name != "User-Agent" && name != "Accept-Encoding" && name != "Referer" {
					t.Errorf("the request has the header %s", name)
				}
			}
		},
		"/old": robotstest.Redirect("/"),
	}}, func(t *testing.T, c *tracedCrawl) {
		client := &http.Client{Transport: c.robots.Transport(c.web.Transport())}
		get := func(ctx context.Context, url string) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
		}
		ctx, job := c.tracer.Start(t.Context(), "job", trace.WithTimestamp(time.Now()))
		get(ctx, "http://a.test/old")
		late, cancel := context.WithTimeout(ctx, 2*time.Second)
		get(late, "http://a.test/?late")
		cancel()
		job.End(trace.WithTimestamp(time.Now()))
		get(t.Context(), "http://a.test/?alone")
		turn, err := c.robots.Acquire(ctx, httpRequest(t, "http://a.test/?turn"))
		if err != nil {
			t.Fatal(err)
		}
		turn.Answered(200, nil)
		turn.End()
		c.want(t, `
job                    0s    12s
  collyrobots.page     0s    10s  http://a.test/old no_rule
    robots.txt         0s     0s  200
    wait               0s     5s  delay=5 source=crawl_delay line=2
    request            5s     0s  http://a.test/old page 302
    wait               5s     5s  delay=5 source=crawl_delay line=2
    request           10s     0s  http://a.test/ redirect 200
  collyrobots.page    10s     2s  http://a.test/?late error context deadline exceeded
    wait              10s     2s
  collyrobots.page    15s    10s  http://a.test/?turn no_rule
    wait              15s     5s  delay=5 source=crawl_delay line=2
    robots.txt        20s     0s  200
    wait              20s     5s  delay=5 source=crawl_delay line=2
    request           25s     0s  http://a.test/?turn page 200
collyrobots.page      12s     3s  http://a.test/?alone no_rule error
  wait                12s     3s  delay=5 source=crawl_delay line=2
  request             15s     0s  http://a.test/?alone page 404 error
`)
	})
}

// TestFileOutlivesPage has a page that is given up while its robots.txt is requested. The span of
// the request is still completed.
func TestFileOutlivesPage(t *testing.T) {
	traced(t, robotstest.Sites{"a.test": {"/robots.txt": takes(3*time.Second, "")}}, func(t *testing.T, c *tracedCrawl) {
		client := &http.Client{Transport: c.robots.Transport(c.web.Transport()), Timeout: time.Second}
		_, err := client.Get("http://a.test/")
		if err == nil {
			t.Fatal("got no error")
		}
		time.Sleep(5 * time.Second)
		c.want(t, `
collyrobots.page       0s     1s  http://a.test/ error context deadline exceeded
  robots.txt           0s     3s  200
`)
	})
}

func httpRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestContextOfCollector checks that the pages of a collector are children of the span in its
// Context.
func TestContextOfCollector(t *testing.T) {
	traced(t, robotstest.Sites{"a.test": robotstest.Pages(1, "")}, func(t *testing.T, c *tracedCrawl) {
		ctx, crawl := c.tracer.Start(t.Context(), "crawl", trace.WithTimestamp(c.began))
		c.Context = ctx
		c.Visit("http://a.test/")
		crawl.End(trace.WithTimestamp(time.Now()))
		c.want(t, `
crawl                  0s     0s
  collyrobots.page     0s     0s  http://a.test/ no_rule
    robots.txt         0s     0s  200
    request            0s     0s  http://a.test/ page 200
`)
	})
}

// A fakeSource sends events that a test makes.
type fakeSource struct {
	report.Source
	hear    func(*report.Event)
	stopped bool
}

func (f *fakeSource) Listen(hear func(*report.Event)) (stop func()) {
	f.hear = hear
	return func() { f.stopped = true }
}

// TestMissingEnds checks that the spans of pages whose end is never reported are ended: the oldest
// if there are too many, those without an event for a long time, and the others by stop.
func TestMissingEnds(t *testing.T) {
	began := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	exporter := tracetest.NewInMemoryExporter()
	crawl := new(fakeSource)
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test")
	stop, err := Trace(tracer, crawl)
	if err != nil {
		t.Fatal(err)
	}
	send := func(page int, at time.Duration, kind report.EventKind) {
		crawl.hear(&report.Event{Kind: kind, Page: uint64(page), Time: began.Add(at), URL: "http://a.test/", RequestKind: report.RequestPage})
	}
	const more = 100
	for page := range maxPages + more {
		send(1+page, time.Duration(page), report.EventStarted)
	}
	incomplete := func(want int) {
		t.Helper()
		n := 0
		for _, s := range exporter.GetSpans() {
			if attributeOf(s, "collyrobots.incomplete") == "true" {
				n++
			}
		}
		if n != want {
			t.Errorf("%d spans are incomplete, want %d", n, want)
		}
	}
	incomplete(2 * more)
	send(1, time.Second, report.EventAnswered) // its spans were ended
	send(1+more, time.Minute, report.EventAnswered)
	incomplete(2 * more)
	send(maxPages+more+1, time.Minute+patience, report.EventStarted)
	incomplete(2 * (maxPages + more - 1))
	stop()
	stop()
	incomplete(2 * (maxPages + more))
	send(maxPages+more+2, time.Hour, report.EventStarted)
	if n := len(exporter.GetSpans()); n != 2*(maxPages+more+1) {
		t.Errorf("%d spans, want 2 for each of %d pages", n, maxPages+more+1)
	}
}

// TestRequestWhileFileIsOpen has a page that is sent before the body of its robots.txt is closed.
// It has not waited for its turn in the meantime.
func TestRequestWhileFileIsOpen(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	ts := newTraces(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test"))
	began := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for _, e := range []*report.Event{
		{Kind: report.EventStarted, RequestKind: report.RequestRobots, URL: "http://a.test/robots.txt"},
		{Kind: report.EventStarted, RequestKind: report.RequestPage, URL: "http://a.test/", Waited: time.Second, RobotsWait: time.Second},
		{Kind: report.EventAnswered, RequestKind: report.RequestRobots, URL: "http://a.test/robots.txt", Status: 200},
		{Kind: report.EventAnswered, RequestKind: report.RequestPage, URL: "http://a.test/", Status: 200},
	} {
		began = began.Add(time.Second)
		e.Page = 1
		e.Time = began
		ts.hear(e)
	}
	const want = `collyrobots.page       0s     3s
  robots.txt           0s     2s  200
  request              1s     2s  http://a.test/ page 200
`
	got := textOfSpans(exporter.GetSpans(), began.Add(-3*time.Second))
	if strings.Replace(got, "  http://a.test/\n", "\n", 1) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFilesAreForgotten checks that the number of spans that are kept for links is limited.
func TestFilesAreForgotten(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	ts := newTraces(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test"))
	for page := range 3 * maxFiles {
		e := &report.Event{Kind: report.EventStarted, Page: uint64(1 + page), Time: time.Now(), URL: fmt.Sprintf("http://a%d.test/robots.txt", page), RequestKind: report.RequestRobots}
		ts.hear(e)
		e.Kind = report.EventAnswered
		ts.hear(e)
		if len(ts.files) > maxFiles {
			t.Fatalf("%d files are kept", len(ts.files))
		}
	}
}

// TestNoTracer checks the errors of Trace, and that it accepts a plugin that is not made.
func TestNoTracer(t *testing.T) {
	if stop, err := Trace(nil, nil); stop != nil || err == nil {
		t.Errorf("no tracer: %v", err)
	}
	tracer := sdktrace.NewTracerProvider().Tracer("test")
	for name, crawl := range map[string]report.Source{"nil": nil, "zero": new(collyrobots.Plugin)} {
		stop, err := Trace(tracer, crawl)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stop()
	}
}

// TestNoConnection checks the span of a request that gets no connection.
func TestNoConnection(t *testing.T) {
	traced(t, robotstest.Sites{}, func(t *testing.T, c *tracedCrawl) {
		transport := c.web.Transport()
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(3 * time.Second)
			return nil, errors.New("no route to host")
		}
		client := &http.Client{Transport: c.robots.Transport(transport)}
		if _, err := client.Get("http://down.test/"); err == nil {
			t.Error("got no error")
		}
		c.want(t, `
collyrobots.page       0s     3s  http://down.test/ error no route to host
  request              0s     3s  http://down.test/ page error no route to host
`)
	}, collyrobots.ForHosts("down.test", collyrobots.IgnoreRobots(collyrobots.Permission{By: "the owner", Reference: "a contract", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)})))
}
