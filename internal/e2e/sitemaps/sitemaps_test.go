package sitemaps

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
		Since: time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC),
		Keep:  func(e sitemap.Entry) bool { return !strings.HasSuffix(e.Loc, "/6") },
		Sink: func(_ context.Context, e sitemap.Entry) error {
			sunk = append(sunk, e.Loc+" "+e.LastMod.Format("2006"))
			return nil
		},
		MaxURLs: 3,
	}))
	c.Visit("http://shop.test/")
	slices.Sort(sunk) // several files are read at once
	if got, want := strings.Join(sunk, ", "), "http://cdn.test/7 0001, http://shop.test/1 0001, http://shop.test/5 2024"; got != want {
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
