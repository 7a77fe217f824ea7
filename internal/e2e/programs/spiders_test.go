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
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	{name: "follows links within domains and depth", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector(colly.AllowedDomains("a.test"), colly.MaxDepth(3)))
		follow(c)
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "follows links in parallel", sites: tree, unordered: true, run: func(p *programRun) {
		c := p.collector(colly.Async())
		c.OnResponse(func(r *colly.Response) { p.say("%d %s", r.StatusCode, r.Request.URL) })
		c.OnError(func(r *colly.Response, err error) { p.say("%s: %v", r.Request.URL, err) })
		follow(c)
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2}))
		p.attach(c)
		kit.Must(p.T, c.Visit("http://a.test/"))
		c.Wait()
	}},
	{name: "rotates proxies for each request", sites: proxied, rotates: true, run: func(p *programRun) {
		c := p.hear(p.collector(colly.AllowURLRevisit()))
		rotate, err := proxy.RoundRobinProxySwitcher("http://proxy0.test:3128", "http://proxy1.test:3128", "http://proxy2.test:3128")
		kit.Must(p.T, err)
		c.SetProxyFunc(rotate)
		p.attach(c)
		for range 5 {
			p.say("%v", c.Visit("http://a.test/4"))
		}
	}},
	{name: "uses the next proxy after an error", sites: proxied, run: func(p *programRun) {
		c := p.hear(p.collector())
		next := 1
		kit.Must(p.T, c.SetProxy("http://dead.test:3128"))
		c.OnError(func(r *colly.Response, err error) {
			kit.Must(p.T, c.SetProxy(fmt.Sprintf("http://proxy%d.test:3128", next)))
			next++
			if next < 5 {
				p.say("retry: %v", r.Request.Retry())
			}
		})
		p.attach(c)
		for _, page := range []string{"/1", "/2", "/missing"} {
			p.say("visit: %s", kit.SameText(c.Visit("http://a.test"+page)))
		}
	}},
	{name: "chooses the proxy by a header of the page", sites: proxied, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.SetProxyFunc(func(r *http.Request) (*url.URL, error) {
			if name := r.Header.Get("X-Proxy"); name != "" {
				return url.Parse("http://" + name + ".test:3128")
			}
			return nil, nil
		})
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("X-Proxy", "proxy"+r.URL.Path[1:]) })
		p.attach(c)
		for _, page := range []string{"/1", "/2"} {
			p.say("%v", c.Visit("http://a.test"+page))
		}
	}},
	{name: "logs in with a form", sites: members, run: func(p *programRun) {
		c := p.hear(p.collector())
		follow(c)
		p.attach(c)
		p.say("%v", c.Post("http://a.test/login", map[string]string{"user": "me", "token": "t0"}))
		p.say("cookies %v", c.Cookies("http://a.test/"))
		p.say("%v", c.Visit("http://a.test/private/2"))
	}},
	{name: "logs in with the token of the login page", sites: members, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnHTML("form input[name=token]", func(e *colly.HTMLElement) {
			p.say("login: %v", e.Request.Post("/login", map[string]string{"user": "me", "token": e.Attr("value")}))
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/login"))
	}},
	{name: "sends the cookies of a browser", sites: members, run: func(p *programRun) {
		c := p.hear(p.collector())
		kit.Must(p.T, c.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: "in", Path: "/"}}))
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/private/1"))
	}},
	{name: "sends a cookie header and changes the query", sites: members, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnRequest(func(r *colly.Request) {
			r.Headers.Set("Cookie", "session=in")
			r.URL.RawQuery = url.Values{"su": {"me"}, "layout": {"default"}}.Encode()
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/private/1"))
	}},
	{name: "keeps no cookies", sites: members, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.DisableCookies()
		p.attach(c)
		p.say("%v", c.Post("http://a.test/login", map[string]string{"user": "me", "token": "t0"}))
	}},
	{name: "keeps URLs in a queue", sites: func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(9, "")} }, unordered: true, run: func(p *programRun) {
		c := p.collector()
		c.OnResponse(func(r *colly.Response) { p.say("%d %s", r.StatusCode, r.Request.URL) })
		c.OnError(func(r *colly.Response, err error) { p.say("%s: %v", r.Request.URL, err) })
		q, err := queue.New(2, &queue.InMemoryQueueStorage{MaxSize: 1000})
		kit.Must(p.T, err)
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))) })
		p.attach(c)
		kit.Must(p.T, q.AddURL("http://a.test/"))
		p.say("%v", q.Run(c))
	}},
	{name: "keeps requests with contexts in a queue", sites: tree, unordered: true, run: func(p *programRun) {
		c := p.collector(colly.AllowURLRevisit())
		q, err := queue.New(3, &queue.InMemoryQueueStorage{MaxSize: 1000})
		kit.Must(p.T, err)
		c.OnResponse(func(r *colly.Response) {
			n, _ := strconv.Atoi(r.Ctx.Get("n"))
			p.say("%s for %d", r.Request.URL, n)
			if n < 4 {
				next, err := r.Request.New("GET", "http://a.test/4?n="+strconv.Itoa(n), nil)
				kit.Must(p.T, err)
				next.Ctx = colly.NewContext()
				next.Ctx.Put("n", strconv.Itoa(n+1))
				kit.Must(p.T, q.AddRequest(next))
			}
		})
		p.attach(c)
		kit.Must(p.T, q.AddURL("http://a.test/1"))
		p.say("%v", q.Run(c))
	}},
	{name: "counts retries in the context", sites: flaky(500), run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnError(func(r *colly.Response, err error) {
			n, _ := r.Ctx.GetAny("retries").(int)
			if n < 3 {
				r.Ctx.Put("retries", n+1)
				p.say("retry %d: %v", n+1, r.Request.Retry())
			}
		})
		p.attach(c)
		for _, page := range []string{"/1", "/3", "/7"} {
			p.say("%v", c.Visit("http://a.test"+page))
		}
	}},
	{name: "retries until it succeeds", sites: flaky(502), run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/9"))
	}},
	{name: "retries in parallel", sites: flaky(500), unordered: true, run: func(p *programRun) {
		c := p.collector(colly.Async())
		c.OnResponse(func(r *colly.Response) { p.say("%s", r.Request.URL) })
		c.OnError(func(r *colly.Response, err error) {
			p.say("%s: %v", r.Request.URL, err)
			r.Request.Retry()
		})
		p.attach(c)
		for n := range 9 {
			kit.Must(p.T, c.Visit(fmt.Sprint("http://a.test/", n)))
		}
		c.Wait()
	}},
	{name: "waits before a retry after 429", sites: flaky(429), run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnError(func(r *colly.Response, err error) {
			if r.StatusCode == http.StatusTooManyRequests {
				time.Sleep(10 * time.Second)
				r.Request.Retry()
			}
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/2"))
	}},
	{name: "retries a page whose content is not there yet", sites: flaky(200), run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnResponse(func(r *colly.Response) {
			if len(r.Body) == 0 {
				p.say("again: %v", r.Request.Retry())
			}
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/2"))
	}},
	{name: "reads lists and details with two collectors", sites: tree, run: func(p *programRun) {
		list := p.hear(p.collector(colly.AllowedDomains("a.test")))
		detail := p.hear(list.Clone())
		list.OnHTML("a[href]", func(e *colly.HTMLElement) {
			ctx := colly.NewContext()
			ctx.Put("from", e.Request.URL.String())
			p.say("%v", detail.Request("GET", e.Request.AbsoluteURL(e.Attr("href")), nil, ctx, nil))
		})
		detail.OnResponse(func(r *colly.Response) { p.say("from %s", r.Ctx.Get("from")) })
		p.attach(list, detail)
		p.say("%v", list.Visit("http://a.test/"))
	}},
	{name: "sends JSON to an API page by page", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/api": func(w http.ResponseWriter, r *http.Request) {
			var asked struct{ Page int }
			json.NewDecoder(r.Body).Decode(&asked)
			fmt.Fprintf(w, `{"page":%d,"more":%v,"type":%q}`, asked.Page, asked.Page < 3, r.Header.Get("Content-Type"))
		}}}
	}, run: func(p *programRun) {
		c := p.hear(p.collector(colly.AllowURLRevisit()))
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("Content-Type", "application/json") })
		page := 0
		send := func() error {
			page++
			return c.PostRaw("http://a.test/api", fmt.Appendf(nil, `{"page":%d}`, page))
		}
		c.OnResponse(func(r *colly.Response) {
			p.say("%s", r.Body)
			if bytes.Contains(r.Body, []byte(`"more":true`)) {
				p.say("%v", send())
			}
		})
		p.attach(c)
		p.say("%v", send())
	}},
	{name: "sends a file", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/upload": func(w http.ResponseWriter, r *http.Request) {
			_, header, err := r.FormFile("file")
			if err != nil {
				fmt.Fprint(w, r.FormValue("file"))
				return
			}
			fmt.Fprint(w, header.Size)
		}}}
	}, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnResponse(func(r *colly.Response) { p.say("%s", r.Body) })
		p.attach(c)
		p.say("%v", c.PostMultipart("http://a.test/upload", map[string][]byte{"file": bytes.Repeat([]byte("x"), 5000)}))
	}},
	{name: "checks links with HEAD", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { p.say("%v", e.Request.Visit(e.Attr("href"))) })
		p.attach(c)
		for _, page := range []string{"/", "/missing", "/moved", "/1"} {
			p.say("%v", c.Head("http://a.test"+page))
		}
	}},
	{name: "sends HEAD before each GET", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector(colly.CheckHead()))
		follow(c)
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "counts statuses of links of many sites", sites: tree, unordered: true, run: func(p *programRun) {
		c := p.collector(colly.Async(), colly.ParseHTTPErrorResponse())
		var mu sync.Mutex
		statuses := make(map[int]int)
		c.OnResponse(func(r *colly.Response) {
			mu.Lock()
			defer mu.Unlock()
			statuses[r.StatusCode]++
		})
		c.OnError(func(r *colly.Response, err error) { p.say("%s has no answer: %v", r.Request.URL, r.StatusCode) })
		p.attach(c)
		for _, u := range []string{"http://a.test/", "http://a.test/missing", "http://b.test/", "http://b.test/missing", "http://nowhere.test/", "http://a.test/moved"} {
			kit.Must(p.T, c.Visit(u))
		}
		c.Wait()
		p.say("%v", statuses)
	}},
	{name: "reads the body of error pages", sites: flaky(503), run: func(p *programRun) {
		c := p.hear(p.collector(colly.ParseHTTPErrorResponse(), colly.AllowURLRevisit()))
		p.attach(c)
		for range 3 {
			p.say("%v", c.Visit("http://a.test/1"))
		}
	}},
	{name: "reads a page again from its cache", sites: tree, run: func(p *programRun) {
		dir := p.TempDir()
		for range 2 {
			c := p.hear(p.collector(colly.CacheDir(dir)))
			follow(c)
			p.attach(c)
			p.say("%v", c.Visit("http://a.test/"))
		}
	}},
	{name: "sends the referer of a browser", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		extensions.Referer(c)
		extensions.URLLengthFilter(c, 40)
		follow(c)
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
		p.say("%v", c.Visit("http://a.test/"+strings.Repeat("x", 40)))
	}},
	{name: "has a short timeout", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.SetRequestTimeout(5 * time.Second)
		p.attach(c)
		began := time.Now()
		p.say("%s", kit.SameText(c.Visit("http://b.test/late")))
		p.say("%v", time.Since(began))
		p.say("%v", c.Visit("http://b.test/"))
	}},
	{name: "stops after some pages by its context", sites: func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(20, "")} }, run: func(p *programRun) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c := p.hear(p.collector(colly.StdlibContext(ctx)))
		pages := 0
		c.OnScraped(func(*colly.Response) {
			pages++
			if pages == 5 {
				cancel()
			}
		})
		p.attach(c)
		for i := range 20 {
			err := c.Visit(fmt.Sprint("http://a.test/", i))
			p.say("%v, canceled %v", kit.SameText(err), errors.Is(err, context.Canceled))
		}
	}},
	{name: "has a deadline for a list of URLs", sites: tree, run: func(p *programRun) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		c := p.hear(p.collector(colly.StdlibContext(ctx), colly.AllowURLRevisit()))
		c.SetRequestTimeout(0)
		p.attach(c)
		for range 3 {
			err := c.Visit("http://b.test/late")
			p.say("deadline %v", errors.Is(err, context.DeadlineExceeded))
		}
	}},
	{name: "has a collector and a context for each call", sites: tree, run: func(p *programRun) {
		for _, page := range []string{"/1", "/missing", "/moved"} {
			ctx, cancel := context.WithCancel(context.WithValue(context.Background(), (*programRun)(nil), page))
			c := p.hear(p.collector(colly.StdlibContext(ctx), colly.MaxDepth(1), colly.DetectCharset()))
			p.attach(c)
			p.say("%v", c.Visit("http://a.test"+page))
			cancel()
		}
	}},
	{name: "stops at redirects", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.SetRedirectHandler(func(req *http.Request, via []*http.Request) error {
			p.say("redirect to %s after %d", req.URL, len(via))
			return http.ErrUseLastResponse
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/moved"))
	}},
	{name: "may not be redirected to other hosts", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/": robotstest.Redirect("http://b.test/")}, "b.test": {"/": "b"}}
	}, run: func(p *programRun) {
		c := p.hear(p.collector(colly.AllowedDomains("a.test")))
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
		p.say("%v", c.Visit("http://b.test/"))
	}},
	{name: "sends a password", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/robots.txt": 401, "/": func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			io.WriteString(w, robotstest.Page())
		}}}
	}, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("Authorization", "Basic bWU6c2VjcmV0") })
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "filters URLs", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector(colly.URLFilters(regexp.MustCompile(`/[0-9]?$`)), colly.DisallowedURLFilters(regexp.MustCompile(`b\.test`))))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { p.say("%v", e.Request.Visit(e.Attr("href"))) })
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "watches one page", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector(colly.AllowURLRevisit()))
		p.attach(c)
		for range 4 {
			p.say("%v at %v", c.Visit("http://a.test/4"), time.Now().UTC())
			time.Sleep(time.Hour)
		}
	}},
	{name: "signs requests in its transport", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		inner := p.web.Transport()
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/robots.txt" {
				p.say("transport %s", r.URL)
			}
			r = r.Clone(r.Context())
			r.Header.Set("Cookie", "signed="+r.URL.Path)
			return inner.RoundTrip(r)
		}))
		follow(c)
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "cuts long bodies in its transport", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		inner := p.web.Transport()
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := inner.RoundTrip(r)
			if err == nil && r.URL.Path != "/robots.txt" {
				resp.Body = struct {
					io.Reader
					io.Closer
				}{io.LimitReader(resp.Body, 10), resp.Body}
			}
			return resp, err
		}))
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "counts its connections", sites: func() robotstest.Sites {
		sites := tree()
		sites["a.test"]["/robots.txt"] = kit.NoDenys
		sites["b.test"]["/robots.txt"] = kit.NoDenys
		return sites
	}, run: func(p *programRun) {
		c := p.hear(p.collector())
		transport := p.web.Transport()
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			p.say("dial %s", address)
			return dial(ctx, network, address)
		}
		c.WithTransport(transport)
		follow(c)
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "has its own client", sites: members, run: func(p *programRun) {
		jar, err := cookiejar.New(nil)
		kit.Must(p.T, err)
		client := &http.Client{Transport: p.web.Transport(), Jar: jar, Timeout: time.Minute}
		c := p.hear(colly.NewCollector(colly.UserAgent("ExampleBot/1.0")))
		c.SetClient(client)
		p.attach(c)
		p.say("%v", c.Post("http://a.test/login", map[string]string{"user": "me", "token": "t0"}))
		site, err := url.Parse("http://a.test/")
		kit.Must(p.T, err)
		p.say("%d cookies in the jar", len(jar.Cookies(site)))
	}},
	{name: "asks Colly which pages it has visited", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		p.attach(c)
		for range 2 {
			for _, u := range []string{"http://a.test/1", "http://a.test/missing", "http://a.test/moved", "http://a.test/5"} {
				visited, err := c.HasVisited(u)
				p.say("%v %v, then %v", visited, err, c.Visit(u))
			}
		}
	}},
	{name: "aborts downloads that are not HTML", sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": {"/": robotstest.Page("/film", "/1"), "/1": robotstest.Page(), "/film": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "video/mp4")
			w.Write(make([]byte, 1<<16))
		}}}
	}, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnResponseHeaders(func(r *colly.Response) {
			if !strings.HasPrefix(r.Headers.Get("Content-Type"), "text/html") {
				r.Request.Abort()
			}
		})
		follow(c)
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "saves files", sites: tree, run: func(p *programRun) {
		dir := p.TempDir()
		c := p.hear(p.collector(colly.MaxBodySize(30)))
		c.OnResponse(func(r *colly.Response) {
			file := filepath.Join(dir, r.FileName())
			kit.Must(p.T, r.Save(file))
			body, err := os.ReadFile(file)
			kit.Must(p.T, err)
			p.say("%s: %q", r.FileName(), body)
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/4"))
	}},
	{name: "reads the pages of a sitemap", sites: func() robotstest.Sites {
		sites := tree()
		sites["a.test"]["/sitemap.xml"] = robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://a.test/missing")
		return sites
	}, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnXML("//urlset/url/loc", func(e *colly.XMLElement) { p.say("%v", c.Visit(e.Text)) })
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/sitemap.xml"))
	}},
	{name: "visits from its own goroutines", sites: func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(12, "")} }, unordered: true, run: func(p *programRun) {
		c := p.hear(p.collector())
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 3, Delay: time.Second}))
		p.attach(c)
		var workers sync.WaitGroup
		for i := range 12 {
			workers.Go(func() { p.say("%v", c.Visit(fmt.Sprint("http://a.test/", i))) })
		}
		workers.Wait()
	}},
	{name: "counts its jobs in callbacks", sites: tree, unordered: true, run: func(p *programRun) {
		c := p.collector(colly.Async())
		var open atomic.Int64
		c.OnRequest(func(*colly.Request) { open.Add(1) })
		c.OnScraped(func(r *colly.Response) {
			open.Add(-1)
			p.say("%s", r.Request.URL)
		})
		c.OnError(func(r *colly.Response, err error) {
			open.Add(-1)
			p.say("%s: %v", r.Request.URL, err)
		})
		follow(c)
		p.attach(c)
		kit.Must(p.T, c.Visit("http://a.test/"))
		c.Wait()
		p.say("%d open", open.Load())
	}},
	{name: "waits for a result of each URL", sites: tree, unordered: true, run: func(p *programRun) {
		c := p.collector(colly.Async())
		results := make(chan string)
		c.OnResponse(func(r *colly.Response) { results <- r.Request.URL.String() })
		c.OnError(func(r *colly.Response, err error) { results <- fmt.Sprint(r.Request.URL, " ", err) })
		p.attach(c)
		urls := []string{"http://a.test/1", "http://a.test/missing", "http://b.test/"}
		for _, u := range urls {
			kit.Must(p.T, c.Visit(u))
		}
		for range urls {
			p.say("%s", <-results)
		}
		c.Wait()
	}},
	{name: "goes from page to page until Visit fails", sites: func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(7, "")} }, run: func(p *programRun) {
		c := p.hear(p.collector(colly.AllowedDomains("a.test")))
		p.attach(c)
		for i := 0; ; i++ {
			err := c.Visit(fmt.Sprint("http://a.test/", i))
			if err != nil {
				p.say("%v", err)
				return
			}
		}
	}},
	{name: "saves requests", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector(colly.AllowURLRevisit()))
		var kept [][]byte
		c.OnResponse(func(r *colly.Response) {
			r.Ctx.Put("seen", "yes")
			b, err := r.Request.Marshal()
			kit.Must(p.T, err)
			kept = append(kept, b)
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/1"))
		other := p.hear(p.collector())
		p.attach(other)
		for _, b := range kept {
			r, err := other.UnmarshalRequest(b)
			kit.Must(p.T, err)
			p.say("%s %v", r.Ctx.Get("seen"), r.Do())
		}
	}},
	{name: "aborts requests after a number of pages", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		pages := 0
		c.OnRequest(func(r *colly.Request) {
			pages++
			if pages > 3 {
				r.Abort()
			}
		})
		follow(c)
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "limits its requests", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector(colly.MaxRequests(4)))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { p.say("%v", e.Request.Visit(e.Attr("href"))) })
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
	{name: "recovers from its own panics", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { panic("no such element") })
		p.attach(c)
		for _, page := range []string{"/", "/1", "/4"} {
			func() {
				defer func() { p.say("panic %v", recover()) }()
				p.say("%v", c.Visit("http://a.test"+page))
			}()
		}
	}},
	{name: "traces its requests", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector(colly.TraceHTTP()))
		c.OnResponse(func(r *colly.Response) { p.say("traced %v", r.Trace != nil) })
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/1"))
	}},
	{name: "uses other methods", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		p.attach(c)
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
			p.say("%v", c.Request(method, "http://a.test/4", strings.NewReader("x"), nil, http.Header{"X-Test": {"1"}}))
		}
	}},
	{name: "visits in OnScraped", sites: tree, run: func(p *programRun) {
		c := p.hear(p.collector())
		c.OnScraped(func(r *colly.Response) {
			if r.Request.Depth < 4 {
				p.say("%v", r.Request.Visit("/"+strconv.Itoa(r.Request.Depth)))
			}
		})
		p.attach(c)
		p.say("%v", c.Visit("http://a.test/"))
	}},
}
