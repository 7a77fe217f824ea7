package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The programs in failingPrograms are in the style of public Colly programs. Their sites, network or
// context fail, or they are stopped.

// TestFailingPrograms runs each failing program and checks what checkEnds requires.
func TestFailingPrograms(t *testing.T) {
	for _, x := range failingPrograms {
		t.Run(x.name, func(t *testing.T) { x.checkEnds(t) })
	}
}

// wantPages checks that each of the n pages was scraped once.
func wantPages(p *kit.Run, format string, n int) {
	p.Helper()
	for i := range n {
		if u := fmt.Sprintf(format, i); p.Scraped()[u] != 1 {
			p.Errorf("%s was scraped %d times, want once: %v", u, p.Scraped()[u], p.Errs()[u])
		}
	}
}

func slowPages(n int, robots string) func() robotstest.Sites {
	return func() robotstest.Sites { return robotstest.Sites{"a.test": robotstest.Pages(n, robots)} }
}

// failsFirst returns a handler that fails n times, and then answers as then does.
func failsFirst(n int, fail, then http.HandlerFunc) http.HandlerFunc {
	var tries atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) <= int64(n) {
			fail(w, r)
			return
		}
		then(w, r)
	}
}

func answers(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// late returns a site whose robots.txt fails n times.
func late(n int, fail http.HandlerFunc) func() robotstest.Sites {
	return func() robotstest.Sites {
		a := robotstest.Pages(9, "")
		a["/robots.txt"] = failsFirst(n, fail, answers("User-agent: *\nDisallow: /5\nCrawl-delay: 2\n"))
		return robotstest.Sites{"a.test": a}
	}
}

// retryAll retries each page that fails, at most n times with a pause, until it succeeds or is
// denied by a rule.
func retryAll(c *colly.Collector, n int, pause time.Duration) {
	c.OnError(func(r *colly.Response, err error) {
		denied := (*collyrobots.DeniedError)(nil)
		if errors.As(err, &denied) && denied.Decision.Reason == report.ReasonRule {
			return
		}
		tries, _ := r.Ctx.GetAny("tries").(int)
		if tries < n {
			r.Ctx.Put("tries", tries+1)
			time.Sleep(pause)
			r.Request.Retry()
		}
	})
}

// lateProgram visits the pages of a site whose robots.txt fails at first.
func lateProgram(options ...colly.CollectorOption) func(p *kit.Run) {
	return func(p *kit.Run) {
		c := p.New(options...)
		c.SetRequestTimeout(5 * time.Second)
		retryAll(c, 200, 30*time.Second)
		for i := range 5 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Visit("http://a.test/5")
		c.Wait()
		wantPages(p, "http://a.test/%d", 5)
		if err := p.Errs()["http://a.test/5"]; !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			p.Errorf("/5: got %v, want a denial", err)
		}
	}
}

// spinEarly is like spin, but the callback is registered before the plugin.
func spinEarly(urls []string, options ...colly.CollectorOption) func(p *kit.Run) {
	return func(p *kit.Run) {
		c := p.Collector(options...)
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		p.Attach(p.Count(c))
		for _, u := range urls {
			c.Visit(u)
		}
		c.Wait()
	}
}

// spin visits pages and always retries those that fail.
func spin(urls []string, options ...colly.CollectorOption) func(p *kit.Run) {
	return func(p *kit.Run) {
		c := p.New(options...)
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		for _, u := range urls {
			c.Visit(u)
		}
		c.Wait()
	}
}

