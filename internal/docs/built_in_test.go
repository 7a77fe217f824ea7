package docs

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// differences are the rows of the table in built-in-check.md that can be tested by a crawl. The
// results are those of the built-in check, the plugin with Temoto, and the plugin with RFC 9309.
var differences = []struct {
	row    string // the first cell of the row
	site   robotstest.Site
	agent  string // the User-Agent header, or empty for that of ExampleBot
	crawl  func(c *colly.Collector, web *robotstest.Web) string
	result [3]string
}{
	{
		row: "a query", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /s?b=1&a=2\n", "*": "page"},
		crawl: visit("/s?b=1&a=2"), result: [3]string{"/s?b=1&a=2", "/s?b=1&a=2", ""},
	},
	{
		row: "one line that cannot be parsed", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 5s\n", "*": "page"},
		crawl: visit("/"), result: [3]string{"", "", "/"},
	},
	{
		row: "one line that cannot be parsed", site: robotstest.Site{"/robots.txt": "Disallow: /x\n", "*": "page"},
		crawl: visit("/"), result: [3]string{"", "", "/"},
	},
	{
		row: "robots.txt answered 5xx", site: robotstest.Site{"/robots.txt": 503, "*": "page"},
		crawl: visit("/"), result: [3]string{"/", "/", ""},
	},
	{
		row: "robots.txt gets no answer", site: robotstest.Site{"/robots.txt": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			failed := 0
			for _, page := range []string{"/1", "/2"} {
				if err := c.Visit("http://a.test" + page); err != nil && strings.Contains(err.Error(), "EOF") {
					failed++
				}
			}
			return fmt.Sprint(pagesOf(web), failed, " failed")
		},
		result: [3]string{"2 failed", "2 failed", "2 failed"},
	},
	{
		row: "which group applies", agent: "Mozilla/5.0 (compatible; mybot/1; +https://example.com/bot)",
		site:  robotstest.Site{"/robots.txt": "User-agent: mybot\nDisallow: /\n", "*": "page"},
		crawl: visit("/"), result: [3]string{"/", "/", ""},
	},
	{
		row: "two rules of the same length", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /page\nAllow: /page\n", "*": "page"},
		crawl: visit("/page"), result: [3]string{"", "", "/page"},
	},
	{
		row: "wildcards", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /a*b\n", "*": "page"},
		crawl: visit("/x/a1b"), result: [3]string{"", "", "/x/a1b"},
	},
	{
		row: "http and https of a host", site: robotstest.Site{"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
			if r.TLS != nil {
				fmt.Fprint(w, "User-agent: *\nDisallow: /\n")
			}
		}, "*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.Visit("http://a.test/1")
			c.Visit("https://a.test/2")
			return pagesOf(web)
		},
		result: [3]string{"/1 /2", "/1", "/1"},
	},
	{
		row: "redirects, and the HEAD of `CheckHead`", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/": robotstest.Redirect("/closed"), "*": "page"},
		crawl: visit("/"), result: [3]string{"/ /closed", "/", "/"},
	},
	{
		row: "redirects, and the HEAD of `CheckHead`", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /closed\n", "*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.CheckHead = true
			return visit("/closed")(c, web)
		},
		result: [3]string{"/closed", "", ""},
	},
	{
		row: "20 pages at once", site: robotstest.Site{"/robots.txt": func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }, "*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() { c.Visit(fmt.Sprint("http://a.test/", i)) })
			}
			all.Wait()
			return fmt.Sprint(fetches(web), " fetches")
		},
		result: [3]string{"20 fetches", "1 fetches", "1 fetches"},
	},
	{
		row: "how long robots.txt is kept", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow:\n", "*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.Visit("http://a.test/1")
			time.Sleep(25 * time.Hour)
			c.Visit("http://a.test/2")
			return fmt.Sprint(fetches(web), " fetches")
		},
		result: [3]string{"1 fetches", "1 fetches", "2 fetches"},
	},
	{
		row: "size and time", site: robotstest.Site{"/robots.txt": "User-agent: *\n" + strings.Repeat("Disallow: /*?q=*&page=*$\n", 2000), "*": "page"},
		crawl:  visit("/" + strings.Repeat("a", 2000)),
		result: [3]string{"/" + strings.Repeat("a", 2000), "", "/" + strings.Repeat("a", 2000)},
	},
	{
		row: "headers and cookies of the request for robots.txt", site: robotstest.Site{"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Tenant") != "1" || r.Header.Get("Cookie") != "session=1" {
				fmt.Fprint(w, "User-agent: *\nDisallow: /\n")
			}
		}, "*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.Headers = &http.Header{"X-Tenant": {"1"}}
			c.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: "1"}})
			c.Visit("http://a.test/")
			return pagesOf(web)
		},
		result: [3]string{"/", "/", ""},
	},
	{
		row: "headers and cookies of the request for robots.txt", site: robotstest.Site{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		}, "*": "page"},
		crawl: func(c *colly.Collector, _ *robotstest.Web) string {
			c.Visit("http://a.test/")
			return fmt.Sprint(len(c.Cookies("http://a.test/")), " cookies")
		},
		result: [3]string{"1 cookies", "0 cookies", "0 cookies"},
	},
	{
		row: "redirects of robots.txt", site: robotstest.Site{"/robots.txt": robotstest.Redirect("/rules"), "*": ""},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.Visit("http://a.test/1")
			c.Visit("http://a.test/rules")
			return pagesOf(web)
		},
		result: [3]string{"/rules /1", "/rules /1 /rules", "/rules /1 /rules"},
	},
	{
		row: "redirects of robots.txt", site: robotstest.Site{"/robots.txt": robotstest.Redirect("/rules"), "*": ""},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.DisallowedURLFilters = []*regexp.Regexp{regexp.MustCompile("rules")}
			c.Visit("http://a.test/1")
			return pagesOf(web)
		},
		result: [3]string{"", "/rules /1", "/rules /1"},
	},
	{
		row: "attempts to fetch robots.txt", site: robotstest.Site{"*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			tried := 0
			web.Set("a.test", "/robots.txt", func(http.ResponseWriter, *http.Request) {
				tried++
				if tried == 1 {
					panic(http.ErrAbortHandler)
				}
			})
			c.Visit("http://a.test/1")
			return pagesOf(web)
		},
		result: [3]string{"", "/1", "/1"},
	},
	{
		row: "how long a fetch may take", site: robotstest.Site{"/robots.txt": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		crawl: func(c *colly.Collector, _ *robotstest.Web) string {
			began := time.Now()
			c.SetRequestTimeout(time.Minute)
			c.Visit("http://a.test/")
			return fmt.Sprint(time.Since(began))
		},
		result: [3]string{"1m0s", "30s", "30s"},
	},
	{
		row: "a page whose robots.txt could not be fetched, visited again", site: robotstest.Site{"/robots.txt": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		crawl: func(c *colly.Collector, _ *robotstest.Web) string {
			c.Visit("http://a.test/")
			visited := (*colly.AlreadyVisitedError)(nil)
			return fmt.Sprint(errors.As(c.Visit("http://a.test/"), &visited))
		},
		result: [3]string{"false", "true", "true"},
	},
	{
		row: "Crawl-delay", site: robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 5\nDisallow: /x\n", "*": "page"},
		crawl: schedule, result: [3]string{"0s /robots.txt\n0s /1\n0s /2", "0s /robots.txt\n0s /1\n0s /2", "0s /robots.txt\n5s /1\n10s /2"},
	},
	{
		row: "429, 503 and Retry-After of pages", site: robotstest.Site{"/1": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "*": "page"},
		crawl: schedule, result: [3]string{"0s /robots.txt\n0s /1\n0s /2", "0s /robots.txt\n0s /1\n30s /2", "0s /robots.txt\n0s /1\n30s /2"},
	},
	{
		row: "`Visit` of a denied page", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl: func(c *colly.Collector, _ *robotstest.Web) string {
			err := c.Visit("http://a.test/")
			return fmt.Sprint(err == colly.ErrRobotsTxtBlocked, errors.Is(err, colly.ErrRobotsTxtBlocked))
		},
		result: [3]string{"true true", "false true", "false true"},
	},
	{
		row: "`Visit` of a denied page, collector `Async`", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl: func(c *colly.Collector, _ *robotstest.Web) string {
			c.Async = true
			err := c.Visit("http://a.test/")
			c.Wait()
			return fmt.Sprint(err)
		},
		result: [3]string{"URL blocked by robots.txt", "<nil>", "<nil>"},
	},
	{
		row: "callbacks of a denied page", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl:  callbacks(func(c *colly.Collector) { c.Visit("http://a.test/") }),
		result: [3]string{"", "OnRequest OnRequestHeaders OnError", "OnRequest OnRequestHeaders OnError"},
	},
	{
		row: "callbacks of a denied page, collector `Async`", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl: callbacks(func(c *colly.Collector) {
			c.Async = true
			c.Visit("http://a.test/")
			c.Wait()
		}),
		result: [3]string{"", "OnRequest OnError", "OnRequest OnError"},
	},
	{
		row: "a denied page that is visited again", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl: func(c *colly.Collector, _ *robotstest.Web) string {
			c.Visit("http://a.test/")
			visited := (*colly.AlreadyVisitedError)(nil)
			return fmt.Sprint(errors.As(c.Visit("http://a.test/"), &visited))
		},
		result: [3]string{"false", "true", "true"},
	},
	{
		row: "`Retry` of a denied page", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl: callbacks(func(c *colly.Collector) {
			c.OnError(func(r *colly.Response, _ error) { r.Request.Retry() })
			c.Visit("http://a.test/")
		}),
		result: [3]string{"", retried, retried},
	},
	{
		row: "a `LimitRule`", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl:  timeOfThreePages,
		result: [3]string{"0s", "3s", "3s"},
	},
	{
		row: "a `LimitRule`, collector `Async`", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\n"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.Async = true
			return timeOfThreePages(c, web)
		},
		result: [3]string{"0s", "0s", "0s"},
	},
	{
		row: "`MaxRequests`", site: robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /1\n", "*": "page"},
		crawl: func(c *colly.Collector, web *robotstest.Web) string {
			c.MaxRequests = 1
			c.Visit("http://a.test/1")
			c.Visit("http://a.test/2")
			return pagesOf(web)
		},
		result: [3]string{"/2", "", ""},
	},
}

