package sitemaps

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/sitemap"
)

// TestFollowSitemaps checks which pages and files of the sitemaps are requested, which are denied,
// and the statistics.
func TestFollowSitemaps(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
		t.Run(name, func(t *testing.T) {
			web := robotstest.New(t, kit.Shop())
			var c *kit.Crawl
			var denied []string
			keep := func(e sitemap.Entry) bool {
				d, err := c.Robots.Check(t.Context(), e.Loc)
				if err != nil || !d.Allowed {
					denied = append(denied, fmt.Sprint(d.URL, " ", d.Rule))
				}
				return true
			}
			c = kit.Start(t, web, options, collyrobots.FollowSitemaps(collyrobots.Feed{Keep: keep}))
			c.Visit("http://shop.test/")
			c.Wait()
			if got, want := strings.Join(denied, ", "), "http://shop.test/cart/3 Disallow: /cart"; got != want {
				t.Errorf("got denials %s, want %s", got, want)
			}
			kit.WantSortedURIs(t, web, "shop.test", "/ /1 /2 /5 /6 /a.xml /b.xml.gz /gone.xml /index.xml /robots.txt")
			kit.WantSortedURIs(t, web, "cdn.test", "/7 /moved.xml /robots.txt /shop.xml")
			if got := kit.URIsOf(web.Log("else.test")); got != "" {
				t.Errorf("requests to else.test, which is out of scope: %s", got)
			}
			want := report.FeedStats{Files: 4, FilesFailed: 1, Entries: 8, Fed: 5, OutOfScope: 1, Duplicate: 1, Denied: 1, Errors: 1}
			if got := c.Robots.Stats().Sitemaps; got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// TestFeedOptions checks Since, Keep, Sink and MaxURLs.
func TestFeedOptions(t *testing.T) {
	web := robotstest.New(t, kit.Shop())
	var sunk []string
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{
		Since:   time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC),
		Keep:    func(e sitemap.Entry) bool { return !strings.HasSuffix(e.Loc, "/6") },
		Sink:    func(url string) error { sunk = append(sunk, url); return nil },
		MaxURLs: 3,
	}))
	c.Visit("http://shop.test/")
	slices.Sort(sunk) // several files are read at once
	if got, want := strings.Join(sunk, " "), "http://cdn.test/7 http://shop.test/1 http://shop.test/5"; got != want {
		t.Errorf("got pages %s, want %s", got, want)
	}
	if got := c.Robots.Stats().Sitemaps; got.Old != 1 || got.Fed != 3 {
		t.Errorf("got stats %+v", got)
	}
}

// TestContextOfFedPages checks that the context of a page from a sitemap has the URL of the
// sitemap and the lastmod.
func TestContextOfFedPages(t *testing.T) {
	web := robotstest.New(t, kit.Shop())
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	contexts := map[string]string{}
	c.OnResponse(func(r *colly.Response) {
		contexts[r.Request.URL.Path] = r.Ctx.Get(collyrobots.CtxSitemap) + " " + r.Ctx.Get(collyrobots.CtxLastMod)
	})
	c.Visit("http://shop.test/")
	for path, want := range map[string]string{
		"/":  " ",
		"/1": "http://shop.test/a.xml ",
		"/5": "http://shop.test/b.xml.gz 2024-05-01T00:00:00Z",
		"/6": "http://cdn.test/moved.xml ",
	} {
		if contexts[path] != want {
			t.Errorf("%s: got context %q, want %q", path, contexts[path], want)
		}
	}
}

// bigShop returns a site with n pages in one sitemap.
func bigShop(n int, robots string) robotstest.Sites {
	s := robotstest.Pages(n, robots+"Sitemap: http://a.test/map.xml\n")
	var locs []string
	for i := range n {
		locs = append(locs, fmt.Sprintf("http://a.test/%d", i))
	}
	s["/"], s["/map.xml"] = robotstest.Page(), robotstest.Sitemap(locs...)
	return robotstest.Sites{"a.test": s}
}

