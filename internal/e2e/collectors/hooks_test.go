package collectors

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestCallbacksAfterAttach checks the schedule of a crawl of pages 0 to 3 with a callback that is
// registered after Attach. It is called after the hook of the plugin, which therefore does not know
// what it changes.
func TestCallbacksAfterAttach(t *testing.T) {
	at := func(path string, f func(c *kit.Crawl, r *colly.Request)) func(*kit.Crawl, *colly.Request) {
		return func(c *kit.Crawl, r *colly.Request) {
			if r.URL.Path == path && r.URL.Host == "a.test" {
				f(c, r)
			}
		}
	}
	abort := at("/1", func(_ *kit.Crawl, r *colly.Request) { r.Abort() })
	visit := at("/1", func(c *kit.Crawl, _ *colly.Request) {
		c.Visit("http://a.test/4")
		c.Visit("http://a.test/closed")
	})
	cases := []struct {
		name      string
		onRequest func(*kit.Crawl, *colly.Request)
		onHeaders func(*kit.Crawl, *colly.Request) // called in OnRequestHeaders
		want      string
		async     string // the schedule of an async collector, if it differs
		other     string // the schedule of b.test
	}{
		{name: "nothing", want: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3"},
		{
			// The plugin does not learn of it. The next page waits until the turn expires, one
			// delay later.
			name: "abort", onRequest: abort,
			want: "0s /robots.txt, 2s /0, 6s /2, 8s /3",
		},
		{
			// The request has already taken its start.
			name: "abort in OnRequestHeaders", onHeaders: abort,
			want: "0s /robots.txt, 2s /0, 6s /2, 8s /3",
		},
		{
			name: "rewrite to a disallowed page", onRequest: at("/1", func(_ *kit.Crawl, r *colly.Request) { r.URL.Path = "/closed" }),
			want: "0s /robots.txt, 2s /0, 4s /2, 6s /3",
		},
		{
			name: "rewrite to a disallowed page in OnRequestHeaders", onHeaders: at("/1", func(_ *kit.Crawl, r *colly.Request) { r.URL.Path = "/closed" }),
			want: "0s /robots.txt, 2s /0, 6s /2, 8s /3",
		},
		{
			name: "rewrite to another page", onRequest: at("/1", func(_ *kit.Crawl, r *colly.Request) { r.URL.Path = "/4" }),
			want: "0s /robots.txt, 2s /0, 4s /4, 6s /2, 8s /3",
		},
		{
			name: "rewrite to https", onRequest: at("/1", func(_ *kit.Crawl, r *colly.Request) { r.URL.Scheme = "https" }),
			want: "0s /robots.txt, 2s /0, 4s /robots.txt, 6s /1, 8s /2, 10s /3",
		},
		{
			// The robots.txt of b.test is fetched first. The turn at a.test expires.
			name: "rewrite to another host", onRequest: at("/1", func(_ *kit.Crawl, r *colly.Request) { r.URL.Host = "b.test" }),
			want: "0s /robots.txt, 2s /0, 7s /2, 9s /3", async: "0s /robots.txt, 2s /0, 4s /2, 6s /3", other: "4s /robots.txt, 7s /1",
		},
		{
			name: "rewrite to a disallowed page of another host", onRequest: at("/2", func(_ *kit.Crawl, r *colly.Request) { r.URL.Host = "b.test" }),
			other: "6s /robots.txt",
		},
		{
			// In a sync crawl, the page waits for the page that it visits. That page gets its turn
			// when the turn of the first page expires.
			name: "visit the same host", onRequest: visit,
			want: "0s /robots.txt, 2s /0, 6s /4, 8s /1, 10s /2, 12s /3", async: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3, 10s /4",
		},
		{
			name: "visit the same host in OnRequestHeaders", onHeaders: visit,
			want: "0s /robots.txt, 2s /0, 6s /4, 8s /1, 10s /2, 12s /3", async: "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3, 10s /4",
		},
	}
	for _, tc := range cases {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{
					"a.test": robotstest.Pages(5, "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n"),
					"b.test": robotstest.Pages(5, "User-agent: *\nCrawl-delay: 3\nDisallow: /2"),
				}, func(t *testing.T, web *robotstest.Web) {
					c := kit.Start(t, web, options)
					if tc.onRequest != nil {
						c.OnRequest(func(r *colly.Request) { tc.onRequest(c, r) })
					}
					if tc.onHeaders != nil {
						c.OnRequestHeaders(func(r *colly.Request) { tc.onHeaders(c, r) })
					}
					for i := range 4 {
						c.Visit(fmt.Sprint("http://a.test/", i))
						synctest.Wait() // the page waits
					}
					c.Wait()
					want := tc.want
					if mode == "async" && tc.async != "" {
						want = tc.async
					}
					if want != "" {
						kit.WantSchedule(t, web, "a.test", want)
					}
					kit.WantNoSooner(t, web, "a.test", 2*time.Second, len(web.Log("a.test")))
					kit.WantSchedule(t, web, "b.test", tc.other)
				})
			})
		}
	}
}

