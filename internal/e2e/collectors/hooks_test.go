package collectors

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
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
