package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// hosts are the sites in the order of the picture.
var hosts = []struct {
	name  string
	rules string   // robots.txt without its first line
	links []string // the links of the start page to the other pages
}{
	{name: "fast.test", rules: "Disallow: /cart", links: []string{"/1", "/2", "/cart", "/3", "/4", "/5", "/6", "/7"}},
	{name: "shop.test", rules: "Disallow: /cart\nCrawl-delay: 1", links: []string{"/1", "/cart", "/2", "/3", "/cart/1", "/4", "/5"}},
	{name: "slow.test", rules: "Disallow: /cart\nCrawl-delay: 2", links: []string{"/1", "/cart", "/2"}},
}

const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// sites returns the web of a crawl.
func sites() robotstest.Sites {
	web := make(robotstest.Sites)
	for _, h := range hosts {
		site := robotstest.Site{"/robots.txt": "User-agent: *\n" + h.rules + "\n", "/": page(h.links)}
		for _, link := range h.links {
			site[link] = page(nil)
		}
		web[h.name] = site
	}
	return web
}

// page returns a handler for a page. It answers after 80 milliseconds, like a real site.
func page(links []string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(80 * time.Millisecond)
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, robotstest.Page(links...))
	}
}

// crawl crawls the sites with a spider, with or without the plugin, and returns the access log.
func crawl(web *robotstest.Web, plugin bool) (robotstest.Log, error) {
	c := colly.NewCollector(colly.Async(), colly.UserAgent(userAgent))
	c.WithTransport(web.Transport())
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4}); err != nil {
		return nil, err
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	if plugin {
		robots, err := collyrobots.WithRobots(c, collyrobots.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		defer robots.Close()
	}
	web.Reset()
	for _, h := range hosts {
		if err := c.Visit("http://" + h.name + "/"); err != nil {
			return nil, err
		}
	}
	c.Wait()
	return web.Log(""), nil
}

// isDenied reports whether the rules of a host disallow a request of the spider.
func isDenied(rules string, r robotstest.Request) bool {
	u, err := url.ParseRequestURI(r.URI)
	if err != nil {
		return false
	}
	file := dialect.RFC9309().Parse([]byte(fmt.Sprint("User-agent: *\n", rules, "\n")))
	return !file.Group(dialect.ProductToken(userAgent)).Decide(dialect.Target(u)).Allowed
}