// retried are the callbacks of a page that is retried ten times. The last retry is aborted.
var retried = strings.Repeat("OnRequest OnRequestHeaders OnError ", 10) + "OnRequest"

// callbacks returns a crawl that records which callbacks Colly calls.
func callbacks(crawl func(c *colly.Collector)) func(*colly.Collector, *robotstest.Web) string {
	return func(c *colly.Collector, _ *robotstest.Web) string {
		var called []string
		c.OnRequest(func(*colly.Request) { called = append(called, "OnRequest") })
		c.OnRequestHeaders(func(*colly.Request) { called = append(called, "OnRequestHeaders") })
		c.OnError(func(*colly.Response, error) { called = append(called, "OnError") })
		c.OnScraped(func(*colly.Response) { called = append(called, "OnScraped") })
		crawl(c)
		return strings.Join(called, " ")
	}
}

// TestDifferences checks the results of the differences.
func TestDifferences(t *testing.T) {
	page := read(t, "docs/built-in-check.md")
	for _, d := range differences {
		if !strings.Contains(page, "\n| "+d.row) {
			t.Errorf("the page has no row %q", d.row)
		}
		for i, name := range []string{"built in", "temoto", "rfc9309"} {
			t.Run(d.row+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					web := robotstest.New(t, robotstest.Sites{"a.test": d.site})
					c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
					if d.agent != "" {
						c.UserAgent = d.agent
					}
					c.WithTransport(web.Transport())
					c.IgnoreRobotsTxt = false
					if own, ok := dialect.ByName(name); ok {
						robots, err := collyrobots.WithRobots(c, collyrobots.Dialect(own), collyrobots.Logger(slog.New(slog.DiscardHandler)))
						if err != nil {
							t.Fatal(err)
						}
						defer robots.Close()
					}
					if got := d.crawl(c, web); got != d.result[i] {
						t.Errorf("%q, want %q", got, d.result[i])
					}
				})
			})
		}
	}
}