// TestWindow checks that Window bounds the pages that are in flight at once.
func TestWindow(t *testing.T) {
	kit.InBubble(t, bigShop(300, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
		var under, most atomic.Int32
		for i := range 300 {
			web.Set("a.test", fmt.Sprint("/", i), kit.Slowly(time.Second, &under, &most))
		}
		c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{Window: 5}))
		c.Visit("http://a.test/")
		c.Wait()
		if n := most.Load(); n != 5 {
			t.Errorf("%d pages were in flight at once, want 5", n)
		}
		if n := len(web.Log("a.test")); n != 303 {
			t.Errorf("%d requests, want 303", n)
		}
	})
}

// TestWindowAfterAborts checks that pages that a later callback aborts do not stay in the window.
// Colly calls no hook for them.
func TestWindowAfterAborts(t *testing.T) {
	kit.InBubble(t, bigShop(12, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{Window: 4}))
		c.OnRequest(func(r *colly.Request) {
			if r.URL.Path == "/1" || r.URL.Path == "/2" {
				r.Abort()
			}
		})
		c.Visit("http://a.test/")
		c.Wait()
		if n := len(web.Log("a.test")); n != 13 {
			t.Errorf("%d requests, want 13: %s", n, kit.URIsOf(web.Log("a.test")))
		}
	})
}

// TestWellKnownSitemaps checks that the well-known files are requested if robots.txt names no
// sitemap.
func TestWellKnownSitemaps(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/": robotstest.Page(), "/sitemap.xml": robotstest.Sitemap("http://a.test/1"), "/1": robotstest.Page(), "/sitemap_index.xml": robotstest.Page()},
		"b.test": {"/": robotstest.Page(), "/sitemap_index.xml": robotstest.SitemapIndex("http://b.test/map.xml"), "/map.xml": robotstest.Sitemap("http://b.test/1"), "/1": robotstest.Page()},
		"c.test": {"/robots.txt": 503},
		"d.test": {"/robots.txt": "Sitemap: http://d.test/map.xml", "/": robotstest.Page(), "/map.xml": robotstest.Sitemap("http://d.test/1"), "/1": robotstest.Page()},
	})
	for _, wellKnown := range []bool{false, true} {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{WellKnown: wellKnown}))
		for _, host := range []string{"a", "b", "c", "d"} {
			c.Visit("http://" + host + ".test/")
		}
		if named := c.Robots.Stats().Sitemaps.Fed == 1; named == wellKnown {
			t.Errorf("WellKnown %v: got stats %+v", wellKnown, c.Robots.Stats().Sitemaps)
		}
	}
	for host, want := range map[string]string{
		"a.test": "/robots.txt / /robots.txt / /sitemap.xml /1",
		"b.test": "/robots.txt / /robots.txt / /sitemap.xml /sitemap_index.xml /map.xml /1",
		"c.test": "/robots.txt /robots.txt",
		"d.test": "/robots.txt / /map.xml /1 /robots.txt / /map.xml /1",
	} {
		if got := kit.URIsOf(web.Log(host)); got != want {
			t.Errorf("%s: got requests %s, want %s", host, got, want)
		}
	}
}

// TestSitemapOfDisallowedSite checks that the sitemaps of a site are read although its start page
// is disallowed.
func TestSitemapOfDisallowedSite(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /\nAllow: /map.xml\nAllow: /open\nSitemap: http://a.test/map.xml\n",
		"/map.xml":    robotstest.Sitemap("http://a.test/open", "http://a.test/closed"), "/open": robotstest.Page(), "/closed": robotstest.Page(),
	}})
	c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	c.Visit("http://a.test/")
	c.Wait()
	kit.WantURIs(t, web, "a.test", "/robots.txt /map.xml /open")
}

