package sitemaps

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
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
	"github.com/collyrobots/collyrobots/store"
)

// resumed starts a crawl that continues where the last one with the same store stopped.
func resumed(t *testing.T, web *robotstest.Web, s store.Store) *kit.Crawl {
	return kit.Start(t, web, kit.Async, collyrobots.Store(s), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 5}))
}

// TestResumeSkipsUnchangedFiles checks that a later run skips sitemaps that have not changed, by
// their content or by their validators.
func TestResumeSkipsUnchangedFiles(t *testing.T) {
	s := bigShop(3, kit.NoDenys)["a.test"]
	old, validated := s["/map.xml"].(string), new(atomic.Int32)
	s["/robots.txt"] = kit.NoDenys + "Sitemap: http://a.test/index.xml"
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
	records := store.NewMemory()
	for run, want := range []report.FeedStats{
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
		if got := c.Robots.Stats().Sitemaps; got != want {
			t.Errorf("run %d:\ngot  %+v\nwant %+v", run, got, want)
		}
	}
	if n := validated.Load(); n != 2 {
		t.Errorf("%d conditional requests were answered 304, want 2", n)
	}
}

// TestCloseInLoopOverPages checks that Close in a loop over Pages ends the loop, and that the next
// loop continues.
func TestCloseInLoopOverPages(t *testing.T) {
	web := robotstest.New(t, bigShop(30, kit.NoDenys))
	records := store.NewMemory()
	feed := collyrobots.Feed{Resume: true, Window: 4}
	c := kit.Start(t, web, nil, collyrobots.Store(records))
	var got []string
	var last error
	for e, err := range c.Robots.Pages(t.Context(), feed, "http://a.test/") {
		last = err
		if err == nil {
			got = append(got, e.Loc)
		}
		if len(got) == 10 {
			kit.Must(t, c.Robots.Close())
		}
	}
	if len(got) != 10 || !errors.Is(last, collyrobots.ErrClosed) {
		t.Errorf("got %d pages, then %v; want 10, then ErrClosed", len(got), last)
	}
	c = kit.Start(t, web, nil, collyrobots.Store(records))
	for e, err := range c.Robots.Pages(t.Context(), feed, "http://a.test/") {
		kit.Must(t, err)
		got = append(got, e.Loc)
	}
	if len(got) != 30+1 || got[9] != got[10] { // the page after which the loop was closed comes again
		t.Errorf("got %d pages in all, want 31 with one twice: %v", len(got), got)
	}
}

// TestResumeAfterServerErrors checks that pages with a status of a temporary failure or of a proxy
// are fetched again in the next run, also if ParseHTTPErrorResponse passes the response to the
// callbacks.
func TestResumeAfterServerErrors(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"OnError": nil, "ParseHTTPErrorResponse": {colly.ParseHTTPErrorResponse()}} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, bigShop(5, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
				web.Set("a.test", "/1", http.StatusBadGateway)
				web.Set("a.test", "/2", http.StatusTooManyRequests)
				web.Set("a.test", "/3", http.StatusGone)
				web.Set("a.test", "/4", http.StatusProxyAuthRequired)
				records := store.NewMemory()
				for range 2 {
					c := kit.Start(t, web, options, collyrobots.Store(records), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
					c.Visit("http://a.test/")
					kit.Must(t, c.Robots.Close())
					web.Set("a.test", "/1", robotstest.Page())
					web.Set("a.test", "/2", robotstest.Page())
					web.Set("a.test", "/4", robotstest.Page())
					time.Sleep(time.Hour)
				}
				kit.WantSortedURIs(t, web, "a.test", "/ / /0 /1 /1 /2 /2 /3 /4 /4 /map.xml /map.xml /robots.txt")
			})
		})
	}
}

// TestResumeWithLimitRule checks that pages that waited for a LimitRule, before or after they were
// sent, count as done, although Colly calls no hook for this wait.
func TestResumeWithLimitRule(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"": kit.Async, "DetectCharset": append(detecting, kit.Async...)} {
		for _, rule := range []colly.LimitRule{{DomainGlob: "*", Parallelism: 1, Delay: 4 * time.Second}, {DomainGlob: "*", Parallelism: 2, Delay: 15 * time.Second}} {
			t.Run(fmt.Sprint(name, rule.Delay), func(t *testing.T) {
				kit.InBubble(t, bigShop(40, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
					records := store.NewMemory()
					for run, want := range []int{40, 0} {
						c := kit.Start(t, web, options, collyrobots.Store(records), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 8}))
						kit.Limited(t, c, &rule)
						c.Visit("http://a.test/")
						c.Wait()
						if s := c.Robots.Stats().Sitemaps; s.Fed != want {
							t.Errorf("run %d: got stats %+v, want %d pages", run, s, want)
						}
					}
				})
			})
		}
	}
}

