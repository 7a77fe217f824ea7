package browsertest

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/view"
)

const wikiRobots = `# wiki.example
# Thank you for reading this before you crawl.

User-agent: *
Disallow: /edit
Disallow: /search
Crawl-delay: 3

User-agent: ExampleBot
Crawl-delay: 1.5
Disallow: /user/
Disallow: /*?action=
Allow: /user/guide
Disallow: /private   # drafts

User-agent: coccoc
Disallow: /

Sitemap: http://wiki.example/sitemap.xml
`

// demoSites returns sites that each have one feature for the page to show.
func demoSites() robotstest.Sites {
	shop := pages(40, "User-agent: *\nCrawl-delay: 2\nDisallow: /cart\nDisallow: /checkout\n\nSitemap: http://shop.example/sitemap.xml\n")
	shop["/"] = robotstest.Page(links(20, "/cart", "/cart/3?add=1", "/checkout")...)
	shop["/sitemap.xml"] = robotstest.Sitemap(locs("http://shop.example", 30, "http://other.example/1", "http://shop.example/cart/8")...)
	wiki := pages(30, wikiRobots)
	wiki["/"] = robotstest.Page(links(24, "/user/anna", "/user/guide", "/3?action=edit", "/private", "/private/notes")...)
	wiki["/sitemap.xml"] = robotstest.Sitemap(locs("http://wiki.example", 30)...)
	slow := pages(12, "# Our server is old. Please be gentle.\n\nUser-agent: *\nCrawl-delay: 20\nDisallow: /cgi-bin/\n")
	slow["/"] = robotstest.Page(links(12, "/cgi-bin/count")...)
	news := pages(200, "User-agent: *\nDisallow: /archive/\n")
	news["/"] = robotstest.Page(links(200, "/archive/2019", "/archive/2020")...)
	for i := 3; i < 200; i += 17 {
		news[fmt.Sprintf("/%d", i)] = http.StatusNotFound
	}
	busy := pages(40, "User-agent: *\nAllow: /\n")
	for i := 14; i < 40; i += 2 {
		busy[fmt.Sprintf("/%d", i)] = http.StatusTooManyRequests
	}
	pause := pages(9, "User-agent: *\nDisallow:\n")
	pause["/1"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "75")
		http.Error(w, "not so fast", http.StatusTooManyRequests)
	})
	broken := pages(5, "")
	broken["/robots.txt"] = http.StatusInternalServerError
	blog := pages(25, "")
	blog["/robots.txt"] = http.StatusNotFound
	return robotstest.Sites{"shop.example": shop, "wiki.example": wiki, "slow.example": slow, "news.example": news, "busy.example": busy,
		"pause.example": pause, "broken.example": broken, "blog.example": blog}
}

// pages returns a site of n pages. The page "/" links to all of them.
func pages(n int, robots string) robotstest.Site {
	site := robotstest.Site{"/robots.txt": robots, "/": robotstest.Page(links(n)...)}
	for i := range n {
		site[fmt.Sprintf("/%d", i)] = robotstest.Page()
	}
	return site
}

func links(n int, more ...string) []string {
	links := more
	for i := range n {
		links = append(links, fmt.Sprintf("/%d", i))
	}
	return links
}

func locs(site string, n int, more ...string) []string {
	locs := more
	for i := range n {
		locs = append(locs, fmt.Sprintf("%s/%d", site, i))
	}
	return locs
}

// A crawl is a crawl that runs while a test looks at its page.
type crawl struct {
	web    *robotstest.Web
	robots *collyrobots.Plugin
	page   string // its URL

	collector *collyrobots.Collector
	visits    sync.WaitGroup
}

// newCrawl returns a crawl that has not begun, and its page. Both are closed at the end of the
// test.
func newCrawl(t *testing.T, sites robotstest.Sites, options ...collyrobots.Option) *crawl {
	t.Helper()
	c := &crawl{web: robotstest.New(t, sites)}
	c.collector = collyrobots.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.collector.WithTransport(c.web.Transport())
	var err error
	options = append([]collyrobots.Option{collyrobots.Logger(slog.New(slog.DiscardHandler)), collyrobots.MinDelay(250 * time.Millisecond),
		collyrobots.FollowSitemaps(collyrobots.Feed{})}, options...)
	if c.robots, err = c.collector.WithRobots(options...); err != nil {
		t.Fatal(err)
	}
	c.collector.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	mux := http.NewServeMux()
	mux.Handle("/robots/", http.StripPrefix("/robots", view.New(c.robots, view.Options{Control: c.robots})))
	server := httptest.NewServer(mux)
	c.page = server.URL + "/robots/"
	t.Cleanup(func() {
		c.robots.Close()
		c.visits.Wait()
		c.collector.Wait()
		server.CloseClientConnections()
		server.Close()
	})
	return c
}

// start visits each URL on its own goroutine.
func (c *crawl) start(urls ...string) {
	for _, u := range urls {
		c.visits.Go(func() { c.collector.Visit(u) })
	}
}

// startAll visits every site.
func (c *crawl) startAll() {
	c.startSlow()
	c.start(strings.Fields("http://shop.example/ http://wiki.example/ http://news.example/ http://busy.example/ " +
		"http://pause.example/ http://broken.example/ http://blog.example/")...)
}

// startSlow visits the pages of the slowest site directly, because it would take long to read its
// start page first.
func (c *crawl) startSlow() {
	c.start(locs("http://slow.example", 12, "http://slow.example/cgi-bin/count")...)
}

// served returns the page as the server sends it, before any script runs.
func (c *crawl) served(t *testing.T) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(c.page)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
