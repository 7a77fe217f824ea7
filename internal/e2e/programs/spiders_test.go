package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/extensions"
	"github.com/gocolly/colly/v2/proxy"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// programs are the programs of TestProgramsAreTheSameWithPlugin.
var programs = []program{
	{name: "follows links within domains and depth", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.AllowedDomains("a.test"), colly.MaxDepth(3)))
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "follows links in parallel", sites: tree, unordered: true, run: func(p *kit.Run) {
		c := p.Collector(colly.Async())
		c.OnResponse(func(r *colly.Response) { p.Say("%d %s", r.StatusCode, r.Request.URL) })
		c.OnError(func(r *colly.Response, err error) { p.Say("%s: %v", r.Request.URL, err) })
		follow(c)
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2}))
		p.Attach(c)
		kit.Must(p.T, c.Visit("http://a.test/"))
		c.Wait()
	}},
	{name: "rotates proxies for each request", sites: proxied, rotates: true, run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.AllowURLRevisit()))
		rotate, err := proxy.RoundRobinProxySwitcher("http://proxy0.test:3128", "http://proxy1.test:3128", "http://proxy2.test:3128")
		kit.Must(p.T, err)
		c.SetProxyFunc(rotate)
		p.Attach(c)
		for range 5 {
			p.Say("%v", c.Visit("http://a.test/4"))
		}
	}},
	{name: "uses the next proxy after an error", sites: proxied, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		next := 1
		kit.Must(p.T, c.SetProxy("http://dead.test:3128"))
		c.OnError(func(r *colly.Response, err error) {
			kit.Must(p.T, c.SetProxy(fmt.Sprintf("http://proxy%d.test:3128", next)))
			next++
			if next < 5 {
				p.Say("retry: %v", r.Request.Retry())
			}
		})
		p.Attach(c)
		for _, page := range []string{"/1", "/2", "/missing"} {
			p.Say("visit: %s", kit.SameText(c.Visit("http://a.test"+page)))
		}
	}},
	{name: "chooses the proxy by a header of the page", sites: proxied, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.SetProxyFunc(func(r *http.Request) (*url.URL, error) {
			if name := r.Header.Get("X-Proxy"); name != "" {
				return url.Parse("http://" + name + ".test:3128")
			}
			return nil, nil
		})
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("X-Proxy", "proxy"+r.URL.Path[1:]) })
		p.Attach(c)
		for _, page := range []string{"/1", "/2"} {
			p.Say("%v", c.Visit("http://a.test"+page))
		}
	}},
	{name: "logs in with a form", sites: members, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Post("http://a.test/login", map[string]string{"user": "me", "token": "t0"}))
		p.Say("cookies %v", c.Cookies("http://a.test/"))
		p.Say("%v", c.Visit("http://a.test/private/2"))
	}},
	{name: "sends a cookie header and changes the query", sites: members, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnRequest(func(r *colly.Request) {
			r.Headers.Set("Cookie", "session=in")
			r.URL.RawQuery = url.Values{"su": {"me"}, "layout": {"default"}}.Encode()
		})
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/private/1"))
	}},
	{name: "keeps URLs in a queue", sites: func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(9, "")} }, unordered: true, run: func(p *kit.Run) {
		c := p.Collector()
		c.OnResponse(func(r *colly.Response) { p.Say("%d %s", r.StatusCode, r.Request.URL) })
		c.OnError(func(r *colly.Response, err error) { p.Say("%s: %v", r.Request.URL, err) })
		q, err := queue.New(2, &queue.InMemoryQueueStorage{MaxSize: 1000})
		kit.Must(p.T, err)
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))) })
		p.Attach(c)
		kit.Must(p.T, q.AddURL("http://a.test/"))
		p.Say("%v", q.Run(c))
	}},
	{name: "keeps requests with contexts in a queue", sites: tree, unordered: true, run: func(p *kit.Run) {
		c := p.Collector(colly.AllowURLRevisit())
		q, err := queue.New(3, &queue.InMemoryQueueStorage{MaxSize: 1000})
		kit.Must(p.T, err)
		c.OnResponse(func(r *colly.Response) {
			n, _ := strconv.Atoi(r.Ctx.Get("n"))
			p.Say("%s for %d", r.Request.URL, n)
			if n < 4 {
				next, err := r.Request.New("GET", "http://a.test/4?n="+strconv.Itoa(n), nil)
				kit.Must(p.T, err)
				next.Ctx = colly.NewContext()
				next.Ctx.Put("n", strconv.Itoa(n+1))
				kit.Must(p.T, q.AddRequest(next))
			}
		})
		p.Attach(c)
		kit.Must(p.T, q.AddURL("http://a.test/1"))
		p.Say("%v", q.Run(c))
	}},
	{name: "retries until it succeeds", sites: flaky(502), run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/9"))
	}},
	{name: "waits before a retry after 429", sites: flaky(429), run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnError(func(r *colly.Response, err error) {
			if r.StatusCode == http.StatusTooManyRequests {
				time.Sleep(10 * time.Second)
				r.Request.Retry()
			}
		})
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/2"))
	}},
	{name: "reads lists and details with two collectors", sites: tree, run: func(p *kit.Run) {
		list := p.Hear(p.Collector(colly.AllowedDomains("a.test")))
		detail := p.Hear(list.Clone())
		list.OnHTML("a[href]", func(e *colly.HTMLElement) {
			ctx := colly.NewContext()
			ctx.Put("from", e.Request.URL.String())
			p.Say("%v", detail.Request("GET", e.Request.AbsoluteURL(e.Attr("href")), nil, ctx, nil))
		})
		detail.OnResponse(func(r *colly.Response) { p.Say("from %s", r.Ctx.Get("from")) })
		p.Attach(list, detail)
		p.Say("%v", list.Visit("http://a.test/"))
	}},
	{name: "sends JSON to an API page by page", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/api": func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ Page int }
			json.NewDecoder(r.Body).Decode(&asked)
			fmt.Fprintf(w, `{"page":%d,"more":%v,"type":%q}`, asked.Page, asked.Page < 3, r.Header.Get("Content-Type"))
		}}}
	}, run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.AllowURLRevisit()))
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("Content-Type", "application/json") })
		page := 0
		send := func() error {
			page++
			return c.PostRaw("http://a.test/api", fmt.Appendf(nil, `{"page":%d}`, page))
		}
		c.OnResponse(func(r *colly.Response) {
			p.Say("%s", r.Body)
			if bytes.Contains(r.Body, []byte(`"more":true`)) {
				p.Say("%v", send())
			}
		})
		p.Attach(c)
		p.Say("%v", send())
	}},
	{name: "checks links with HEAD", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { p.Say("%v", e.Request.Visit(e.Attr("href"))) })
		p.Attach(c)
		for _, page := range []string{"/", "/missing", "/moved", "/1"} {
			p.Say("%v", c.Head("http://a.test"+page))
		}
	}},
	{name: "sends HEAD before each GET", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.CheckHead()))
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "reads the body of error pages", sites: flaky(503), run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.ParseHTTPErrorResponse(), colly.AllowURLRevisit()))
		p.Attach(c)
		for range 3 {
			p.Say("%v", c.Visit("http://a.test/1"))
		}
	}},
	{name: "reads a page again from its cache", sites: tree, run: func(p *kit.Run) {
		dir := p.TempDir()
		for range 2 {
			c := p.Hear(p.Collector(colly.CacheDir(dir)))
			follow(c)
			p.Attach(c)
			p.Say("%v", c.Visit("http://a.test/"))
		}
	}},
	{name: "sends the referer of a browser", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		extensions.Referer(c)
		extensions.URLLengthFilter(c, 40)
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
		p.Say("%v", c.Visit("http://a.test/"+strings.Repeat("x", 40)))
	}},
	{name: "has a short timeout", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.SetRequestTimeout(5 * time.Second)
		p.Attach(c)
		began := time.Now()
		p.Say("%s", kit.SameText(c.Visit("http://b.test/late")))
		p.Say("%v", time.Since(began))
		p.Say("%v", c.Visit("http://b.test/"))
	}},
	{name: "stops after some pages by its context", sites: func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(20, "")} }, run: func(p *kit.Run) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c := p.Hear(p.Collector(colly.StdlibContext(ctx)))
		pages := 0
		c.OnScraped(func(*colly.Response) {
			pages++
			if pages == 5 {
				cancel()
			}
		})
		p.Attach(c)
		for i := range 20 {
			err := c.Visit(fmt.Sprint("http://a.test/", i))
			p.Say("%v, canceled %v", kit.SameText(err), errors.Is(err, context.Canceled))
		}
	}},
	{name: "stops at redirects", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.SetRedirectHandler(func(req *http.Request, via []*http.Request) error {
			p.Say("redirect to %s after %d", req.URL, len(via))
			return http.ErrUseLastResponse
		})
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/moved"))
	}},
	{name: "may not be redirected to other hosts", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/": robotstest.Redirect("http://b.test/")}, "b.test": {"/": "b"}}
	}, run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.AllowedDomains("a.test")))
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
		p.Say("%v", c.Visit("http://b.test/"))
	}},
	{name: "sends a password", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/robots.txt": 401, "/": func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			io.WriteString(w, robotstest.Page())
		}}}
	}, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("Authorization", "Basic bWU6c2VjcmV0") })
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "signs requests in its transport", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		inner := p.Web.Transport()
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/robots.txt" {
				p.Say("transport %s", r.URL)
			}
			r = r.Clone(r.Context())
			r.Header.Set("Cookie", "signed="+r.URL.Path)
			return inner.RoundTrip(r)
		}))
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "counts its connections", sites: func() robotstest.Sites {
		sites := tree()
		sites["a.test"]["/robots.txt"] = kit.NoDenys
		sites["b.test"]["/robots.txt"] = kit.NoDenys
		return sites
	}, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		transport := p.Web.Transport()
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			p.Say("dial %s", address)
			return dial(ctx, network, address)
		}
		c.WithTransport(transport)
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "has its own client", sites: members, run: func(p *kit.Run) {
		jar, err := cookiejar.New(nil)
		kit.Must(p.T, err)
		client := &http.Client{Transport: p.Web.Transport(), Jar: jar, Timeout: time.Minute}
		c := p.Hear(colly.NewCollector(colly.UserAgent("ExampleBot/1.0")))
		c.SetClient(client)
		p.Attach(c)
		p.Say("%v", c.Post("http://a.test/login", map[string]string{"user": "me", "token": "t0"}))
		site, err := url.Parse("http://a.test/")
		kit.Must(p.T, err)
		p.Say("%d cookies in the jar", len(jar.Cookies(site)))
	}},
	{name: "asks Colly which pages it has visited", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		p.Attach(c)
		for range 2 {
			for _, u := range []string{"http://a.test/1", "http://a.test/missing", "http://a.test/moved", "http://a.test/5"} {
				visited, err := c.HasVisited(u)
				p.Say("%v %v, then %v", visited, err, c.Visit(u))
			}
		}
	}},
	{name: "aborts downloads that are not HTML", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/": robotstest.Page("/film", "/1"), "/1": robotstest.Page(), "/film": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "video/mp4")
			w.Write(make([]byte, 1<<16))
		}}}
	}, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnResponseHeaders(func(r *colly.Response) {
			if !strings.HasPrefix(r.Headers.Get("Content-Type"), "text/html") {
				r.Request.Abort()
			}
		})
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "visits from its own goroutines", sites: func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(12, "")} }, unordered: true, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 3, Delay: time.Second}))
		p.Attach(c)
		var workers sync.WaitGroup
		for i := range 12 {
			workers.Go(func() { p.Say("%v", c.Visit(fmt.Sprint("http://a.test/", i))) })
		}
		workers.Wait()
	}},
	{name: "saves requests", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.AllowURLRevisit()))
		var kept [][]byte
		c.OnResponse(func(r *colly.Response) {
			r.Ctx.Put("seen", "yes")
			b, err := r.Request.Marshal()
			kit.Must(p.T, err)
			kept = append(kept, b)
		})
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/1"))
		other := p.Hear(p.Collector())
		p.Attach(other)
		for _, b := range kept {
			r, err := other.UnmarshalRequest(b)
			kit.Must(p.T, err)
			p.Say("%s %v", r.Ctx.Get("seen"), r.Do())
		}
	}},
	{name: "aborts requests after a number of pages", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		pages := 0
		c.OnRequest(func(r *colly.Request) {
			pages++
			if pages > 3 {
				r.Abort()
			}
		})
		follow(c)
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "limits its requests", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector(colly.MaxRequests(4)))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { p.Say("%v", e.Request.Visit(e.Attr("href"))) })
		p.Attach(c)
		p.Say("%v", c.Visit("http://a.test/"))
	}},
	{name: "recovers from its own panics", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { panic("no such element") })
		p.Attach(c)
		for _, page := range []string{"/", "/1", "/4"} {
			func() {
				defer func() { p.Say("panic %v", recover()) }()
				p.Say("%v", c.Visit("http://a.test"+page))
			}()
		}
	}},
	{name: "uses other methods", sites: tree, run: func(p *kit.Run) {
		c := p.Hear(p.Collector())
		p.Attach(c)
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			p.Say("%v", c.Request(method, "http://a.test/4", strings.NewReader("x"), nil, http.Header{"X-Test": {"1"}}))
		}
	}},
}