// TestResumeOfPagesNotFetched checks that pages that were denied, dropped by Keep, refused by the
// collector or aborted by a callback are fetched when they are allowed. Pages that were fetched,
// or are gone, are not fetched again.
func TestResumeOfPagesNotFetched(t *testing.T) {
	closed := "User-agent: *\nDisallow: /1\nSitemap: http://a.test/map.xml\n"
	for name, close := range map[string]func(web *robotstest.Web, f *collyrobots.Feed) func(c *kit.Crawl){
		"denied": func(web *robotstest.Web, f *collyrobots.Feed) func(*kit.Crawl) {
			web.Set("a.test", "/robots.txt", closed)
			return nil
		},
		"denied, newest first": func(web *robotstest.Web, f *collyrobots.Feed) func(*kit.Crawl) {
			web.Set("a.test", "/robots.txt", closed)
			f.NewestFirst, f.MaxURLs = true, 100
			return nil
		},
		"robots.txt fails": func(web *robotstest.Web, f *collyrobots.Feed) func(*kit.Crawl) {
			web.Set("b.test", "/robots.txt", http.StatusServiceUnavailable)
			return nil
		},
		"dropped": func(web *robotstest.Web, f *collyrobots.Feed) func(*kit.Crawl) {
			f.Keep = func(e sitemap.Entry) bool { return !strings.HasSuffix(e.Loc, "/1") }
			return nil
		},
		"refused": func(web *robotstest.Web, f *collyrobots.Feed) func(*kit.Crawl) {
			return func(c *kit.Crawl) {
				c.DisallowedURLFilters = append(c.DisallowedURLFilters, regexp.MustCompile("/1$"))
			}
		},
		"aborted": func(web *robotstest.Web, f *collyrobots.Feed) func(*kit.Crawl) {
			return func(c *kit.Crawl) {
				c.OnRequest(func(r *colly.Request) {
					if r.URL.Path == "/1" {
						r.Abort()
					}
				})
			}
		},
	} {
		for _, options := range [][]colly.CollectorOption{nil, kit.Async} {
			t.Run(fmt.Sprint(name, " ", len(options)), func(t *testing.T) {
				sites := bigShop(3, kit.NoDenys)
				sites["a.test"]["/2"] = http.StatusGone
				sites["b.test"] = robotstest.Site{"/1": robotstest.Page()}
				sites["a.test"]["/map.xml"] = robotstest.Sitemap("http://a.test/0", "http://a.test/1", "http://a.test/2", "http://b.test/1")
				open := sites["a.test"]["/robots.txt"]
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
					records := store.NewMemory()
					for run := range 6 {
						f := collyrobots.Feed{Resume: true, Scope: collyrobots.ScopeAny}
						change := func(*kit.Crawl) {}
						web.Set("a.test", "/robots.txt", open)
						web.Set("b.test", "/robots.txt", "")
						if run < 4 {
							if c := close(web, &f); c != nil {
								change = c
							}
						} else if strings.Contains(name, "newest") {
							f.NewestFirst, f.MaxURLs = true, 100
						}
						c := kit.Start(t, web, options, collyrobots.Store(records), collyrobots.FollowSitemaps(f))
						c.Impolite = true // robots.txt changes
						change(c)
						c.Visit("http://a.test/")
						c.Wait()
						kit.Must(t, c.Robots.Close())
						time.Sleep(25 * time.Hour) // until robots.txt expires
					}
					for _, host := range []string{"a.test", "b.test"} {
						counts := map[string]int{}
						for _, r := range web.Log(host) {
							counts[r.URI]++
						}
						for _, uri := range []string{"/0", "/1", "/2"} {
							if n := counts[uri]; n != 1 && (host == "a.test" || uri == "/1") {
								t.Errorf("%s%s was fetched %d times, want 1", host, uri, n)
							}
						}
					}
				})
			})
		}
	}
}

// TestResumeOfRedirectToDeniedPage checks that a page that redirects to a denied one is tried in
// three runs. The page itself was fetched each time.
func TestResumeOfRedirectToDeniedPage(t *testing.T) {
	kit.InBubble(t, bigShop(2, "User-agent: *\nDisallow: /login\n"), func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/1", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) })
		records := store.NewMemory()
		for range 5 {
			c := resumed(t, web, records)
			c.Visit("http://a.test/")
			c.Wait()
			kit.Must(t, c.Robots.Close())
			time.Sleep(time.Hour)
		}
		if got := kit.URIsOf(web.Log("a.test")); strings.Count(got, "/1") != 3 || strings.Count(got, "/0") != 1 {
			t.Errorf("got requests %s to a.test", got)
		}
	})
}