// timeOfThreePages visits three pages under a LimitRule and returns the time of the crawl.
func timeOfThreePages(c *colly.Collector, _ *robotstest.Web) string {
	began := time.Now()
	c.Limit(&colly.LimitRule{DomainGlob: "*", Delay: time.Second})
	for i := range 3 {
		c.Visit(fmt.Sprint("http://a.test/", i))
	}
	c.Wait()
	return fmt.Sprint(time.Since(began))
}

// visit returns a crawl that visits one page and returns the requests for pages.
func visit(path string) func(c *colly.Collector, web *robotstest.Web) string {
	return func(c *colly.Collector, web *robotstest.Web) string {
		c.Visit("http://a.test" + path)
		return pagesOf(web)
	}
}

// schedule visits two pages and returns the times of the requests.
func schedule(c *colly.Collector, web *robotstest.Web) string {
	c.Visit("http://a.test/1")
	c.Visit("http://a.test/2")
	return web.Log("").String()
}

// pagesOf returns the requested paths, except /robots.txt.
func pagesOf(web *robotstest.Web) string {
	var pages []string
	for _, r := range web.Log("") {
		if r.URI != "/robots.txt" {
			pages = append(pages, r.URI)
		}
	}
	return strings.Join(pages, " ")
}

// fetches returns the number of requests for robots.txt.
func fetches(web *robotstest.Web) (n int) {
	for _, r := range web.Log("") {
		if r.URI == "/robots.txt" {
			n++
		}
	}
	return n
}
