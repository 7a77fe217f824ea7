package sitemaps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
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
	records := store.Memory()
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

// TestResumeContinuesInterruptedRun checks that the next run continues one that was interrupted,
// without losing a page, and that few pages are fetched twice.
func TestResumeContinuesInterruptedRun(t *testing.T) {
	web := robotstest.New(t, bigShop(500, kit.NoDenys))
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
	first := len(web.Log("a.test")) - len([]string{"/robots.txt", "/", "/map.xml"}) // pages: /250 and all before it, except four in flight

	c = resumed(t, web, records)
	c.Visit("http://a.test/")
	c.Wait()
	got := c.Robots.Stats().Sitemaps
	if first < 251-4 || first == 500 || got.Resumed < first-5 || got.Resumed > first || got.Fed != 500-got.Resumed || got.Entries != 500 {
		t.Errorf("got %d pages in the first run, stats of the second run %+v", first, got)
	}
	asked := map[string]int{}
	for _, r := range web.Log("a.test") {
		asked[r.URI]++
	}
	again := 0
	for i := range 500 {
		n := asked[fmt.Sprint("/", i)]
		if n != 1 && n != 2 {
			t.Errorf("/%d was requested %d times", i, n)
		}
		again += n - 1
	}
	if again > 5 { // the pages that were in flight
		t.Errorf("%d pages were fetched twice, want at most the window of 5", again)
	}
}

// TestResumeUsesLastmodOfIndex checks that a file of an index is not requested if its lastmod is
// the same as in the last run.
func TestResumeUsesLastmodOfIndex(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": { // in a bubble the year is 2000
		"/robots.txt": "Sitemap: http://a.test/index.xml\n", "*": robotstest.Page(),
		"/index.xml": robotstest.SitemapIndex("1999-05-01 http://a.test/1.xml", "1999-05-01 http://a.test/2.xml"),
		"/1.xml":     robotstest.Sitemap("http://a.test/1"), "/2.xml": robotstest.Sitemap("http://a.test/2"),
	}}, func(t *testing.T, web *robotstest.Web) {
		records := store.Memory()
		for run, want := range []string{"/ /1 /1.xml /2 /2.xml /index.xml /robots.txt", "/ /index.xml", "/ /1.xml /3 /index.xml"} {
			if run == 2 {
				web.Set("a.test", "/index.xml", robotstest.SitemapIndex("1999-12-01 http://a.test/1.xml", "1999-05-01 http://a.test/2.xml"))
				web.Set("a.test", "/1.xml", robotstest.Sitemap("http://a.test/3"))
			}
			time.Sleep(time.Hour)
			web.Reset()
			c := resumed(t, web, records)
			c.Visit("http://a.test/")
			c.Wait()
			kit.WantSortedURIs(t, web, "a.test", want)
		}
	})
}

// TestResumeOfTruncatedFile checks that a truncated sitemap is read again in each run, and that
// its missing pages are fetched when it is complete.
func TestResumeOfTruncatedFile(t *testing.T) {
	whole := robotstest.Gzip(robotstest.Sitemap("http://a.test/0", "http://a.test/1", "http://a.test/2"))
	s := bigShop(3, kit.NoDenys)["a.test"]
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
		if got := c.Robots.Stats().Sitemaps; (got.FilesCut == 1) != (run < 2) || got.FilesUnchanged != 0 {
			t.Errorf("run %d: got stats %+v", run, got)
		}
	}
	if got := kit.URIsOf(web.Log("a.test")); strings.Count(got, " /2") != 1 {
		t.Errorf("requests to a.test: %s, want /2 once", got)
	}
}

// TestResumeAfterProxyAuthRequired checks that a page with status 407, which is from a proxy, is
// fetched again in the next run, and that a page with status 403 is not.
func TestResumeAfterProxyAuthRequired(t *testing.T) {
	kit.InBubble(t, bigShop(3, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/1", http.StatusProxyAuthRequired)
		web.Set("a.test", "/2", http.StatusForbidden)
		records := store.Memory()
		for range 2 {
			c := resumed(t, web, records)
			c.Visit("http://a.test/")
			c.Wait()
			kit.Must(t, c.Robots.Close())
			web.Set("a.test", "/1", robotstest.Page())
			time.Sleep(time.Hour)
		}
		kit.WantSortedURIs(t, web, "a.test", "/ / /0 /1 /1 /2 /map.xml /map.xml /robots.txt")
	})
}