var failingPrograms = []program{
	{name: "robots.txt answers 500 at first, sync", sites: late(3, status(500)), within: 4 * time.Hour, run: lateProgram()},
	{name: "robots.txt answers 500 at first, async", sites: late(3, status(500)), within: 4 * time.Hour, run: lateProgram(kit.Async...)},
	{name: "robots.txt hangs at first, async", sites: late(3, kit.Hang), within: time.Hour, run: lateProgram(kit.Async...)},
	{name: "robots.txt resets at first, async", sites: late(7, kit.Drop), within: time.Hour, run: lateProgram(kit.Async...)},
	{name: "retries denied pages without a bound, sync", aborts: 2, within: time.Minute,
		sites: slowPages(9, "User-agent: *\nDisallow: /\n"), run: spin([]string{"http://a.test/1", "http://a.test/2"})},
	{name: "retries denied pages without a bound, async", aborts: 2, within: time.Minute,
		sites: slowPages(9, "User-agent: *\nDisallow: /\n"), run: spin([]string{"http://a.test/1", "http://a.test/2"}, kit.Async...)},
	{name: "retries denied pages in an old callback without a bound, sync", aborts: 2, within: time.Minute,
		sites: slowPages(9, "User-agent: *\nDisallow: /\n"), run: spinEarly([]string{"http://a.test/1", "http://a.test/2"})},
	{name: "retries denied pages in an old callback without a bound, async", aborts: 2, within: time.Minute,
		sites: slowPages(9, "User-agent: *\nDisallow: /\n"), run: spinEarly([]string{"http://a.test/1", "http://a.test/2"}, kit.Async...)},
	{name: "retries redirects that must not be followed without a bound", within: time.Minute, sites: func() robotstest.Sites {
		busy := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return robotstest.Sites{
			"a.test": {
				"/robots.txt": "User-agent: *\nDisallow: /closed\n",
				"/rule":       robotstest.Redirect("/closed"),
				"/rule?":      robotstest.Redirect("/closed"),
				"/busy":       robotstest.Redirect("http://b.test/2"),
				"/private":    robotstest.Redirect("http://10.0.0.1/"),
			},
			"b.test": {"/robots.txt": 404, "*": busy},
		}
	}, run: func(p *kit.Run) {
		for mode, options := range kit.Modes {
			c := p.New(options...)
			if mode == "async" {
				c.Visit("http://b.test/1")
				c.Wait()
			}
			began := time.Now()
			var tries atomic.Int64
			c.OnError(func(r *colly.Response, err error) {
				tries.Add(1)
				if time.Since(began) < 20*time.Second {
					r.Request.Retry()
				}
			})
			if mode == "sync" {
				c.Visit("http://a.test/rule")
			} else {
				for _, page := range []string{"rule?", "busy", "private"} {
					c.Visit("http://a.test/" + page)
				}
			}
			c.Wait()
			if n := tries.Load(); n > 3*(10+21) {
				p.Errorf("%s: %d tries in 20 seconds, want at most 93", mode, n)
			}
		}
	}},
	{name: "retries canceled pages without a bound", within: time.Minute, aborts: 7, sites: slowPages(9, "User-agent: *\nCrawl-delay: 10\n"), run: func(p *kit.Run) {
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
		defer cancel()
		c := p.New(colly.Async(), colly.StdlibContext(ctx))
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		for i := range 9 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
	}},
	{name: "retries pages of a closed plugin without a bound", within: time.Minute, sites: slowPages(9, "User-agent: *\nCrawl-delay: 10\n"), aborts: 7, run: func(p *kit.Run) {
		c := p.New(kit.Async...)
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		closed := make(chan struct{})
		time.AfterFunc(25*time.Second, func() {
			p.Plugin.Close()
			close(closed)
		})
		for i := range 9 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		<-closed
	}},
	{name: "proxies fail during the crawl", within: time.Hour, sites: func() robotstest.Sites {
		sites := robotstest.Sites{"a.test": robotstest.Pages(30, "User-agent: *\nCrawl-delay: 1\nDisallow: /7\n")}
		for i := range 3 {
			sites[fmt.Sprintf("proxy%d.test:3128", i)] = nil
		}
		return sites
	}, run: func(p *kit.Run) {
		c := p.Count(p.Collector(kit.Async...))
		transport := p.Web.Transport()
		dial := transport.DialContext
		began := time.Now()
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if time.Since(began) > 10*time.Second && address != "proxy2.test:3128" {
				return nil, errors.New("connection refused")
			}
			return dial(ctx, network, address)
		}
		transport.DisableKeepAlives = true
		c.WithTransport(transport)
		rotate, err := proxy.RoundRobinProxySwitcher("http://proxy0.test:3128", "http://proxy1.test:3128", "http://proxy2.test:3128")
		kit.Must(p.T, err)
		c.SetProxyFunc(rotate)
		p.Attach(c)
		retryAll(c, 10, 0)
		for i := range 30 {
			if i != 7 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
		}
		c.Visit("http://a.test/7")
		c.Wait()
		for i := range 30 {
			if i != 7 && p.Scraped()[fmt.Sprint("http://a.test/", i)] != 1 {
				p.Errorf("/%d: got %v", i, p.Errs()[fmt.Sprint("http://a.test/", i)])
			}
		}
	}},
	{name: "a host is reachable later", within: time.Hour, sites: slowPages(9, "User-agent: *\nCrawl-delay: 1\n"), run: func(p *kit.Run) {
		c := p.New(kit.Async...)
		retryAll(c, 50, 3*time.Second)
		time.AfterFunc(40*time.Second, func() {
			for uri, answer := range robotstest.Pages(9, "User-agent: *\nCrawl-delay: 3\n") {
				p.Web.Set("late.test", uri, answer)
			}
		})
		for i := range 9 {
			c.Visit(fmt.Sprint("http://late.test/", i))
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		wantPages(p, "http://a.test/%d", 9)
		wantPages(p, "http://late.test/%d", 9)
	}},
	{name: "the server resets every second page", within: time.Hour, sites: func() robotstest.Sites {
		a := robotstest.Pages(9, "User-agent: *\nCrawl-delay: 2\n")
		for i := range 9 {
			a[fmt.Sprint("/", i)] = failsFirst(2, kit.Drop, answers("a page"))
		}
		return robotstest.Sites{"a.test": a}
	}, run: func(p *kit.Run) {
		c := p.New(kit.Async...)
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2}))
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		for i := range 9 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		wantPages(p, "http://a.test/%d", 9)
	}},
	{name: "a queue of throttled pages", within: 4 * time.Hour, options: func(*kit.Run) []collyrobots.Option { return []collyrobots.Option{collyrobots.RetryThrottled(3)} }, sites: func() robotstest.Sites {
		a := robotstest.Pages(9, "User-agent: *\nCrawl-delay: 2\nDisallow: /8\n")
		for i := range 9 {
			a[fmt.Sprint("/", i)] = failsFirst(i%3, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(http.StatusTooManyRequests)
			}, answers("a page"))
		}
		return robotstest.Sites{"a.test": a}
	}, run: func(p *kit.Run) {
		c := p.New()
		q, err := queue.New(3, &queue.InMemoryQueueStorage{MaxSize: 100})
		kit.Must(p.T, err)
		for i := range 9 {
			kit.Must(p.T, q.AddURL(fmt.Sprint("http://a.test/", i)))
		}
		kit.Must(p.T, q.Run(c))
		wantPages(p, "http://a.test/%d", 8)
	}},
	{name: "a service with a collector for each job", within: 10 * time.Minute, sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\nDisallow: /3\n"), "b.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 3\n"), "c.test": {"/robots.txt": kit.Hang}}
	}, run: func(p *kit.Run) {
		var jobs sync.WaitGroup
		for i := range 12 {
			jobs.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(5+5*i)*time.Second)
				defer cancel()
				c := p.New(colly.StdlibContext(ctx), colly.Async(i%2 == 0))
				for _, host := range []string{"a", "b", "c"} {
					for page := range 4 {
						c.Visit(fmt.Sprintf("http://%s.test/%d", host, page))
					}
				}
				c.Wait()
			})
		}
		jobs.Wait()
	}},
	{name: "a service that is closed during the crawl", within: 31 * time.Second, sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\nDisallow: /3\n"), "b.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 3\n"), "c.test": {"/robots.txt": kit.Hang}}
	}, run: func(p *kit.Run) {
		var jobs sync.WaitGroup
		for i := range 12 {
			jobs.Go(func() {
				c := p.New(colly.Async(i%2 == 0))
				for page := range 9 {
					for _, host := range []string{"a", "b", "c"} {
						err := c.Visit(fmt.Sprintf("http://%s.test/%d", host, page))
						if i%2 == 1 && time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) > 31*time.Second && !errors.Is(err, collyrobots.ErrClosed) {
							p.Errorf("Visit after Close returned %v, want ErrClosed", err)
						}
					}
				}
				c.Wait()
			})
		}
		time.Sleep(30 * time.Second)
		kit.Must(p.T, p.Plugin.Close())
		jobs.Wait()
	}},
	{name: "many goroutines visit with one synchronous collector", within: 2 * time.Minute, sites: slowPages(40, "User-agent: *\nCrawl-delay: 1\nDisallow: /1\n"), run: func(p *kit.Run) {
		c := p.New()
		var workers sync.WaitGroup
		for i := range 40 {
			workers.Go(func() {
				err := c.Visit(fmt.Sprint("http://a.test/", i))
				if denied := errors.Is(err, colly.ErrRobotsTxtBlocked); denied != (i == 1 || i >= 10 && i < 20) || !denied && err != nil {
					p.Errorf("/%d: got %v", i, err)
				}
			})
		}
		synctest.Wait() // all calls of Visit are waiting
		for range 4 {
			workers.Go(c.Wait)
		}
		workers.Wait()
	}},
	{name: "changes its proxy, transport and client between visits", within: 2 * time.Minute, sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": robotstest.Pages(30, "User-agent: *\nCrawl-delay: 1\nDisallow: /29\n"), "proxy.test:3128": nil}
	}, run: func(p *kit.Run) {
		c := p.New(colly.AllowURLRevisit())
		for i := range 30 {
			switch i % 4 {
			case 0:
				kit.Must(p.T, c.SetProxy("http://proxy.test:3128"))
			case 1:
				c.WithTransport(p.Web.Transport())
			case 2:
				c.SetClient(&http.Client{Transport: p.Web.Transport()})
			case 3:
				c.SetRequestTimeout(time.Duration(i) * time.Second)
			}
			err := c.Visit(fmt.Sprint("http://a.test/", i))
			if (i == 29) != errors.Is(err, colly.ErrRobotsTxtBlocked) || i != 29 && err != nil {
				p.Errorf("/%d: got %v", i, err)
			}
		}
	}},
	{name: "a transport that fails in each way", within: 2 * time.Minute, aborts: 3, sites: slowPages(30, "User-agent: *\nCrawl-delay: 1\nDisallow: /29\n"), run: func(p *kit.Run) {
		c := p.Count(p.Collector())
		inner := p.Web.Transport()
		n := 0
		c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/robots.txt" {
				n++
			}
			switch n % 4 {
			case 1:
				panic("broken")
			case 2:
				return nil, nil
			}
			return inner.RoundTrip(r)
		}))
		p.Attach(c)
		for i := range 12 {
			func() {
				defer func() { recover() }()
				c.Visit(fmt.Sprint("http://a.test/", i))
			}()
		}
		c.Wait()
	}},
	{name: "posts a denied form without a bound", within: time.Minute, aborts: 1, sites: slowPages(2, "User-agent: *\nDisallow: /1\n"), run: func(p *kit.Run) {
		c := p.New()
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		if err := c.Post("http://a.test/1", map[string]string{"q": "x"}); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			p.Errorf("Post returned %v, want a denial", err)
		}
	}},
	{name: "robots.txt changes while pages wait", within: 5 * time.Minute, sites: func() robotstest.Sites {
		a := robotstest.Pages(30, "")
		a["/robots.txt"] = failsFirst(2, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=10")
			io.WriteString(w, "User-agent: *\nCrawl-delay: 2\n")
		}, answers("User-agent: *\nCrawl-delay: 5\nDisallow: /2\n"))
		return robotstest.Sites{"a.test": a}
	}, run: func(p *kit.Run) {
		c := p.New(kit.Async...)
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 3, Delay: time.Second}))
		for i := range 30 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		for u, err := range p.Errs() {
			if !errors.Is(err, colly.ErrRobotsTxtBlocked) {
				p.Errorf("%s: got %v, want a denial", u, err)
			}
		}
	}},
	{name: "a slow host and a fast one share a LimitRule", within: 10 * time.Minute, sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": robotstest.Pages(20, "User-agent: *\nCrawl-delay: 20\nDisallow: /1\n"), "b.test": robotstest.Pages(20, "User-agent: *\nCrawl-delay: 1\n")}
	}, run: func(p *kit.Run) {
		c := p.New(kit.Async...)
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2}))
		for _, host := range []string{"a", "b"} {
			for i := range 20 {
				c.Visit(fmt.Sprintf("http://%s.test/%d", host, i))
			}
		}
		c.Wait()
		wantPages(p, "http://b.test/%d", 20)
		if log := p.Web.Log("b.test"); log[len(log)-1].Elapsed > 30*time.Second {
			p.Errorf("the fast host waited for the slow one:\n%s", log)
		}
	}},
	{name: "closes the plugin in OnError", within: time.Minute, sites: slowPages(9, "User-agent: *\nCrawl-delay: 3\nDisallow: /4\n"), run: func(p *kit.Run) {
		c := p.New(kit.Async...)
		c.OnError(func(*colly.Response, error) { kit.Must(p.T, p.Plugin.Close()) })
		for i := range 4 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		time.Sleep(7 * time.Second)
		for i := range 5 {
			c.Visit(fmt.Sprint("http://a.test/", 4+i))
		}
		c.Wait()
	}},
	{name: "has a context for each page", within: 5 * time.Minute, sites: slowPages(12, "User-agent: *\nCrawl-delay: 4\n"), run: func(p *kit.Run) {
		c := p.New(colly.AllowURLRevisit())
		for i := range 12 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i)*time.Second)
			c.Context = ctx
			err := c.Visit(fmt.Sprint("http://a.test/", i))
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				p.Errorf("/%d: got %v", i, err)
			}
			cancel()
		}
		if n := len(p.Scraped()); n < 8 {
			p.Errorf("got %d pages, want at least 8: %v", n, p.Errs())
		}
	}},
	{name: "a proxy hangs during the crawl", within: time.Hour, sites: func() robotstest.Sites {
		return robotstest.Sites{"a.test": robotstest.Pages(12, "User-agent: *\nCrawl-delay: 1\n"), "proxy0.test:3128": nil, "proxy1.test:3128": nil}
	}, run: func(p *kit.Run) {
		c := p.Count(p.Collector(kit.Async...))
		c.SetRequestTimeout(5 * time.Second)
		transport := p.Web.Transport()
		transport.DisableKeepAlives = true
		dial := transport.DialContext
		began := time.Now()
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if time.Since(began) > 4*time.Second && address == "proxy0.test:3128" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, address)
		}
		c.WithTransport(transport)
		rotate, err := proxy.RoundRobinProxySwitcher("http://proxy0.test:3128", "http://proxy1.test:3128")
		kit.Must(p.T, err)
		c.SetProxyFunc(rotate)
		p.Attach(c)
		retryAll(c, 20, 0)
		for i := range 12 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Wait()
		wantPages(p, "http://a.test/%d", 12)
	}},
}
