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

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests of this file check that a crawl does not hang: it must not wait for itself, for a
// closed plugin, or for a server whose response never ends.

// TestCloseEndsEveryWait checks that all requests that wait end at once with ErrClosed when the
// plugin is closed, and that OnDenied is called once for each.
func TestCloseEndsEveryWait(t *testing.T) {
	long := "User-agent: *\nCrawl-delay: 20\n"
	busy := http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Retry-After", "3600")
		out.WriteHeader(http.StatusTooManyRequests)
	})
	drip := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprintln(out, strings.Repeat(" ", 10))
			http.NewResponseController(out).Flush()
			time.Sleep(time.Second)
		}
	})
	many := robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 20\nSitemap: http://a.test/map.xml\n", "/": robotstest.Page()}
	var locs []string
	for i := range 50 {
		locs = append(locs, fmt.Sprint("http://a.test/", i))
		many[fmt.Sprint("/", i)] = robotstest.Page()
	}
	many["/map.xml"] = robotstest.Sitemap(locs...)
	index := robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 20\nSitemap: http://a.test/map.xml\n", "/": robotstest.Page(), "*": robotstest.Sitemap()}
	locs = nil
	for i := range 50 {
		locs = append(locs, fmt.Sprint("http://a.test/", i, ".xml"))
	}
	index["/map.xml"] = robotstest.SitemapIndex(locs...)
	cases := []struct {
		name  string
		site  robotstest.Site
		opts  []collyrobots.Option
		limit *colly.LimitRule
		pages []string      // the pages to visit; if nil, /0 to /9
		after time.Duration // the time of Close; if 0, 25 s
		asked int           // the requests to the host until then; none may follow
	}{
		{name: "delay", site: robotstest.Pages(10, long), asked: 2},
		{name: "Retry-After", asked: 2, site: robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/0": busy, "*": busy}},
		{name: "Retry-After of robots.txt", asked: 1, site: robotstest.Site{"/robots.txt": busy}},
		{name: "redirects", asked: 2, site: robotstest.Site{"/robots.txt": long, "*": robotstest.Redirect("/x")}},
		{name: "robots.txt without a response", asked: 1, after: 5 * time.Second, site: robotstest.Site{"/robots.txt": kit.Hang}},
		{name: "robots.txt that is very slow", asked: 1, after: 5 * time.Second, site: robotstest.Site{"/robots.txt": drip}},
		{name: "robots.txt that is read again", asked: 3, after: 42 * time.Second, site: robotstest.Site{"/robots.txt": rereads(kit.Hang, "User-agent: *\nCrawl-delay: 20\n"), "*": robotstest.Page()}},
		{name: "LimitRule", asked: 2, site: robotstest.Pages(10, long), limit: &colly.LimitRule{DomainGlob: "*", Parallelism: 2}},
		{name: "sitemap", asked: 3, after: 45 * time.Second, site: many, opts: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, pages: []string{"/"}},
		{name: "sitemaps", asked: 4, after: 65 * time.Second, site: index, opts: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, pages: []string{"/"}},
		{name: "sitemap that is very slow", asked: 3, opts: []collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, pages: []string{"/"},
			site: robotstest.Site{"/robots.txt": "Sitemap: http://a.test/map.xml", "/": robotstest.Page(), "/map.xml": drip}},
	}
	for _, tc := range cases {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": tc.site}, func(t *testing.T, web *robotstest.Web) {
					var mu sync.Mutex
					told, failed := map[string]int{}, map[string]error{}
					c := kit.Start(t, web, options, append(tc.opts, collyrobots.OnDenied(func(r *colly.Request, err error) {
						mu.Lock()
						defer mu.Unlock()
						told[r.URL.Path]++
						if !errors.Is(err, collyrobots.ErrClosed) {
							t.Errorf("OnDenied got %s with %v, want ErrClosed", r.URL, err)
						}
					}))...)
					c.Impolite = true // only Close is tested
					c.OnError(func(r *colly.Response, err error) {
						mu.Lock()
						defer mu.Unlock()
						failed[r.Request.URL.Path] = err
					})
					kit.Limited(t, c, tc.limit)
					pages := tc.pages
					for i := 0; len(pages) < 10 && tc.pages == nil; i++ {
						pages = append(pages, fmt.Sprint("/", i))
					}
					over, after := make(chan struct{}), tc.after
					if after == 0 {
						after = 25 * time.Second
					}
					var crawl sync.WaitGroup
					for _, page := range pages {
						crawl.Go(func() {
							c.Visit("http://a.test" + page)
						})
					}
					go func() { crawl.Wait(); c.Wait(); close(over) }()
					time.Sleep(after)
					synctest.Wait()
					closed := time.Now()
					kit.Must(t, c.Robots.Close())
					<-over
					if took := time.Since(closed); took != 0 {
						t.Errorf("the crawl ended %v after Close", took)
					}
					if got := len(web.Log("a.test")); got != tc.asked {
						t.Errorf("%d requests to a.test, want %d:\n%s", got, tc.asked, web.Log("a.test"))
					}
					for page, n := range told {
						if n != 1 {
							t.Errorf("OnDenied was called %d times for %s, want 1", n, page)
						}
					}
					came := len(c.Pages)
					for page, err := range failed {
						if !errors.Is(err, collyrobots.ErrClosed) && !errors.Is(err, colly.ErrAbortedBeforeRequest) {
							came++ // a 429
						} else if told[page] != 1 {
							t.Errorf("%s failed with %v, but OnDenied was not called", page, err)
						}
					}
					if tc.pages == nil && len(told)+came != 10 {
						t.Errorf("OnDenied was called for %d pages, and %d arrived, want 10 in total", len(told), came)
					}
				})
			})
		}
	}
}

// rereads returns a handler for a robots.txt that is fresh for ten seconds. After the first second
// of a bubble, it calls again instead.
func rereads(again http.HandlerFunc, robots string) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		if time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) > time.Second {
			again(out, r)
			return
		}
		out.Header().Set("Cache-Control", "max-age=10")
		fmt.Fprint(out, robots)
	}
}