// TestCallbacksBeforeAttach checks that callbacks that are registered before Attach are called
// before the hook of the plugin, which uses their changes.
func TestCallbacksBeforeAttach(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test": robotstest.Pages(5, "User-agent: *\nDisallow: /4\nCrawl-delay: 2\n\nUser-agent: OtherBot\nDisallow: /3\nCrawl-delay: 1"),
		"b.test": robotstest.Pages(5, "User-agent: *\nDisallow: /2"),
	}, func(t *testing.T, web *robotstest.Web) {
		c := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
		c.WithTransport(web.Transport())
		c.OnRequest(func(r *colly.Request) {
			r.Headers.Set("User-Agent", "OtherBot/2.0")
			switch r.URL.Path {
			case "/0":
				r.Abort() // costs no delay
			case "/1", "/2":
				r.URL.Host = "b.test"
			}
		})
		_, err := collyrobots.WithRobots(c)
		kit.Must(t, err)
		for i := range 5 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			synctest.Wait()
		}
		c.Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /4")
		kit.WantSchedule(t, web, "b.test", "0s /robots.txt, 0s /1")
		for _, h := range web.Log("") {
			if ua := h.Header.Get("User-Agent"); ua != "OtherBot/2.0" {
				t.Errorf("%s was requested with user agent %s", h.URI, ua)
			}
		}
	})
}

// TestVisitsWhileResponseIsOpen has a synchronous spider that visits a host while it handles a
// response of that host. It must not wait for itself.
func TestVisitsWhileResponseIsOpen(t *testing.T) {
	for name, register := range map[string]func(c *kit.Crawl, visit func(path string)){
		"OnResponseHeaders": func(c *kit.Crawl, visit func(string)) {
			c.OnResponseHeaders(func(r *colly.Response) { visit(r.Request.URL.Path) })
		},
		"redirect handler": func(c *kit.Crawl, visit func(string)) {
			c.SetRedirectHandler(func(r *http.Request, _ []*http.Request) error { visit(r.URL.Path); return nil })
		},
		"OnResponse": func(c *kit.Crawl, visit func(string)) {
			c.OnResponse(func(r *colly.Response) { visit(r.Request.URL.Path) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 2", "/0": robotstest.Redirect("/1"), "/1": robotstest.Page(), "/2": robotstest.Page(), "/3": robotstest.Page(),
			}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil)
				c.SetRequestTimeout(0)
				register(c, func(path string) {
					if path == "/1" {
						c.Visit("http://a.test/2")
					}
				})
				c.Visit("http://a.test/0")
				c.Visit("http://a.test/3")
				kit.WantPace(t, web, "a.test", 2*time.Second, 5)
				if len(c.Pages) != 3 || len(c.Errs) != 0 {
					t.Errorf("got pages %v and errors %v", c.Pages, c.Errs)
				}
			})
		})
	}
}