// TestSitemapsObeyRobotsTxtAndDelay checks that a disallowed sitemap is not requested, also after
// a redirect, and that sitemaps keep the delay.
func TestSitemapsObeyRobotsTxtAndDelay(t *testing.T) {
	sites := robotstest.Sites{"a.test": {
		"/robots.txt":  "User-agent: *\nCrawl-delay: 3600\nDisallow: /closed\nSitemap: http://a.test/closed.xml\nSitemap: /bad\nSitemap: http://a.test/moved.xml\nSitemap: http://a.test/map.xml",
		"/":            robotstest.Page(),
		"/closed.xml":  robotstest.Sitemap("http://a.test/1"),
		"/moved.xml":   robotstest.Redirect("/closed.xml"),
		"/map.xml":     robotstest.Sitemap("http://a.test/2"),
		"/1":           robotstest.Page(),
		"/2":           robotstest.Page(),
		"/bad":         robotstest.Page(),
		"/robots.txt2": robotstest.Page(),
	}}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.Visit("http://a.test/")
		c.Wait()
		kit.WantSortedURIs(t, web, "a.test", "/ /2 /bad /map.xml /moved.xml /robots.txt")
		kit.WantNoSooner(t, web, "a.test", time.Hour, 6) // the wait is longer than any time limit, and does not count
		if !strings.Contains(c.Logged.String(), "closed.xml") {
			t.Errorf("the log does not name closed.xml: %s", c.Logged)
		}
	})
}

// TestLargeTruncatedSitemap checks that the complete entries of a truncated sitemap are crawled,
// even if it is so large that it goes through a file.
func TestLargeTruncatedSitemap(t *testing.T) {
	shop := bigShop(3, kit.NoDenys)
	whole := shop["a.test"]["/map.xml"].(string)
	filler := "<!--" + strings.Repeat("x", 1<<20) + "-->"
	large := strings.Replace(whole, "<url>", filler+"<url>", 1)
	shop["a.test"]["/map.xml"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(large)))
		w.Write([]byte(large[:strings.Index(large, "<loc>http://a.test/2")]))
		panic(http.ErrAbortHandler)
	})
	web := robotstest.New(t, shop)
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
	c.Visit("http://a.test/")
	kit.WantURIs(t, web, "a.test", "/robots.txt / /map.xml /map.xml /map.xml /0 /1")
	if got := c.Robots.Stats().Sitemaps; got.Errors != 1 || got.FilesCut != 1 || got.Fed != 2 {
		t.Errorf("got stats %+v, want 2 fed pages and one truncated file", got)
	}
}

// TestContextEndsFeed checks that the end of the collector's context ends the feed.
func TestContextEndsFeed(t *testing.T) {
	kit.InBubble(t, bigShop(500, "User-agent: *\nCrawl-delay: 0.1\n"), func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.Context = ctx
		var done atomic.Int32
		c.OnScraped(func(r *colly.Response) {
			if done.Add(1) == 3 {
				cancel()
			}
		})
		c.Visit("http://a.test/")
		c.Wait()
		if n := len(web.Log("a.test")); n > 2+3+1 { // robots.txt and the sitemap, three pages, one in flight
			t.Errorf("%d requests, some after the end of the context: %s", n, kit.URIsOf(web.Log("a.test")))
		}
	})
}

// TestNewestFirst checks the order and the number of pages with NewestFirst, and the combinations
// of options that New rejects.
func TestNewestFirst(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "Sitemap: http://a.test/index.xml",
		"/":           robotstest.Page(),
		"/index.xml":  robotstest.SitemapIndex("http://a.test/1.xml", "http://a.test/2.xml"),
		"/1.xml":      robotstest.Sitemap("http://a.test/undated", "2020-01-01 http://a.test/2020", "2024-01-01 http://a.test/2024"),
		"/2.xml":      robotstest.Sitemap("2022-01-01 http://a.test/2022", "2023-01-01 http://a.test/2023", "1999-01-01 http://a.test/1999"),
	}})
	var fed []string
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{
		NewestFirst: true, MaxURLs: 3, Sink: func(url string) error { fed = append(fed, url[len("http://a.test/"):]); return nil },
	}))
	c.Visit("http://a.test/")
	if got, want := strings.Join(fed, " "), "2024 2023 2022"; got != want {
		t.Errorf("got pages %s, want %s", got, want)
	}
	for _, bad := range []collyrobots.Feed{
		{NewestFirst: true}, {NewestFirst: true, MaxURLs: 1, Resume: true}, {Resume: true},
	} {
		if _, err := collyrobots.New(collyrobots.FollowSitemaps(bad)); err == nil {
			t.Errorf("New accepted %+v", bad)
		}
	}
}