// TestResumeAfterServerErrors checks that pages with a status of a temporary failure are fetched
// again in the next run, also if ParseHTTPErrorResponse passes the response to the callbacks.
func TestResumeAfterServerErrors(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"OnError": nil, "ParseHTTPErrorResponse": {colly.ParseHTTPErrorResponse()}} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, bigShop(4, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
				web.Set("a.test", "/1", http.StatusBadGateway)
				web.Set("a.test", "/2", http.StatusTooManyRequests)
				web.Set("a.test", "/3", http.StatusGone)
				records := store.Memory()
				for range 2 {
					c := kit.Start(t, web, options, collyrobots.Store(records), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
					c.Visit("http://a.test/")
					kit.Must(t, c.Robots.Close())
					web.Set("a.test", "/1", robotstest.Page())
					web.Set("a.test", "/2", robotstest.Page())
					time.Sleep(time.Hour)
				}
				kit.WantSortedURIs(t, web, "a.test", "/ / /0 /1 /1 /2 /2 /3 /map.xml /map.xml /robots.txt")
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
					records := store.Memory()
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

// TestTwoPluginsOnOneStore checks that no page is lost if two plugins with one store crawl a site
// at the same time. They fetch its pages twice, and each may use the checkpoints of the other.
func TestTwoPluginsOnOneStore(t *testing.T) {
	for seed := range uint64(10) {
		kit.InBubble(t, bigShop(120, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
			r := rand.New(rand.NewPCG(seed, 3))
			for i := range 40 { // some pages are slow, each for another time
				page := func(out http.ResponseWriter, _ *http.Request) {
					time.Sleep(time.Duration(i%7) * time.Second)
					fmt.Fprint(out, robotstest.Page())
				}
				web.Set("a.test", fmt.Sprint("/", r.IntN(120)), page)
			}
			records, done := store.Memory(), make(map[string]bool)
			var mu sync.Mutex
			crawl := func(life time.Duration) {
				c := resumed(t, web, records)
				ctx, cancel := context.WithTimeout(t.Context(), life)
				defer cancel()
				c.Context = ctx
				c.OnScraped(func(r *colly.Response) {
					mu.Lock()
					defer mu.Unlock()
					done[r.Request.URL.Path] = true
				})
				c.Visit("http://a.test/")
				c.Wait()
			}
			var both sync.WaitGroup
			for range 2 {
				life := time.Duration(1+r.IntN(15)) * time.Second
				both.Go(func() { crawl(life) })
			}
			both.Wait()
			crawl(time.Hour)
			for i := range 120 {
				if !done[fmt.Sprint("/", i)] {
					t.Errorf("seed %d: /%d is lost", seed, i)
				}
			}
		})
	}
}

// TestResumeOfSink checks that a URL that a Sink refuses is passed to it again in the next run,
// three times in all, and also the URL at which it panicked. The other URLs are not.
func TestResumeOfSink(t *testing.T) {
	web := robotstest.New(t, bigShop(6, kit.NoDenys))
	records := store.Memory()
	var runs []string
	for run := range 5 {
		sunk := ""
		c := kit.Start(t, web, nil, collyrobots.Store(records), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 1, Sink: func(u string) error {
			page := u[len(u)-1:]
			sunk += page
			switch {
			case page == "1":
				return errors.New("not this one")
			case page == "3" && run == 0:
				panic("broken")
			}
			return nil
		}}))
		func() {
			defer func() { recover() }()
			c.Visit("http://a.test/")
		}()
		kit.Must(t, c.Robots.Close())
		runs = append(runs, sunk)
	}
	if got, want := strings.Join(runs, " "), "0123 1345 1  "; got != want {
		t.Errorf("the Sink got %q, want %q", got, want)
	}
}

// TestCloseInLoopOverPages checks that Close in a loop over Pages ends the loop, and that the next
// loop continues.
func TestCloseInLoopOverPages(t *testing.T) {
	web := robotstest.New(t, bigShop(30, kit.NoDenys))
	records := store.Memory()
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
					records := store.Memory()
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
		records := store.Memory()
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

// TestSitemapIsRetried checks that a sitemap that fails once is requested again after the delay or
// the Retry-After of its host.
func TestSitemapIsRetried(t *testing.T) {
	failures := map[string]struct {
		fail func(w http.ResponseWriter)
		wait time.Duration // until the second request
	}{
		"503": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 2 * time.Second},
		"429 with Retry-After": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 30 * time.Second},
		"truncated": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "<urlset>")
			panic(http.ErrAbortHandler)
		}, 2 * time.Second},
		"reset": {func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }, 2 * time.Second},
	}
	for name, test := range failures {
		t.Run(name, func(t *testing.T) {
			sites := bigShop(1, "User-agent: *\nCrawl-delay: 2\n")
			doc := sites["a.test"]["/map.xml"].(string)
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				var asked []time.Time
				web.Set("a.test", "/map.xml", func(w http.ResponseWriter, r *http.Request) {
					asked = append(asked, time.Now())
					if len(asked) == 1 {
						test.fail(w)
						return
					}
					io.WriteString(w, doc)
				})
				c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				c.Visit("http://a.test/")
				kit.WantSortedURIs(t, web, "a.test", "/ /0 /map.xml /map.xml /robots.txt")
				if len(asked) != 2 || asked[1].Sub(asked[0]) != test.wait {
					t.Errorf("requests at %v, want a gap of %v", asked, test.wait)
				}
				if s := c.Robots.Stats().Sitemaps; s.Fed != 1 || s.FilesFailed != 0 || s.FilesCut != 0 {
					t.Errorf("got stats %+v", s)
				}
			})
		})
	}
}

// TestSitemapThroughSecondProxy checks that a sitemap is fetched through another proxy if the
// first one fails.
func TestSitemapThroughSecondProxy(t *testing.T) {
	kit.InBubble(t, bigShop(1, kit.NoDenys), func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		next, n := c.Transport, 0
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/map.xml" {
				n++
				if n == 1 {
					return nil, errors.New("proxyconnect: connection refused")
				}
			}
			return next.RoundTrip(r)
		}))
		c.Visit("http://a.test/")
		kit.WantSortedURIs(t, web, "a.test", "/ /0 /map.xml /robots.txt")
	})
}