// TestVisitsFromEveryCallback has a synchronous spider that visits pages in its callbacks. The
// plugin must have released the host of the page by then.
func TestVisitsFromEveryCallback(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(6, "User-agent: *\nCrawl-delay: 10")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		next := 0
		visit := func() {
			if next < 5 {
				next++
				c.Visit(fmt.Sprint("http://a.test/", next))
			}
		}
		c.OnResponse(func(*colly.Response) { visit() })
		c.OnHTML("html", func(*colly.HTMLElement) { visit() })
		c.OnScraped(func(*colly.Response) { visit() })
		c.OnError(func(*colly.Response, error) { visit() })
		c.Visit("http://a.test/missing")
		kit.WantNoSooner(t, web, "a.test", 10*time.Second, 7)
	})
}

// TestHeadIsCheckedAndPaced checks HEAD requests, which Colly's built-in check always allows.
func TestHeadIsCheckedAndPaced(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 1\nDisallow: /2")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		c.CheckHead = true
		for i := range 3 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Head("http://a.test/2?head")
		c.Head("http://a.test/1?head") // status 404
		kit.WantPace(t, web, "a.test", time.Second, 6)
		var methods []string
		for _, r := range web.Log("a.test") {
			methods = append(methods, r.Method+" "+r.URI)
		}
		if got, want := strings.Join(methods, ", "), "GET /robots.txt, HEAD /0, GET /0, HEAD /1, GET /1, HEAD /1?head"; got != want {
			t.Errorf("requests to a.test: %s, want %s", got, want)
		}
		kit.WantDenied(t, c, "http://a.test/2", report.ReasonRule, 3)
		kit.WantDenied(t, c, "http://a.test/2?head", report.ReasonRule, 3)
	})
}

// TestMaxRequestsAndMaxDepth checks that MaxRequests does not count robots.txt, and that MaxDepth
// counts links.
func TestMaxRequestsAndMaxDepth(t *testing.T) {
	a := robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 1"}
	for i := range 10 {
		a[fmt.Sprint("/", i)] = robotstest.Page(fmt.Sprint("/", i+1))
	}
	for name, tc := range map[string]struct {
		option colly.CollectorOption
		want   string
	}{
		"MaxRequests": {colly.MaxRequests(3), "0s /robots.txt, 1s /0, 2s /1, 3s /2"},
		"MaxDepth":    {colly.MaxDepth(2), "0s /robots.txt, 1s /0, 2s /1"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, append(kit.Async, tc.option)).Follow()
				c.Visit("http://a.test/0")
				c.Wait()
				kit.WantSchedule(t, web, "a.test", tc.want)
			})
		})
	}
}

// TestCacheHitsTakeNoStart checks that pages from CacheDir do not wait and do not delay other
// pages. A second crawl requests only the new pages, without a pause for the others.
func TestCacheHitsTakeNoStart(t *testing.T) {
	a := robotstest.Pages(20, "User-agent: *\nCrawl-delay: 10")
	kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
		dir := t.TempDir()
		filler := colly.NewCollector(colly.CacheDir(dir)) // without a plugin
		filler.WithTransport(web.Transport())
		for i := range 20 {
			if i%4 != 0 {
				filler.Visit(fmt.Sprint("http://a.test/", i))
			}
		}
		web.Reset()
		c := kit.Start(t, web, append(kit.Async, colly.CacheDir(dir)))
		began := time.Now()
		atOnce := 0
		var mu sync.Mutex
		c.OnResponse(func(*colly.Response) {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Equal(began) {
				atOnce++
			}
		})
		for i := range 20 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		kit.WantPace(t, web, "a.test", 10*time.Second, 1+5)
		if s := c.Robots.Stats().Hosts[0]; s.Requests != 1+5 || s.Pages != 20 || len(c.Pages) != 20 || atOnce != 15 {
			t.Errorf("got %d requests, %d pages, %d of them at once, want 6, 20 and 15", s.Requests, s.Pages, atOnce)
		}
	})
}

