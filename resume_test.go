package collyrobots_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// resumed starts a crawl that goes on where the last one with the same store stopped.
func resumed(t *testing.T, web *robotstest.Web, s store.Store) *crawl {
	return start(t, web, async, collyrobots.Store(s), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 5}))
}

func TestResumeLeavesOutWhatHasNotChanged(t *testing.T) {
	s := bigShop(3, noDenys)["a.test"]
	old, validated := s["/map.xml"].(string), new(atomic.Int32)
	s["/robots.txt"] = noDenys + "Sitemap: http://a.test/index.xml"
	s["/index.xml"] = robotstest.SitemapIndex("http://a.test/map.xml", "http://a.test/etag.xml")
	s["/etag.xml"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			validated.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, robotstest.Sitemap("http://a.test/0"))
	})
	web := robotstest.New(t, robotstest.Sites{"a.test": s})
	records := store.Memory()
	for run, want := range []collyrobots.FeedStats{
		{Files: 3, Entries: 4, Fed: 3, Duplicate: 1},
		{Files: 1, FilesUnchanged: 2},
		{Files: 2, FilesUnchanged: 1, Entries: 4, Fed: 4},
	} {
		if run == 2 {
			web.Set("a.test", "/map.xml", strings.Replace(old, "</urlset>", "<url><loc>http://a.test/</loc></url></urlset>", 1))
		}
		c := resumed(t, web, records)
		c.AllowURLRevisit = true
		c.Visit("http://a.test/")
		c.Wait()
		if got := c.robots.Stats().Sitemaps; got != want {
			t.Errorf("run %d:\ngot  %+v\nwant %+v", run, got, want)
		}
	}
	if n := validated.Load(); n != 2 {
		t.Errorf("%d conditional requests were answered 304, want 2", n)
	}
}

// A run that is interrupted goes on in the next: no page is lost, and few come twice.
func TestResumeGoesOnWhereItStopped(t *testing.T) {
	web := robotstest.New(t, bigShop(500, noDenys))
	records := store.Memory()
	c := resumed(t, web, records)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Context = ctx
	c.OnScraped(func(r *colly.Response) {
		if r.Request.URL.Path == "/250" {
			cancel()
		}
	})
	c.Visit("http://a.test/")
	c.Wait()
	first := len(web.Log("a.test")) - len([]string{"/robots.txt", "/", "/map.xml"}) // pages: /250 and all before it, but for four in flight

	c = resumed(t, web, records)
	c.Visit("http://a.test/")
	c.Wait()
	got := c.robots.Stats().Sitemaps
	if first < 251-4 || first == 500 || got.Resumed < first-5 || got.Resumed > first || got.Fed != 500-got.Resumed || got.Entries != 500 {
		t.Errorf("%d pages in the first run, second run: %+v", first, got)
	}
	asked := map[string]int{}
	for _, r := range web.Log("a.test") {
		asked[r.URI]++
	}
	again := 0
	for i := range 500 {
		n := asked[fmt.Sprint("/", i)]
		if n != 1 && n != 2 {
			t.Errorf("/%d was asked for %d times", i, n)
		}
		again += n - 1
	}
	if again > 5 { // those that were in flight
		t.Errorf("%d pages came twice, want at most the window of 5", again)
	}
}

// A file that is cut is never done: what was missing comes when it is whole.
func TestResumeOfACutFile(t *testing.T) {
	whole := robotstest.Gzip(robotstest.Sitemap("http://a.test/0", "http://a.test/1", "http://a.test/2"))
	s := bigShop(3, noDenys)["a.test"]
	s["/map.xml"] = whole[:len(whole)-20]
	web := robotstest.New(t, robotstest.Sites{"a.test": s})
	records := store.Memory()
	for run := range 3 {
		if run == 2 {
			web.Set("a.test", "/map.xml", whole)
		}
		c := resumed(t, web, records)
		c.Visit("http://a.test/")
		c.Wait()
		if got := c.robots.Stats().Sitemaps; (got.FilesCut == 1) != (run < 2) || got.FilesUnchanged != 0 {
			t.Errorf("run %d: %+v", run, got)
		}
	}
	if got := web.Log("a.test").URIs(); strings.Count(got, " /2") != 1 {
		t.Errorf("a.test was asked for %s, want /2 once", got)
	}
}

// Colly tells nobody that a page waits for a LimitRule, before it is sent or after: it is done all
// the same.
func TestResumeOfPagesThatWaitForALimitRule(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"": async, "DetectCharset": append(detecting, async...)} {
		for _, rule := range []colly.LimitRule{{DomainGlob: "*", Parallelism: 1, Delay: 4 * time.Second}, {DomainGlob: "*", Parallelism: 2, Delay: 15 * time.Second}} {
			t.Run(fmt.Sprint(name, rule.Delay), func(t *testing.T) {
				inBubble(t, bigShop(40, noDenys), func(t *testing.T, web *robotstest.Web) {
					records := store.Memory()
					for run, want := range []int{40, 0} {
						c := start(t, web, options, collyrobots.Store(records), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 8}))
						limited(t, c, &rule)
						c.Visit("http://a.test/")
						c.Wait()
						if s := c.robots.Stats().Sitemaps; s.Fed != want {
							t.Errorf("run %d: %+v, want %d pages", run, s, want)
						}
					}
				})
			})
		}
	}
}
