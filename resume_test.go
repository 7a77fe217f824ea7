package collyrobots_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
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

// A child of an index that has the date of the last run is not asked for.
func TestResumeSparesRequestsByLastmod(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": { // where it is the year 2000
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
			wantSortedURIs(t, web, "a.test", want)
		}
	})
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

// A page that is not there is done. One that a proxy kept back, with status 407, is not.
func TestResumeOfPagesThatAProxyKeptBack(t *testing.T) {
	inBubble(t, bigShop(3, noDenys), func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/1", http.StatusProxyAuthRequired)
		web.Set("a.test", "/2", http.StatusForbidden)
		records := store.Memory()
		for range 2 {
			c := resumed(t, web, records)
			c.Visit("http://a.test/")
			c.Wait()
			must(t, c.robots.Close())
			web.Set("a.test", "/1", robotstest.Page())
			time.Sleep(time.Hour)
		}
		wantSortedURIs(t, web, "a.test", "/ / /0 /1 /1 /2 /map.xml /map.xml /robots.txt")
	})
}

// Nor is one that the server had no time for, be it that ParseHTTPErrorResponse shows the callbacks
// what it answered instead.
func TestResumeOfPagesThatTheServerFailed(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"OnError": nil, "ParseHTTPErrorResponse": {colly.ParseHTTPErrorResponse()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, bigShop(4, noDenys), func(t *testing.T, web *robotstest.Web) {
				web.Set("a.test", "/1", http.StatusBadGateway)
				web.Set("a.test", "/2", http.StatusTooManyRequests)
				web.Set("a.test", "/3", http.StatusGone)
				records := store.Memory()
				for range 2 {
					c := start(t, web, options, collyrobots.Store(records), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
					c.Visit("http://a.test/")
					must(t, c.robots.Close())
					web.Set("a.test", "/1", robotstest.Page())
					web.Set("a.test", "/2", robotstest.Page())
					time.Sleep(time.Hour)
				}
				wantSortedURIs(t, web, "a.test", "/ / /0 /1 /1 /2 /2 /3 /map.xml /map.xml /robots.txt")
			})
		})
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

// Two plugins that crawl a site at the same time with one store fetch its pages twice, and lose
// none: what either has written down is done.
func TestTwoPluginsOnOneStore(t *testing.T) {
	for seed := range uint64(10) {
		inBubble(t, bigShop(120, noDenys), func(t *testing.T, web *robotstest.Web) {
			r := rand.New(rand.NewPCG(seed, 3))
			for i := range 40 { // they take their time, each another one
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

// What a Sink refuses comes again in the next run, three times in all; what it took does not, and
// what it had when it panicked does.
func TestResumeOfASink(t *testing.T) {
	web := robotstest.New(t, bigShop(6, noDenys))
	records := store.Memory()
	var runs []string
	for run := range 5 {
		sunk := ""
		c := start(t, web, nil, collyrobots.Store(records), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Window: 1, Sink: func(u string) error {
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
		must(t, c.robots.Close())
		runs = append(runs, sunk)
	}
	if got, want := strings.Join(runs, " "), "0123 1345 1  "; got != want {
		t.Errorf("the Sink got %q, want %q", got, want)
	}
}

// Close in the middle of a loop over Pages ends it, and the next one goes on.
func TestCloseInALoopOverPages(t *testing.T) {
	web := robotstest.New(t, bigShop(30, noDenys))
	records := store.Memory()
	feed := collyrobots.Feed{Resume: true, Window: 4}
	c := start(t, web, nil, collyrobots.Store(records))
	var got []string
	var last error
	for e, err := range c.robots.Pages(t.Context(), feed, "http://a.test/") {
		if last = err; err == nil {
			got = append(got, e.Loc)
		}
		if len(got) == 10 {
			must(t, c.robots.Close())
		}
	}
	if len(got) != 10 || !errors.Is(last, collyrobots.ErrClosed) {
		t.Errorf("%d pages, then %v", len(got), last)
	}
	c = start(t, web, nil, collyrobots.Store(records))
	for e, err := range c.robots.Pages(t.Context(), feed, "http://a.test/") {
		must(t, err)
		got = append(got, e.Loc)
	}
	if len(got) != 30+1 || got[9] != got[10] { // that of which nobody knows
		t.Errorf("%d pages in all: %v", len(got), got)
	}
}
