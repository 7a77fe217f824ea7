package programs

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// closedPages is a robots.txt with a delay that denies the pages below /closed.
const closedPages = "User-agent: *\nDisallow: /closed\nCrawl-delay: 2\n"

// TestPolitePrograms runs each program three times. If robots.txt allows everything, it must behave
// with the plugin as without it. Under the robots.txt in closed, it must end, still get a page, and
// send no request that this robots.txt does not allow.
func TestPolitePrograms(t *testing.T) {
	for _, x := range slices.Concat(unusualPrograms, proxyPrograms, namesPrograms) {
		t.Run(x.name, func(t *testing.T) {
			if seen := x.isSame(t); !slices.ContainsFunc(seen, isClosed) {
				t.Errorf("without the plugin, the program requests no closed page: %q", seen)
			}
			x.obeys(t)
		})
	}
}

// obeys runs a program under the robots.txt in x.closed.
func (x program) obeys(t *testing.T) {
	t.Helper()
	robots := x.closed
	if robots == "" {
		robots = closedPages
	}
	_, seen := x.once(t, setting{robots: robots, options: x.pluginOptions(), verify: verify})
	if len(seen) == 0 {
		t.Error("under a strict robots.txt, the program gets no page")
	}
}

// isClosed reports whether a line of the access log is about a page below /closed.
func isClosed(line string) bool { return strings.Contains(line, "/closed") }

// library returns two sites with open and closed pages.
func library() robotstest.Sites {
	sites := robotstest.Sites{}
	for _, host := range []string{"a.test", "b.test"} {
		site := robotstest.Site{"/": robotstest.Page("/1", "/2", "/3", "/closed/1")}
		for i := 1; i <= 9; i++ {
			site[fmt.Sprint("/", i)] = robotstest.Page(fmt.Sprint("/", i+1), fmt.Sprint("/closed/", i))
			site[fmt.Sprint("/closed/", i)] = robotstest.Page("/")
		}
		sites[host] = site
	}
	return sites
}

// someOf returns the URLs of open and closed pages of a host.
func someOf(host string) []string {
	pages := []string{"/1", "/2", "/closed/1", "/3", "/4", "/closed/2", "/5"}
	for i := range pages {
		pages[i] = "http://" + host + pages[i]
	}
	return pages
}

// fails returns a library whose pages fail once, in the way of fail.
func fails(fail http.HandlerFunc) func() robotstest.Sites {
	return func() robotstest.Sites {
		sites := library()
		for _, page := range []string{"/2", "/4"} {
			sites["a.test"][page] = failsFirst(1, fail, answers(robotstest.Page("/5")))
		}
		return sites
	}
}

// got prints the pages that c gets.
func got(p *kit.Run, c *colly.Collector) *colly.Collector {
	c.OnResponse(func(r *colly.Response) { p.Say("%d %s", r.StatusCode, r.Request.URL) })
	return c
}

// visitEach visits pages one after the other.
func visitEach(c *colly.Collector, urls ...string) {
	for _, u := range urls {
		c.Visit(u)
	}
}

