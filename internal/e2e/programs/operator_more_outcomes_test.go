package programs

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// morePrograms are further programs of TestOperatorPrograms.
var morePrograms = []program{
	{name: "image downloader", records: true, outcomes: "done: / x2 /1.png /2.png; rule: /closed.png x2; unchanged: /1.png /2.png",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": "<!DOCTYPE html><img src=/1.png><a rel=nofollow href=/x><img src=/2.png></a><img src=/closed.png>", "*": fresh("png")}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.EnforceRobotsTags(), collyrobots.MaxPages(3)}
		}, run: func(p *kit.Run) {
			for range 2 {
				c := p.New()
				c.OnHTML("img", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("src")) })
				visit(c, "/")
				p.Plug()
			}
		}},
	{name: "saved requests", outcomes: "done: / /1 /2; nofollow: /1 /2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": "x"}}
		},
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.EnforceRobotsTags(), collyrobots.StopRefused(1)}
		}, run: func(p *kit.Run) {
			c := p.New()
			var saved [][]byte
			c.OnHTML("a", func(e *colly.HTMLElement) {
				r, err := e.Request.New("GET", e.Request.AbsoluteURL(e.Attr("href")), nil)
				kit.Must(p.T, err)
				b, err := r.Marshal()
				kit.Must(p.T, err)
				saved = append(saved, b)
				r.Do()
			})
			visit(c, "/")
			d := p.New()
			for _, b := range saved {
				r, err := d.UnmarshalRequest(b)
				kit.Must(p.T, err)
				r.Do()
			}
		}},
	{name: "forms with files", records: true, outcomes: "failed 403: /up x2; refused: /raw /up",
		sites: func() robotstest.Sites { return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 403}} },
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.StopRefused(2), revalidate(p)}
		}, run: func(p *kit.Run) {
			c := p.New(colly.AllowURLRevisit())
			for range 3 {
				c.PostMultipart("http://a.test/up", map[string][]byte{"f": []byte("x")})
			}
			c.PostRaw("http://a.test/raw", []byte("x"))
		}},
	{name: "error pages are parsed", outcomes: "done: /1 /2 /3; nofollow: /2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/1": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Robots-Tag", "nofollow")
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(403)
				io.WriteString(w, robotstest.Page("/2"))
			}), "*": "x"}}
		}, options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.StopRefused(2), collyrobots.EnforceRobotsTags(), collyrobots.MaxPages(4)}
		}, run: func(p *kit.Run) {
			c := p.Collector()
			c.ParseHTTPErrorResponse = true
			p.Attach(p.Count(c))
			follow(c)
			visit(c, "/1", "/2", "/3")
		}},
	{name: "a cache directory and a budget", records: true, outcomes: "budget: /3; done: /1 x2 /2 x2 /3",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": fresh(robotstest.Page())}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.MaxPages(2), collyrobots.EnforceRobotsTags()}
		}, run: func(p *kit.Run) {
			dir, err := os.MkdirTemp("", "cache")
			kit.Must(p.T, err)
			defer os.RemoveAll(dir)
			for range 2 {
				c := p.New(colly.CacheDir(dir))
				visit(c, "/1", "/2", "/3")
				p.Plug()
			}
		}},
	{name: "redirects to another host over its budget", records: true, outcomes: "budget: /2 /3 b.test/y; done: b.test/x; unchanged: b.test/x",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": robotstest.Redirect("http://b.test/x")}, "b.test": {"/robots.txt": 404, "*": fresh("x")}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.ForHosts("b.test", collyrobots.MaxPages(1))}
		}, run: func(p *kit.Run) {
			c := p.New(colly.AllowURLRevisit())
			visit(c, "/1", "/2", "/3")
			visit(c, "http://b.test/x", "http://b.test/y")
		}},
	{name: "a slow server", records: true, outcomes: "budget: /3; done: /1 /2 /3; unchanged: /1 /2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(4 * time.Second)
				withETag("x")(w, r)
			})}}
		}, options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.AdaptiveDelay(2), revalidate(p), collyrobots.MaxPages(5)}
		},
		schedule: "0s /robots.txt, 1s /1, 5s /2, 10s /3, 16.5s /1, 23.75s /2", run: func(p *kit.Run) {
			c := p.New(colly.AllowURLRevisit())
			visit(c, "/1", "/2", "/3", "/1", "/2", "/3")
		}},
	{name: "a server that hangs, hours, and a timeout", outcomes: "failed timeout: /1 /2 /3 /4 /5 /6 /7",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": http.HandlerFunc(kit.Hang)}}
		},
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.CrawlHours("00:00", "00:01", time.UTC), collyrobots.AdaptiveDelay(1), collyrobots.StopRefused(1)}
		}, run: func(p *kit.Run) {
			c := p.New(kit.Async...)
			visit(c, "/1", "/2", "/3", "/4", "/5", "/6", "/7")
			c.Wait()
		}},
	{name: "two plugins in one process", outcomes: "budget: /4 /6; closed: /5; done: / x2 /1 /3; nofollow: /1 x2 /2 x2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": "x"}}
		}, impolite: true,
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.MaxPages(2), collyrobots.EnforceRobotsTags()}
		}, run: func(p *kit.Run) {
			c := p.New()
			follow(c)
			visit(c, "/")
			first := p.Plugin
			p.Plugin = nil
			p.Plug()
			d := p.New()
			follow(d)
			visit(d, "/", "/1")
			visit(c, "/3", "/4")
			kit.Must(p.T, first.Close())
			visit(c, "/5")
			visit(d, "/6")
		}},
	{name: "the collector of another plugin", records: true, outcomes: "done: / x3 /2; nofollow: /1 x3 /2 x3; unchanged: /2 x2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": fresh("x")}}
		}, impolite: true,
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{skipFresh(p), collyrobots.EnforceRobotsTags(), collyrobots.MaxPages(3)}
		}, run: func(p *kit.Run) {
			c := p.New(colly.AllowURLRevisit())
			follow(c)
			for range 3 {
				visit(c, "/", "/2")
				p.Plug()
				kit.Must(p.T, p.Plugin.Attach(c))
			}
		}},
	{name: "usage and refusals", outcomes: "failed 451: /1 /2; refused: /3; usage: /ai/1 /ai/2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\nContent-Usage: /ai train-ai=n\n", kit.TDMURI: 403, "*": 451}}
		},
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(), collyrobots.TDMRep(), collyrobots.StopRefused(2), collyrobots.MaxPages(9)}
		}, run: func(p *kit.Run) {
			c := p.New()
			visit(c, "/ai/1", "/1", "/2", "/3", "/ai/2")
		}},
	{name: "retries in OnUnchanged and OnDenied", records: true, outcomes: "budget: /1; done: /1 x2; unchanged: /1 x2",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": withETag("x")}}
		},
		options: func(p *kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.Revalidate(collyrobots.Revalidation{OnUnchanged: func(r *colly.Request) { p.End(r, "unchanged"); r.Retry() }}), collyrobots.MaxPages(4)}
		}, run: func(p *kit.Run) {
			p.Plug()
			c := p.New(colly.AllowURLRevisit())
			visit(c, "/1", "/1", "/1")
		}},
	{name: "several collectors with LimitRules and queues of hosts", outcomes: "budget: c.test/2; done: /0 /1 /2 b.a.test/0 b.a.test/1 b.a.test/2 c.test/0 c.test/1",
		sites: func() robotstest.Sites {
			return robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}, "b.a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "*": "x"}, "c.test": {"*": "x"}}
		},
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.MaxPages(3), collyrobots.ForHosts("c.test", collyrobots.CrawlHours("01:00", "02:00", time.UTC), collyrobots.MaxPages(2))}
		}, run: func(p *kit.Run) {
			c, d := p.New(kit.Async...), p.New(kit.Async...)
			kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 1}))
			for i := range 3 {
				visit(c, fmt.Sprint("/", i))
				visit(d, fmt.Sprint("http://b.a.test/", i), fmt.Sprint("http://c.test/", i))
			}
			c.Wait()
			d.Wait()
			synctest.Wait()
		}},
}
