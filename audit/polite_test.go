package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/extensions"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/usage"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// TestPolitePrograms checks that the logs of programs that keep the rules have no faults and no
// exceptions, and every request that the server got.
func TestPolitePrograms(t *testing.T) {
	for _, x := range politePrograms() {
		t.Run(x.name, x.check)
	}
}

// every returns the URLs of n pages of a host.
func every(host string, n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("http://%s/%d", host, i))
	}
	return urls
}

// siteOf returns the sites of one host.
func siteOf(robots any, page any) robotstest.Sites {
	return robotstest.Sites{"shop.test": {"/robots.txt": robots, "*": page}}
}

const twoSeconds = "User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n"

// status answers with a status and a header.
func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// inTurn answers each request with the next answer, and then always with the last one.
func inTurn(answers ...http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		answers[min(i, len(answers)-1)](w, r)
	}
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(body)) }
}

// broken ends the connection without a response.
func broken(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func politePrograms() []program {
	coccoc := dialect.CocCoc()
	seznam := dialect.Seznam()
	return []program{
		{name: "links", run: func(p *programRun) { p.spider() }},
		{name: "asynchronous with a LimitRule", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots, colly.Async(), colly.MaxDepth(3))
			c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4, RandomDelay: time.Second})
			follow(c)
			c.Visit("http://shop.test/")
			c.Visit("http://blog.test/")
			c.Wait()
		}},
		{name: "two collectors and a clone", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			lists := p.collector(robots)
			pages := p.collector(robots, colly.Async())
			clone := pages.Clone()
			lists.OnHTML("a[href]", func(e *colly.HTMLElement) {
				pages.Visit(e.Request.AbsoluteURL(e.Attr("href")))
				clone.Visit(e.Request.AbsoluteURL(e.Attr("href")))
			})
			lists.Visit("http://shop.test/")
			pages.Wait()
			clone.Wait()
		}},
		{name: "colly/queue", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			q, _ := queue.New(3, &queue.InMemoryQueueStorage{MaxSize: 100})
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))) })
			q.AddURL("http://shop.test/")
			q.AddURL("http://blog.test/")
			q.Run(c)
		}},
		{name: "POST and HEAD", sites: siteOf(twoSeconds, ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.Post("http://shop.test/search", map[string]string{"q": "tea"})
			c.Head("http://shop.test/1")
			c.Head("http://shop.test/cart")
		}},
		{name: "CheckHead", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.CheckHead = true
			follow(c)
			c.Visit("http://shop.test/")
		}},
		{name: "another User-Agent for some pages", loose: "robots.txt is requested once for each name, before the delay for the name is known", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots, colly.AllowURLRevisit())
			n := 0
			c.OnRequest(func(r *colly.Request) {
				n++
				if n%2 == 0 {
					r.Headers.Set("User-Agent", "OtherBot/2.0")
				}
			})
			for range 3 {
				c.Visit("http://shop.test/")
				c.Visit("http://shop.test/tea")
				c.Visit("http://shop.test/cart")
			}
		}},
		{name: "a robots.txt for each name", sites: siteOf(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "User-agent: *\nDisallow: /not-%s\n", r.Header.Get("User-Agent"))
		}, ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			for _, name := range []string{"ExampleBot", "OtherBot"} {
				c := p.collector(robots, colly.UserAgent(name), colly.AllowURLRevisit())
				c.Visit("http://shop.test/")
				c.Visit("http://shop.test/not-ExampleBot")
				c.Visit("http://shop.test/not-OtherBot")
			}
			c := p.collector(robots, colly.UserAgent("ExampleBot"), colly.AllowURLRevisit())
			c.Visit("http://shop.test/")
		}},
		{name: "a site behind a cache", sites: siteOf(404, func(w http.ResponseWriter, r *http.Request) {
			age := time.Duration(len(r.URL.Path)*2741%86400) * time.Second
			w.Header().Set("Age", fmt.Sprint(age.Seconds()))
			w.Header().Set("Date", time.Now().Add(-age).UTC().Format(http.TimeFormat))
		}), run: func(p *programRun) {
			var urls []string
			for i := range 40 {
				urls = append(urls, "http://shop.test/"+strings.Repeat("x", i))
			}
			p.visit([]collyrobots.Option{collyrobots.MinDelay(time.Second)}, urls...)
		}},
		{name: "random User-Agents", sites: siteOf(twoSeconds, ""), run: func(p *programRun) {
			robots := p.with(collyrobots.ProductToken("ExampleBot"))
			defer robots.Close()
			c := p.collector(robots)
			extensions.RandomUserAgent(c)
			extensions.Referer(c)
			for _, u := range every("shop.test", 4) {
				c.Visit(u)
			}
		}},
		{name: "IgnoreRobotsTxt of Colly", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.IgnoreRobotsTxt = true
			follow(c)
			c.Visit("http://shop.test/")
		}},
		{name: "redirects", sites: robotstest.Sites{
			"shop.test": {
				"/robots.txt": twoSeconds, "*": "", "/old": robotstest.Redirect("/new"), "/loop": robotstest.Redirect("/loop"),
				"/buy": robotstest.Redirect("/cart"), "/away": robotstest.Redirect("http://blog.test/secret"), "/blog": robotstest.Redirect("http://blog.test/1"),
			},
			"blog.test": {"/robots.txt": "User-agent: *\nDisallow: /secret\nCrawl-delay: 3\n", "*": ""},
		}, run: func(p *programRun) {
			p.visit(nil, "http://shop.test/old", "http://shop.test/loop", "http://shop.test/buy", "http://shop.test/away", "http://shop.test/blog", "http://shop.test/blog")
		}},
		{name: "a robots.txt that redirects to another host", sites: robotstest.Sites{
			"shop.test":     {"/robots.txt": robotstest.Redirect("http://www.shop.test/robots.txt"), "*": ""},
			"www.shop.test": {"/robots.txt": twoSeconds, "*": ""},
		}, run: func(p *programRun) {
			p.visit(nil, "http://shop.test/", "http://shop.test/cart", "http://www.shop.test/", "http://www.shop.test/cart", "http://shop.test/1")
		}},
		{name: "a robots.txt that redirects for ever", sites: robotstest.Sites{
			"shop.test": {"/robots.txt": robotstest.Redirect("/robots.txt?again"), "/robots.txt?again": robotstest.Redirect("/robots.txt?again"), "*": ""},
		}, run: func(p *programRun) { p.visit(nil, "http://shop.test/", "http://shop.test/1") }},
		{name: "a very long robots.txt", loose: "the web counts a robots.txt that is not read to the end as unreadable", sites: siteOf(strings.Repeat("# a comment of no use\n", 40_000)+"User-agent: *\nDisallow: /late\n", ""), run: func(p *programRun) {
			p.visit(nil, "http://shop.test/late", "http://shop.test/")
		}},
		{name: "a robots.txt with bytes of no encoding", sites: siteOf([]byte("\xef\xbb\xbfUser-agent: *\r\nDisallow: /\xff\xfe\rDisallow: /caf\xc3\xa9\n\x00\x00"), ""), run: func(p *programRun) {
			p.visit(nil, "http://shop.test/%FF%FE/1", "http://shop.test/café", "http://shop.test/caf%c3%a9", "http://shop.test/cafe")
		}},
		{name: "a rule that is too long for an entry", sites: siteOf("User-agent: *\nDisallow: /"+strings.Repeat("*", 70_000)+"cart\nDisallow: /"+strings.Repeat("é*", 5_000)+"tea\n", ""), run: func(p *programRun) {
			p.visit(nil, "http://shop.test/cart", "http://shop.test/cart/2", "http://shop.test/éééé"+strings.Repeat("é", 5_000)+"tea", "http://shop.test/")
		}},
		{name: "a robots.txt with many sitemaps that changes", sites: siteOf(inTurn(text(twoSeconds+strings.Repeat("Sitemap: http://shop.test/a-long-name-of-a-sitemap.xml\n", 2000)), text(twoSeconds)), ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots, colly.AllowURLRevisit())
			for range 3 {
				c.Visit("http://shop.test/")
				time.Sleep(25 * time.Hour)
			}
		}},
		{name: "a site that makes entries long", sites: siteOf("User-agent: *\nDisallow: /*"+strings.Repeat("\x01*", 10_000)+"\n", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 40 {
				w.Header().Add("X-Robots-Tag", fmt.Sprintf("name%d: unavailable_after: %s, max-snippet:1", i, strings.Repeat("\"<>&", 4_000)))
			}
		}), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.EnforceNofollow(true)}, "http://shop.test/", "http://shop.test/"+strings.Repeat("%01", 20_000))
		}},
		{name: "throttled", sites: siteOf(twoSeconds, inTurn(text(""), status(429), status(503, "Retry-After", "60"), status(503), text(""))), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.RetryThrottled(2)}, every("shop.test", 6)...)
		}},
		{name: "throttled without a crawl delay", sites: siteOf(404, inTurn(text(""), status(429), status(503, "Retry-After", "60"), status(503), text(""))), run: func(p *programRun) {
			p.visit(nil, every("shop.test", 12)...)
		}},
		{name: "broken connections", sites: siteOf(twoSeconds, inTurn(text(""), broken, text(""), broken, broken, text(""))), run: func(p *programRun) {
			p.visit(nil, every("shop.test", 6)...)
		}},
		{name: "Retry of Colly", sites: siteOf(twoSeconds, inTurn(status(500), status(500), text(""))), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots, colly.AllowURLRevisit())
			c.OnError(func(r *colly.Response, _ error) { r.Request.Retry() })
			c.Visit("http://shop.test/1")
		}},
		{name: "a transport that requests pages again", sites: siteOf(twoSeconds, inTurn(text(""), status(500))), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.WithTransport(again{next: p.web.Transport()})
			for _, u := range every("shop.test", 3) {
				c.Visit(u)
			}
		}},
		{name: "timeouts", sites: siteOf(twoSeconds, inTurn(text(""), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, text(""))), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.SetRequestTimeout(5 * time.Second)
			for _, u := range every("shop.test", 4) {
				c.Visit(u)
			}
		}},
		{name: "interrupted", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			ctx, cancel := context.WithTimeout(p.Context(), 3*time.Second)
			defer cancel()
			c := p.collector(robots, colly.Async(), colly.StdlibContext(ctx))
			for _, u := range every("shop.test", 20) {
				c.Visit(u)
			}
			c.Wait()
		}},
		{name: "sitemaps", sites: robotstest.Sites{"shop.test": {
			"/robots.txt": twoSeconds + "Sitemap: http://shop.test/map.xml\nSitemap: http://maps.test/map.xml\n", "*": "",
			"/map.xml": robotstest.SitemapIndex("http://shop.test/1.xml", "http://shop.test/cart/2.xml"),
			"/1.xml":   robotstest.Sitemap("http://shop.test/1", "http://shop.test/cart/1"), "/cart/2.xml": robotstest.Sitemap("http://shop.test/2"),
		}, "maps.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 7\n", "/map.xml": robotstest.Sitemap("http://shop.test/3")}}, run: func(p *programRun) {
			robots := p.with(collyrobots.FollowSitemaps(collyrobots.Feed{}))
			defer robots.Close()
			c := p.collector(robots, colly.Async())
			c.Visit("http://shop.test/")
			c.Wait()
		}},
		{name: "Pages and Check", sites: robotstest.Sites{"shop.test": {
			"/robots.txt": twoSeconds + "Sitemap: /map.xml\n", "/map.xml": robotstest.Sitemap("http://shop.test/1", "http://shop.test/cart/1"), "*": "",
		}}, run: func(p *programRun) {
			client := &http.Client{Transport: p.web.Transport()}
			robots := p.with(collyrobots.RobotsClient(client), collyrobots.ProductToken("ExampleBot"))
			defer robots.Close()
			polite := &http.Client{Transport: robots.Transport(p.web.Transport())}
			for e, err := range robots.Pages(p.Context(), collyrobots.Feed{}, "http://shop.test/") {
				if d, _ := robots.Check(p.Context(), e.Loc); err == nil && d.Allowed {
					p.get(polite, e.Loc)
				}
			}
		}},
		{name: "an http.Client", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			client := &http.Client{Transport: robots.Transport(p.web.Transport())}
			for _, path := range []string{"/", "/tea", "/cart", "/gone"} {
				p.get(client, "http://shop.test"+path)
			}
		}},
		{name: "turns", run: func(p *programRun) {
			client := &http.Client{Transport: p.web.Transport()}
			robots := p.with(collyrobots.RobotsClient(client))
			defer robots.Close()
			for _, path := range []string{"/", "/tea", "/cart", "/gone"} {
				req, _ := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://shop.test"+path, nil)
				req.Header.Set("User-Agent", "ExampleBot/1.0")
				turn, err := robots.Acquire(p.Context(), req)
				if err != nil {
					continue
				}
				p.get(client, req.URL.String())
				turn.Answered(200, nil)
				turn.End()
			}
		}},
		{name: "HTTP/2 on https", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			transport := p.web.Transport()
			transport.ForceAttemptHTTP2 = true
			c.WithTransport(transport)
			follow(c)
			c.Visit("https://shop.test/")
			c.Visit("http://shop.test/tea")
		}},
		{name: "proxies", run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			transport := p.web.Transport()
			transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "blog.test"})
			c.WithTransport(transport)
			follow(c)
			c.Visit("http://shop.test/")
			c.Visit("https://shop.test/tea")
		}},
		{name: "a Host header", sites: robotstest.Sites{"10.1.1.1": {"/robots.txt": twoSeconds, "*": ""}}, run: func(p *programRun) {
			robots := p.with(collyrobots.PrivateNetworks(collyrobots.AllowAll))
			defer robots.Close()
			c := p.collector(robots)
			c.OnRequest(func(r *colly.Request) { r.Headers.Set("Host", "shop.test") })
			for _, u := range append(every("10.1.1.1", 3), "http://10.1.1.1/cart") {
				c.Visit(u)
			}
		}},
		{name: "ftp", sites: siteOf(twoSeconds, ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.WithTransport(ftpOverHTTP{p.web.Transport()})
			for _, u := range append(every("shop.test", 2), "http://shop.test/cart") {
				c.Visit("ftp" + strings.TrimPrefix(u, "http"))
			}
		}},
		{name: "odd URLs", sites: robotstest.Sites{"shop.test": {"/robots.txt": twoSeconds, "*": ""}, "xn--caf-dma.test": {"/robots.txt": twoSeconds, "*": ""}}, run: func(p *programRun) {
			p.visit(nil, "http://user:secret@shop.test/1", "HTTP://SHOP.test:80/2", "http://shop.test/%63art", "http://shop.test/a/../cart", "http://shop.test//cart",
				"http://shop.test/?q=a b", "http://shop.test/#x", "http://café.test/cart", "http://café.test/é", "http://shop.test/"+strings.Repeat("x", 70_000))
		}},
		{name: "Crawl-delay in Coc Coc", dialect: &coccoc, run: func(p *programRun) { p.spider(collyrobots.Dialect(coccoc)) }},
		{name: "Request-rate in Seznam", dialect: &seznam, sites: siteOf("User-agent: *\nRequest-rate: 1/10s\nDisallow: /cart\n", ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.Dialect(seznam)}, append(every("shop.test", 3), "http://shop.test/cart")...)
		}},
		{name: "Visit-time", sites: siteOf("User-agent: *\nVisit-time: 0600-0700\nRequest-rate: 1/20m\n", ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.HonorDelays(true)}, every("shop.test", 5)...)
		}},
		{name: "hours", sites: siteOf(twoSeconds, ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.CrawlHours("22:00", "22:01", time.UTC)}, every("shop.test", 40)...)
		}},
		{name: "a group", sites: robotstest.Sites{
			"a.shop.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\n", "*": ""}, "b.shop.test": {"*": ""}, "c.shop.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "*": ""},
		}, run: func(p *programRun) {
			robots := p.with(collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.MinDelay(time.Second))
			defer robots.Close()
			c := p.collector(robots, colly.Async())
			for _, host := range []string{"a", "b", "c"} {
				for _, u := range every(host+".shop.test", 5) {
					c.Visit(u)
				}
			}
			c.Wait()
		}},
		{name: "delays from the end of slow responses", sites: siteOf(twoSeconds, func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) }), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.DelayFromEnd(true), collyrobots.AdaptiveDelay(2)}, every("shop.test", 5)...)
		}},
		{name: "random gaps and a rate", sites: siteOf(twoSeconds, ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.Polite(), collyrobots.Jitter(1), collyrobots.MaxRate(0.4, 1)}, every("shop.test", 10)...)
		}},
		{name: "many requests in flight", sites: siteOf(404, func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) }), run: func(p *programRun) {
			robots := p.with(collyrobots.MaxInFlightPerHost(4), collyrobots.AdaptiveDelay(0.25))
			defer robots.Close()
			c := p.collector(robots, colly.Async())
			for _, u := range every("shop.test", 20) {
				c.Visit(u)
			}
			c.Wait()
		}},
		{name: "limits", sites: siteOf(twoSeconds, inTurn(text(""), status(403), status(403), status(403), text(""))), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.MaxPagesPerHost(5), collyrobots.StopAfterRefusals(3)}, every("shop.test", 10)...)
			time.Sleep(time.Minute)
			p.visit([]collyrobots.Option{collyrobots.MaxPagesPerHost(2)}, every("shop.test", 4)...)
		}},
		{name: "skipped for its delay", run: func(p *programRun) { p.spider(collyrobots.SkipCrawlDelayAbove(time.Second)) }},
		{name: "changes of robots.txt", sites: siteOf(inTurn(text("User-agent: *\nDisallow: /1\n"), text(twoSeconds), status(404), status(503), text("User-agent: *\nDisallow: /\n")), ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots, colly.AllowURLRevisit())
			for range 20 {
				c.Visit("http://shop.test/1")
				c.Visit("http://shop.test/cart")
				time.Sleep(7 * time.Hour)
			}
		}},
		{name: "a robots.txt that answers 304", sites: siteOf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			fmt.Fprint(w, twoSeconds)
		}, ""), run: func(p *programRun) {
			opts := []collyrobots.Option{collyrobots.Store(store.NewMemory())}
			for range 5 {
				p.visit(opts, "http://shop.test/1", "http://shop.test/cart")
				time.Sleep(13 * time.Hour)
			}
		}},
		{name: "pages that answer 304", sites: siteOf(twoSeconds, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(http.StatusNotModified)
			}
		}), run: func(p *programRun) {
			opts := []collyrobots.Option{collyrobots.Revalidate(collyrobots.Revalidation{}), collyrobots.Store(store.NewMemory())}
			for range 3 {
				p.visit(opts, every("shop.test", 3)...)
				time.Sleep(time.Minute)
			}
		}},
		{name: "pages of CacheDir", sites: siteOf(twoSeconds, ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			for range 2 {
				c := p.collector(robots, colly.CacheDir(filepath.Join(p.dir, "..", "cache")))
				for _, u := range every("shop.test", 3) {
					c.Visit(u)
				}
			}
		}},
		{name: "an unreachable robots.txt", sites: siteOf(inTurn(broken, status(500), text(twoSeconds), status(500)), ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots, colly.AllowURLRevisit())
			for range 12 {
				c.Visit("http://shop.test/1")
				time.Sleep(10 * time.Hour)
			}
		}},
		{name: "forbidden robots.txt", sites: robotstest.Sites{"a.test": {"/robots.txt": 401, "*": ""}, "b.test": {"/robots.txt": 403, "*": ""}}, run: func(p *programRun) {
			p.visit(nil, "http://a.test/", "http://b.test/")
		}},
		{name: "TDMRep files", sites: robotstest.Sites{"shop.test": {"/robots.txt": twoSeconds, "/.well-known/tdmrep.json": `[{"location": "/1", "tdm-reservation": 1}]`, "*": ""}}, run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true)}, every("shop.test", 3)...)
		}},
		{name: "Content-Signal", sites: siteOf("User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n", ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true)}, every("shop.test", 3)...)
		}},
		{name: "nofollow", sites: robotstest.Sites{"shop.test": {
			"/robots.txt": twoSeconds, "/": `<!DOCTYPE html><html><head><meta name="robots" content="nofollow"></head><body><a href="/1">1</a></body></html>`, "*": "",
		}}, run: func(p *programRun) { p.spider(collyrobots.EnforceNofollow(true)) }},
		{name: "signatures", sites: siteOf(twoSeconds, ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.SignRequests(newSigner(p.T))}, every("shop.test", 3)...)
		}},
		{name: "signatures when a site asks", sites: siteOf(twoSeconds, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Signature") == "" {
				w.Header().Set("Accept-Signature", `sig1=("@authority" "signature-agent");created;keyid;tag="web-bot-auth"`)
				w.WriteHeader(http.StatusUnauthorized)
			}
		}), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.SignRequests(whenAsked(p.T)), collyrobots.Store(store.NewMemory())}, every("shop.test", 3)...)
		}},
		{name: "shadows", run: func(p *programRun) { p.spider(collyrobots.Shadow(dialect.Google(), dialect.Temoto())) }},
		{name: "a store that lasts for three runs", run: func(p *programRun) {
			dir := filepath.Join(p.dir, "..", "store")
			for range 3 {
				files, err := store.OpenDir(dir)
				if err != nil {
					p.Fatal(err)
				}
				p.visit([]collyrobots.Option{collyrobots.Store(files)}, "http://shop.test/", "http://shop.test/cart", "http://shop.test/tea")
				files.Close()
				time.Sleep(9 * time.Hour)
			}
		}},
		{name: "a run that was killed, and the next one", run: func(p *programRun) {
			memory := store.NewMemory()
			p.visit([]collyrobots.Option{collyrobots.Store(memory)}, "http://shop.test/", "http://shop.test/cart")
			p.reopenKilled()
			p.visit([]collyrobots.Option{collyrobots.Store(memory)}, "http://shop.test/", "http://shop.test/tea")
		}},
		{name: "two plugins for different hosts", run: func(p *programRun) {
			one := p.with()
			defer one.Close()
			two := p.with()
			defer two.Close()
			p.collector(one).Visit("http://shop.test/")
			p.collector(two).Visit("http://blog.test/")
			p.collector(one).Visit("http://shop.test/tea")
			p.collector(two).Visit("http://blog.test/1")
		}},
	}
}

// An ftpOverHTTP is a transport for ftp URLs.
type ftpOverHTTP struct{ next http.RoundTripper }

func (f ftpOverHTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme = "http"
	return f.next.RoundTrip(req)
}

func newSigner(t *testing.T) *webbotauth.Signer {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	s, err := webbotauth.NewSigner(key, "https://bot.test"+webbotauth.DirectoryPath, webbotauth.Draft)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// whenAsked returns a Signer that signs only requests to sites that ask for it.
func whenAsked(t *testing.T) *webbotauth.Signer {
	s := newSigner(t)
	s.WhenAsked = true
	return s
}

// reopenKilled replaces the log by what the next process finds if this one is killed a second after
// its last event.
func (p *programRun) reopenKilled() {
	p.Helper()
	time.Sleep(time.Second)
	dir := filepath.Join(filepath.Dir(p.dir), "next")
	err := os.CopyFS(dir, os.DirFS(p.dir))
	err = errors.Join(err, p.log.Close())
	if err != nil {
		p.Fatal(err)
	}
	p.dir = dir
	p.log = mustOpen(p.T, dir)
}