// unusualPrograms do what few programs do.
var unusualPrograms = []program{
	{name: "decides by the text of an error what it retries", sites: fails(kit.Drop), run: func(p *kit.Run) {
		c := got(p, p.Collector())
		c.OnError(func(r *colly.Response, err error) {
			text := strings.ToLower(err.Error())
			tries, _ := r.Ctx.GetAny("tries").(int)
			switch {
			case strings.Contains(text, "no such host"):
				p.Say("gone %s", r.Request.URL)
			case tries < 3 && (strings.Contains(text, "eof") || strings.Contains(text, "reset") || strings.Contains(text, "timeout")):
				r.Ctx.Put("tries", tries+1)
				r.Request.Retry()
			}
		})
		p.Attach(c)
		visitEach(c, someOf("a.test")...)
		c.Visit("http://unknown.test/")
	}},
	{name: "retries status 0 and sleeps with a mutex held", sites: fails(kit.Drop), unordered: true, run: func(p *kit.Run) {
		c := got(p, p.Collector(colly.Async()))
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4}))
		mutex := make(chan struct{}, 1) // time does not pass in a bubble while a sync.Mutex is waited for
		tries := make(map[string]int)
		c.OnError(func(r *colly.Response, err error) {
			mutex <- struct{}{}
			defer func() { <-mutex }()
			u := r.Request.URL.String()
			if r.StatusCode == 0 && tries[u] < 3 {
				tries[u]++
				time.Sleep(5 * time.Second)
				r.Request.Retry()
			}
		})
		p.Attach(c)
		visitEach(c, someOf("a.test")...)
		visitEach(c, someOf("b.test")...)
		c.Wait()
	}},
	{name: "replaces the headers in a callback after the plugin", sites: library, closed: "User-agent: NewBot\nDisallow: /closed\nCrawl-delay: 2\n", run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		p.Attach(c)
		c.OnRequest(func(r *colly.Request) {
			h := r.Headers.Clone()
			h.Set("User-Agent", "NewBot/1.0")
			r.Headers = &h
		})
		visitEach(c, someOf("a.test")...)
	}},
	{name: "decodes pages with a content coding of its own", sites: func() robotstest.Sites {
		sites := library()
		sites["a.test"]["*"] = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "zstd") {
				w.WriteHeader(http.StatusNotAcceptable)
				return
			}
			w.Header().Set("Content-Encoding", "zstd")
			io.WriteString(w, base64.StdEncoding.EncodeToString([]byte(robotstest.Page("/closed/3", "/coded/2"))))
		}
		return sites
	}, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("Accept-Encoding", "gzip, deflate, br, zstd") })
		c.OnResponse(func(r *colly.Response) {
			if r.Headers.Get("Content-Encoding") == "zstd" {
				body, err := base64.StdEncoding.DecodeString(string(r.Body))
				kit.Must(p.T, err)
				r.Body = body
			}
		})
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/coded/1"))
	}},
	{name: "abandons a collector while it runs", sites: library, unordered: true, run: func(p *kit.Run) {
		begin := func() {
			c := p.Collector(colly.Async(), colly.AllowedDomains("a.test"))
			follow(c)
			p.Attach(c)
			c.Visit("http://a.test/")
		}
		begin()
		c := got(p, p.Collector())
		p.Attach(c)
		p.Say("%v", c.Visit("http://b.test/1"))
		time.Sleep(10 * time.Minute) // the program does something else
	}},
	{name: "has a collector and a plugin for each call, and is frozen between them", sites: library, run: func(p *kit.Run) {
		for _, pause := range []time.Duration{0, time.Hour, 30 * time.Hour} {
			time.Sleep(pause)
			c := got(p, p.Collector())
			p.Attach(c)
			visitEach(c, someOf("a.test")...)
			c.Wait()
		}
	}},
	{name: "changes the client, the proxy and the agent after an error, sleeps and visits again", sites: func() robotstest.Sites {
		sites := fails(status(503))()
		sites["proxy.test:3128"] = nil
		return sites
	}, run: func(p *kit.Run) {
		c := got(p, p.Collector(colly.AllowURLRevisit()))
		c.OnError(func(r *colly.Response, err error) {
			if r.StatusCode != http.StatusServiceUnavailable {
				return
			}
			for _, name := range slices.Sorted(maps.Keys(*r.Headers)) {
				p.Say("header %s", name)
			}
			c.WithTransport(p.Web.Transport())
			kit.Must(p.T, c.SetProxy("http://proxy.test:3128"))
			c.UserAgent = "OtherBot/2.0"
			c.SetClient(&http.Client{Transport: p.Web.Transport()})
			time.Sleep(50 * time.Second)
			p.Say("again: %v", r.Request.Visit("http://"+r.Request.URL.Host+r.Request.URL.RequestURI()))
		})
		p.Attach(c)
		visitEach(c, someOf("a.test")...)
	}},
	{name: "consumes tasks with clones of one collector", sites: library, unordered: true, run: func(p *kit.Run) {
		base := p.Collector(colly.AllowURLRevisit())
		base.SetRequestTimeout(30 * time.Second)
		p.Attach(base)
		tasks := make(chan string)
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for task := range tasks {
					c := got(p, base.Clone())
					c.Visit(task)
				}
			})
		}
		for _, u := range append(someOf("a.test"), someOf("b.test")...) {
			tasks <- u
		}
		close(tasks)
		group.Wait()
	}},
	{name: "keeps its place in the context of a chain of pages", sites: library, run: func(p *kit.Run) {
		c := p.Collector(colly.AllowURLRevisit())
		c.OnResponse(func(r *colly.Response) {
			depth, _ := strconv.Atoi(r.Ctx.Get("depth"))
			p.Say("%s at %d from %q", r.Request.URL, depth, r.Ctx.Get("from"))
			if depth < 5 {
				ctx := colly.NewContext()
				ctx.Put("depth", strconv.Itoa(depth+1))
				ctx.Put("from", r.Request.URL.Path)
				c.Request(http.MethodGet, fmt.Sprint("http://a.test/", depth+1), nil, ctx, nil)
				c.Request(http.MethodGet, fmt.Sprint("http://a.test/closed/", depth+1), nil, colly.NewContext(), http.Header{"X-Test": {"1"}})
			}
		})
		c.MaxDepth = 0
		p.Attach(c)
		c.MaxRequests = 40
		p.Say("%v", c.Visit("http://a.test/9"))
	}},
	{name: "reads only the headers of large files", sites: func() robotstest.Sites {
		sites := library()
		sites["a.test"]["/large"] = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "4000000")
			io.CopyN(w, strings.NewReader(strings.Repeat("x", 4000000)), 4000000)
		}
		return sites
	}, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnResponseHeaders(func(r *colly.Response) {
			if n, _ := strconv.Atoi(r.Headers.Get("Content-Length")); n > 1000000 {
				r.Request.Abort()
			}
		})
		p.Attach(c)
		visitEach(c, "http://a.test/large", "http://a.test/1", "http://a.test/closed/1", "http://a.test/2")
	}},
	{name: "has a transport of its own that adds a header and retries", sites: fails(status(502)), run: func(p *kit.Run) {
		c := got(p, p.Collector())
		next := p.Web.Transport()
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Client", "7")
			return next.RoundTrip(r)
		}))
		c.OnError(func(r *colly.Response, err error) {
			if r.StatusCode == http.StatusBadGateway {
				r.Request.Retry()
			}
		})
		p.Attach(c)
		visitEach(c, someOf("a.test")...)
	}},
}

// TestTransportBeforeEachVisit sets the transport of a collector before each of 100 visits that are
// in flight. Colly alone has a data race here, and the plugin cannot remove it, so the test does not
// run under the race detector.
func TestTransportBeforeEachVisit(t *testing.T) {
	if kit.UnderRace {
		t.Skip("Colly's WithTransport has a data race with requests in flight")
	}
	site := robotstest.Pages(100, "User-agent: *\nDisallow: /7\n")
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		for i := range 100 {
			c.WithTransport(web.Transport())
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		kit.WantDenied(t, c, "http://a.test/7", report.ReasonRule, 2)
		for i := range 100 {
			if u := fmt.Sprint("http://a.test/", i); !strings.HasPrefix(u, "http://a.test/7") && !slices.Contains(c.Pages, u) {
				t.Errorf("%s: got %v, want the page", u, c.Errs[u])
			}
		}
	})
}