// TestBrokenXMLReleasesTheHostOnce checks a page with broken XML. Colly calls OnError and then
// OnScraped for it. The plugin must release the host only once.
func TestBrokenXMLReleasesTheHostOnce(t *testing.T) {
	a := robotstest.Pages(6, "")
	for path := range a {
		a[path] = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(out, "<a><b></a>")
		})
	}
	a["/robots.txt"] = "User-agent: *\nCrawl-delay: 1\nSitemap: http://a.test/map.xml"
	a["/map.xml"] = robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "http://a.test/5")
	kit.InBubble(t, robotstest.Sites{"a.test": a}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{Window: 1}))
		c.OnXML("//b", func(*colly.XMLElement) {})
		scraped := 0
		c.OnScraped(func(*colly.Response) { c.Note(func() { scraped++ }) })
		c.Visit("http://a.test/0")
		c.Wait()
		kit.WantPace(t, web, "a.test", time.Second, 8)
		if len(c.Errs) != 6 || scraped != 6 {
			t.Errorf("got %d calls of OnError and %d of OnScraped, want 6 and 6", len(c.Errs), scraped)
		}
	})
}

// TestEveryRequestTakesOneStart checks that a request takes exactly one start of its host under
// each option of a collector.
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
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 1", "/": robotstest.Page(), "/1": robotstest.Redirect("http://x:y@a.test/2"), "/2": robotstest.Page(), "/3": 404,
			}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, options)
				for _, u := range []string{"http://a.test/", "http://user:word@a.test/1", "HTTP://A.TEST:80/3", "https://a.test:443/"} {
					c.Visit(u)
				}
				kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /, 2s /1, 3s /2, 4s /3, 5s /robots.txt, 6s /")
			})
		})
	}
}

// TestAbortedRequestsDoNotCount checks a request that an OnRequestHeaders callback aborts after it
// has taken its turn. It was not sent, so Stats must not count it, and listeners must get no event.
// A request whose callback takes so long that its turn expires must count once.
func TestAbortedRequestsDoNotCount(t *testing.T) {
	for name, robots := range map[string]string{"without a delay": kit.NoDenys, "with a delay": "User-agent: *\nCrawl-delay: 2"} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, robots)}, func(t *testing.T, web *robotstest.Web) {
				started := kit.Hear(report.EventStarted)
				c := kit.Start(t, web, kit.Async, started.On())
				c.OnRequestHeaders(func(r *colly.Request) {
					switch r.URL.Path[1] % 3 {
					case 0:
						r.Abort()
					case 1:
						time.Sleep(3 * time.Second)
					}
				})
				for i := range 9 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				s, log := c.Robots.Stats(), web.Log("a.test")
				if n := len(started.Wait()); len(log) != 7 || s.Totals.Requests != len(log) || n != len(log) {
					t.Errorf("got %d requests in Stats, %d events, %d requests in the log:\n%s", s.Totals.Requests, n, len(log), log)
				}
			})
		})
	}
}

func TestLaterCallbacks(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 0.1", "/": robotstest.Page(), "/x": robotstest.Page(), "/y": robotstest.Page(), "/z": robotstest.Page()},
	}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		c.OnRequest(func(r *colly.Request) {
			switch r.URL.Path {
			case "/abort":
				r.Abort()
			case "/rewrite":
				r.URL.Path = "/x"
			}
		})
		c.Visit("http://a.test/abort")
		err := c.Visit("http://a.test/rewrite")
		c.Visit("http://a.test/y")
		c.Visit("http://a.test/z")
		if !errors.Is(err, colly.ErrRobotsTxtBlocked) || errors.Is(err, colly.ErrAbortedBeforeRequest) {
			t.Errorf("a URL rewritten to a disallowed one: Visit returned %v, want ErrRobotsTxtBlocked", err)
		}
		kit.WantDenied(t, c, "http://a.test/x", report.ReasonRule, 2)
		kit.WantURIs(t, web, "a.test", "/robots.txt /y /z")
	})
}
