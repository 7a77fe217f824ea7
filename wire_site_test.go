package collyrobots_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots"
)

// A robots.txt that changes counts for the pages that wait already: for those in line, and for the one that has its ticket. It is
// asked for once a day, in its turn.
func TestRobotsTxtMayChangeWhilePagesWait(t *testing.T) {
	a := pages(40, "")
	onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
		a["/robots.txt"] = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			if time.Since(w.began) < 20*time.Hour {
				fmt.Fprint(out, "User-agent: *\nCrawl-delay: 3600")
			} else {
				fmt.Fprint(out, "User-agent: *\nCrawl-delay: 7200\nDisallow: /3")
			}
		})
		c := w.start(t, async)
		for i := range 40 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			synctest.Wait()
		}
		c.Wait()
		hits := w.hits("a.test")
		if want := 2 + 30; len(hits) != want { // 3 is through by then, 30 to 39 are not
			t.Fatalf("%d requests, want %d:\n%s", len(hits), want, w.schedule("a.test"))
		}
		for i, h := range hits[1:] {
			gap, want := h.at.Sub(hits[i].at).Round(time.Microsecond), time.Hour
			if i >= 24 {
				want = 2 * time.Hour
			}
			if gap != want {
				t.Errorf("%v before %s, want %v", gap, h.uri, want)
			}
			if h.uri == "/robots.txt" && h.at.Sub(w.began) != 24*time.Hour {
				t.Errorf("robots.txt once more at %v, want 24h", h.at.Sub(w.began))
			}
		}
	})
}

// A host that says when to come back is not asked before, whatever waits for it, and others do not wait with it.
func TestRetryAfterHoldsEveryPage(t *testing.T) {
	a := pages(4, "User-agent: *\nCrawl-delay: 1")
	a["/0"] = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Retry-After", "120")
		out.WriteHeader(http.StatusServiceUnavailable)
	})
	onWire(t, map[string]site{"a.test": a, "b.test": pages(4, "User-agent: *\nCrawl-delay: 1")}, func(t *testing.T, w *wire) {
		c := w.start(t, async)
		for i := range 4 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			c.Visit(fmt.Sprint("http://b.test/", i))
			synctest.Wait()
		}
		c.Wait()
		w.wantSchedule(t, "a.test", "0s /robots.txt, 1s /0, 2m1s /1, 2m2s /2, 2m3s /3")
		w.wantPace(t, "b.test", time.Second, 5)
	})
}

// A host whose certificate is of an unknown CA has no robots.txt that can be read, so RFC 9309 closes it. A page that fails is
// reported as ever, and the next one comes in its turn.
func TestConnectionsThatFail(t *testing.T) {
	onWire(t, map[string]site{"a.test": pages(3, "User-agent: *\nCrawl-delay: 1")}, func(t *testing.T, w *wire) {
		c := w.start(t, nil)
		trusted := w.client.TLSClientConfig
		c.WithTransport(&http.Transport{DialContext: w.dialPipe})
		c.Visit("https://a.test/0")
		wantDenied(t, c, "https://a.test/0", collyrobots.ReasonUnreachable, 0)
		if n := len(w.hits("")); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
		other := w.transport(t)
		other.TLSClientConfig = trusted
		c.WithTransport(other)
		refused := errors.New("refused")
		c.OnRequestHeaders(func(r *colly.Request) {
			if r.URL.Path == "/1" {
				c.WithTransport(roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused }))
			}
		})
		began := time.Now()
		c.Visit("http://a.test/0")
		if err := c.Visit("http://a.test/1"); !errors.Is(err, refused) {
			t.Errorf("Visit: %v, want the transport's error", err)
		}
		c.WithTransport(other)
		c.Visit("http://a.test/2")
		w.began = began
		w.wantSchedule(t, "a.test", "0s /robots.txt, 1s /0, 3s /2")
	})
}

// Broken XML makes Colly call OnError and then OnScraped for one request. What it held is given back once.
func TestBrokenXMLGivesBackOnce(t *testing.T) {
	a := pages(6, "")
	for path := range a {
		a[path] = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(out, "<a><b></a>")
		})
	}
	a["/robots.txt"] = "User-agent: *\nCrawl-delay: 1\nSitemap: http://a.test/map.xml"
	a["/map.xml"] = urlset("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "http://a.test/5")
	onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
		c := w.start(t, async, collyrobots.FollowSitemaps(collyrobots.Feed{Window: 1}))
		c.OnXML("//b", func(*colly.XMLElement) {})
		scraped := 0
		c.OnScraped(func(*colly.Response) { c.note(func() { scraped++ }) })
		c.Visit("http://a.test/0")
		c.Wait()
		w.wantPace(t, "a.test", time.Second, 8)
		if len(c.errs) != 6 || scraped != 6 {
			t.Errorf("%d errors and %d scraped, want 6 and 6", len(c.errs), scraped)
		}
	})
}

// A download that is given up ends the request: the next page comes a delay after its start.
func TestAnAbortedDownloadEndsTheRequest(t *testing.T) {
	a := pages(3, "User-agent: *\nCrawl-delay: 1")
	a["/1"] = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprintln(out, strings.Repeat("x", 1000))
			out.(http.Flusher).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	})
	onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
		c := w.start(t, async)
		c.OnResponseHeaders(func(r *colly.Response) {
			if r.Request.URL.Path == "/1" {
				r.Request.Abort()
			}
		})
		for i := range 3 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			synctest.Wait()
		}
		c.Wait()
		w.wantPace(t, "a.test", time.Second, 4)
		if err := c.errs["http://a.test/1"]; !errors.Is(err, colly.ErrAbortedAfterHeaders) {
			t.Errorf("OnError was told %v", err)
		}
	})
}

// What else a collector may be set to does not cost a second start, nor spare one.
func TestEveryRequestTakesOneStart(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{
		"TraceHTTP":        {colly.TraceHTTP()},
		"Debugger":         {colly.Debugger(&debug.LogDebugger{Output: &strings.Builder{}})},
		"MaxBodySize":      {colly.MaxBodySize(1)},
		"AllowURLRevisit":  {colly.AllowURLRevisit()},
		"DetectCharset":    {colly.DetectCharset()},
		"IgnoreRobotsTxt":  {colly.IgnoreRobotsTxt()},
		"ParseHTTPErrors":  {colly.ParseHTTPErrorResponse()},
		"Headers":          {colly.Headers(map[string]string{"Authorization": "Basic eDp5", "Accept-Encoding": "gzip"})},
		"CacheDir, unused": {colly.CacheDir(t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 1", "/": page(), "/1": redirect("http://x:y@a.test/2"), "/2": page(), "/3": 404,
			}}, func(t *testing.T, w *wire) {
				c := w.start(t, options)
				for _, u := range []string{"http://a.test/", "http://user:word@a.test/1", "HTTP://A.TEST:80/3", "https://a.test:443/"} {
					c.Visit(u)
				}
				w.wantSchedule(t, "a.test", "0s /robots.txt, 1s /, 2s /1, 3s /2, 4s /3, 5s /robots.txt, 6s /")
			})
		})
	}
}
