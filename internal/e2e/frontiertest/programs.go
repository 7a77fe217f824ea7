package frontiertest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/extensions"
	"github.com/gocolly/colly/v2/queue"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// follow visits the links of each page.
func follow(c *colly.Collector) {
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
}

// scraped finds each page that was scraped.
func (r *run) scraped(c *colly.Collector) {
	c.OnScraped(func(p *colly.Response) { r.found("%s", p.Request.URL) })
}

// isWorthRetrying reports whether a program retries a request with this error. The programs do not
// retry denied pages and pages of a run that ends, because that would change nothing.
func isWorthRetrying(err error) bool {
	return !errors.Is(err, colly.ErrRobotsTxtBlocked) && !errors.Is(err, context.Canceled) && !errors.Is(err, collyrobots.ErrClosed)
}

var programs = []program{
	{name: "follows links within a depth", sites: site(tree), run: func(r *run) {
		c := r.collector(colly.MaxDepth(3))
		follow(c)
		c.OnScraped(func(p *colly.Response) { r.found("%s at depth %d", p.Request.URL, p.Request.Depth) })
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "retries by the text of the error", sites: site(func() robotstest.Site {
		return with(listed(5), robotstest.Site{"/2": firstly(2, status(502)), "/4": firstly(1, status(502))})
	}), repeats: map[string]int{"GET a.test/2": 3, "GET a.test/4": 2}, run: func(r *run) {
		c := r.collector()
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.OnError(func(p *colly.Response, err error) {
			if strings.Contains(err.Error(), "Bad Gateway") {
				p.Request.Retry()
			}
		})
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "requests a page with a captcha again", sites: site(func() robotstest.Site {
		return with(listed(5), robotstest.Site{"/1": firstly(1, html("captcha")), "/3": firstly(3, html("captcha"))})
	}), repeats: map[string]int{"GET a.test/1": 2, "GET a.test/3": 4}, run: func(r *run) {
		c := r.collector()
		follow(c)
		r.Attach(c)
		c.OnResponse(func(p *colly.Response) {
			if bytes.Contains(p.Body, []byte("captcha")) {
				p.Request.Retry()
				return
			}
			r.found("%s", p.Request.URL)
		})
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "has a collector for each kind of page", sites: site(shop), run: func(r *run) {
		category := r.collector()
		product := category.Clone()
		review := category.Clone()
		visit := func(next *colly.Collector, prefix string) func(e *colly.HTMLElement) {
			return func(e *colly.HTMLElement) {
				if !strings.HasPrefix(e.Attr("href"), prefix) {
					return
				}
				ctx := colly.NewContext()
				ctx.Put("from", e.Request.URL.Path)
				next.Request(http.MethodGet, e.Request.AbsoluteURL(e.Attr("href")), nil, ctx, nil)
			}
		}
		follow := visit(category, "/c/")
		category.OnHTML("a[href]", follow)
		category.OnHTML("a[href]", visit(product, "/p/"))
		product.OnHTML("a[href]", visit(review, "/r/"))
		for _, c := range []*colly.Collector{category, product, review} {
			extensions.Referer(c)
			c.OnScraped(func(p *colly.Response) { r.found("%s from %q", p.Request.URL, p.Ctx.Get("from")) })
		}
		r.Attach(category, product, review)
		category.Visit("http://a.test/")
		for range 3 {
			category.Wait()
			product.Wait()
			review.Wait()
		}
	}},
	{name: "remembers by itself what was visited", sites: site(tree), run: func(r *run) {
		c := r.collector(colly.AllowURLRevisit())
		var visited sync.Map
		c.OnHTML("a[href]", func(e *colly.HTMLElement) {
			u := e.Request.AbsoluteURL(e.Attr("href"))
			if _, known := visited.LoadOrStore(u, true); !known {
				e.Request.Visit(u)
			}
		})
		r.scraped(c)
		r.Attach(c)
		visited.Store("http://a.test/", true)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "has a storage that survives", sites: site(tree), run: func(r *run) {
		c := r.collector()
		kept, ok := r.memory["storage"].(storage.Storage)
		if !ok {
			kept = new(storage.InMemoryStorage)
			r.must(kept.Init())
			r.memory["storage"] = kept
		}
		r.must(c.SetStorage(surviving{kept}))
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "has a queue and is asynchronous", sites: site(tree), run: func(r *run) {
		c := r.collector()
		q, err := queue.New(2, &queue.InMemoryQueueStorage{MaxSize: 100})
		r.must(err)
		r.must(q.AddURL("http://a.test/"))
		r.must(q.AddURL("http://a.test/closed"))
		follow(c)
		r.scraped(c)
		r.Attach(c)
		r.must(q.Run(c))
		c.Wait()
	}},
	{name: "keeps requests as bytes for another collector", sites: site(func() robotstest.Site { return listed(5) }), run: func(r *run) {
		list := r.collector()
		worker := r.collector()
		list.OnHTML("a[href]", func(e *colly.HTMLElement) {
			next, err := e.Request.New(http.MethodGet, e.Request.AbsoluteURL(e.Attr("href")), nil)
			r.must(err)
			next.Ctx = colly.NewContext()
			next.Ctx.Put("by", "bytes")
			next.Headers.Set("X-Key", "1")
			encoded, err := next.Marshal()
			r.must(err)
			same, err := worker.UnmarshalRequest(encoded)
			r.must(err)
			same.Do()
		})
		worker.OnScraped(func(p *colly.Response) {
			r.found("%s by %s with %s", p.Request.URL, p.Ctx.Get("by"), p.Request.Headers.Get("X-Key"))
		})
		r.Attach(list, worker)
		list.Visit("http://a.test/")
		list.Wait()
		worker.Wait()
	}},
	{name: "sleeps in OnError with a lock, and retries pages without a status", underWay: 1, sites: site(func() robotstest.Site {
		return with(listed(5), robotstest.Site{"/2": firstly(1, drop), "/3": firstly(2, drop)})
	}), repeats: map[string]int{"GET a.test/2": 2, "GET a.test/3": 3}, run: func(r *run) {
		c := r.collector()
		c.WithTransport(once{r.Web.Transport()})
		follow(c)
		r.scraped(c)
		r.Attach(c)
		lock := make(chan struct{}, 1) // a Mutex would stop the time of the bubble
		c.OnError(func(p *colly.Response, err error) {
			lock <- struct{}{}
			defer func() { <-lock }()
			if p.StatusCode == 0 && isWorthRetrying(err) {
				time.Sleep(4 * time.Second)
				p.Request.Retry()
			}
		})
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "does not wait for a collector", sites: site(func() robotstest.Site {
		return with(listed(5), robotstest.Site{"/image": typed("image/png", "png")})
	}), run: func(r *run) {
		c := r.collector()
		images := r.collector()
		follow(c)
		r.scraped(c)
		r.scraped(images)
		r.Attach(c, images)
		c.Visit("http://a.test/")
		images.Visit("http://a.test/image")
		c.Wait()
	}},
	{name: "replaces the headers of each request", sites: site(tree), run: func(r *run) {
		c := r.collector()
		c.OnRequest(func(q *colly.Request) {
			q.Headers = &http.Header{"User-Agent": {"ExampleBot/1.0"}, "Accept-Language": {"en"}}
		})
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "changes the headers of each request in place", sites: site(func() robotstest.Site {
		pages := tree()
		for path, answer := range pages {
			pages[path] = func(w http.ResponseWriter, q *http.Request) {
				if q.Header.Get("X-Token") != "t" {
					status(http.StatusBadRequest)(w, q)
					return
				}
				typed("text/html", answer.(string))(w, q)
			}
		}
		return pages
	}), run: func(r *run) {
		c := r.collector()
		c.OnRequest(func(q *colly.Request) {
			*q.Headers = http.Header{"User-Agent": {"ExampleBot/1.0"}, "X-Token": {"t"}}
		})
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "reads only HTML", sites: site(func() robotstest.Site {
		return with(listed(5), robotstest.Site{"/2": typed("image/png", "png"), "/4": typed("application/zip", "zip")})
	}), run: func(r *run) {
		c := r.collector()
		c.OnResponseHeaders(func(p *colly.Response) {
			if !strings.Contains(p.Headers.Get("Content-Type"), "html") {
				p.Request.Abort()
			}
		})
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "follows redirects", underWay: 1, sites: site(func() robotstest.Site {
		return with(listed(6), robotstest.Site{"/2": robotstest.Redirect("/moved"), "/moved": robotstest.Page("/deep"), "/deep": robotstest.Page(), "/4": robotstest.Redirect("/closed")})
	}), run: func(r *run) {
		c := r.collector()
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "has a LimitRule with a random delay", sites: site(tree), underWay: 2, run: func(r *run) {
		c := r.collector()
		r.must(c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2, Delay: time.Second, RandomDelay: 500 * time.Millisecond}))
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "visits links in goroutines of its own", sites: site(tree), run: func(r *run) {
		c := r.collector()
		c.OnHTML("body", func(e *colly.HTMLElement) {
			var links sync.WaitGroup
			for _, link := range e.ChildAttrs("a", "href") {
				links.Go(func() { e.Request.Visit(link) })
			}
			links.Wait()
		})
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "reads the links of error pages", sites: site(func() robotstest.Site {
		return with(listed(4), robotstest.Site{"/2": func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(robotstest.Page("/instead")))
		}, "/instead": robotstest.Page()})
	}), run: func(r *run) {
		c := r.collector(colly.ParseHTTPErrorResponse())
		follow(c)
		c.OnScraped(func(p *colly.Response) { r.found("%s %d", p.Request.URL, p.StatusCode) })
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "sends HEAD before the first page", sites: site(tree), perRun: []string{"HEAD a.test/"}, run: func(r *run) {
		c := r.collector(colly.CheckHead())
		follow(c)
		c.OnScraped(func(p *colly.Response) {
			if p.Request.Method == http.MethodGet {
				r.found("%s", p.Request.URL)
			}
		})
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
	{name: "rewrites URLs in OnRequest", sites: site(func() robotstest.Site {
		pages := make(robotstest.Site)
		for path, answer := range listed(4) {
			pages[path+"?lang=en"] = answer
		}
		return pages
	}), run: func(r *run) {
		c := r.collector()
		c.OnRequest(func(q *colly.Request) {
			query := url.Values{"lang": {"en"}}
			q.URL.RawQuery = query.Encode()
		})
		follow(c)
		r.scraped(c)
		r.Attach(c)
		c.Visit("http://a.test/")
		c.Wait()
	}},
}

// surviving is a storage of visited URLs that an earlier run has initialized. Cookies do not
// survive.
type surviving struct{ storage.Storage }

func (surviving) Init() error { return nil }

// once sends each request on a connection of its own, so that net/http does not send a request again
// whose connection was closed.
type once struct{ inner *http.Transport }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Close = true
	return o.inner.RoundTrip(r)
}
