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
var morePrograms = []operatorProgram{
	{name: "image downloader", records: true, outcomes: "done: / x2 /1.png /2.png; rule: /closed.png x2; unchanged: /1.png /2.png",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": "<!DOCTYPE html><img src=/1.png><a rel=nofollow href=/x><img src=/2.png></a><img src=/closed.png>", "*": fresh("png")}},
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.EnforceRobotsTags(), collyrobots.MaxPages(3)}, run: func(p *operatorRun) {
			for range 2 {
				c := p.new()
				c.OnHTML("img", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("src")) })
				p.visit(c, "/")
				p.plug()
			}
		}},
	{name: "saved requests", outcomes: "done: / /1 /2; nofollow: /1 /2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": "x"}},
		options: []collyrobots.Option{collyrobots.EnforceRobotsTags(), collyrobots.StopRefused(1)}, run: func(p *operatorRun) {
			c := p.new()
			var saved [][]byte
			c.OnHTML("a", func(e *colly.HTMLElement) {
				r, err := e.Request.New("GET", e.Request.AbsoluteURL(e.Attr("href")), nil)
				kit.Must(p.T, err)
				b, err := r.Marshal()
				kit.Must(p.T, err)
				saved = append(saved, b)
				r.Do()
			})
			p.visit(c, "/")
			d := p.new()
			for _, b := range saved {
				r, err := d.UnmarshalRequest(b)
				kit.Must(p.T, err)
				r.Do()
			}
		}},
	{name: "forms with files", records: true, outcomes: "failed 403: /up x2; refused: /raw /up",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": 403}},
		options: []collyrobots.Option{collyrobots.StopRefused(2), collyrobots.Revalidate()}, run: func(p *operatorRun) {
			c := p.new(colly.AllowURLRevisit())
			for range 3 {
				c.PostMultipart("http://a.test/up", map[string][]byte{"f": []byte("x")})
			}
			c.PostRaw("http://a.test/raw", []byte("x"))
		}},
	{name: "error pages are parsed", outcomes: "done: /1 /2 /3; nofollow: /2",
		sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/1": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Robots-Tag", "nofollow")
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(403)
			io.WriteString(w, robotstest.Page("/2"))
		}), "*": "x"}}, options: []collyrobots.Option{collyrobots.StopRefused(2), collyrobots.EnforceRobotsTags(), collyrobots.MaxPages(4)}, run: func(p *operatorRun) {
			c := p.collector()
			c.ParseHTTPErrorResponse = true
			p.hear(c)
			follow(c)
			p.visit(c, "/1", "/2", "/3")
		}},
	{name: "a cache directory and a budget", records: true, outcomes: "budget: /3; done: /1 x2 /2 x2 /3",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": fresh(robotstest.Page())}},
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.MaxPages(2), collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			dir, err := os.MkdirTemp("", "cache")
			kit.Must(p.T, err)
			defer os.RemoveAll(dir)
			for range 2 {
				c := p.new(colly.CacheDir(dir))
				p.visit(c, "/1", "/2", "/3")
				p.plug()
			}
		}},
	{name: "redirects to another host over its budget", records: true, outcomes: "budget: /2 /3 b.test/y; done: b.test/x; unchanged: b.test/x",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": robotstest.Redirect("http://b.test/x")}, "b.test": {"/robots.txt": 404, "*": fresh("x")}},
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.ForHosts("b.test", collyrobots.MaxPages(1))}, run: func(p *operatorRun) {
			c := p.new(colly.AllowURLRevisit())
			p.visit(c, "/1", "/2", "/3")
			p.visit(c, "http://b.test/x", "http://b.test/y")
		}},
	{name: "a slow server", records: true, outcomes: "budget: /3; done: /1 /2 /3; unchanged: /1 /2",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "*": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(4 * time.Second)
			withETag("x")(w, r)
		})}}, options: []collyrobots.Option{collyrobots.AdaptiveDelay(2), collyrobots.Revalidate(), collyrobots.MaxPages(5)},
		schedule: "0s /robots.txt, 1s /1, 5s /2, 10s /3, 16.5s /1, 23.75s /2", run: func(p *operatorRun) {
			c := p.new(colly.AllowURLRevisit())
			p.visit(c, "/1", "/2", "/3", "/1", "/2", "/3")
		}},
	{name: "a server that hangs, hours, and a timeout", outcomes: "failed timeout: /1 /2 /3 /4 /5 /6 /7",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": http.HandlerFunc(kit.Hang)}},
		options: []collyrobots.Option{collyrobots.CrawlHours("00:00", "00:01", time.UTC), collyrobots.AdaptiveDelay(1), collyrobots.StopRefused(1)}, run: func(p *operatorRun) {
			c := p.new(kit.Async...)
			p.visit(c, "/1", "/2", "/3", "/4", "/5", "/6", "/7")
			c.Wait()
		}},
	{name: "two plugins in one process", outcomes: "budget: /4 /6; closed: /5; done: / x2 /1 /3; nofollow: /1 x2 /2 x2",
		sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": "x"}}, impolite: true,
		options: []collyrobots.Option{collyrobots.MaxPages(2), collyrobots.EnforceRobotsTags()}, run: func(p *operatorRun) {
			c := p.new()
			follow(c)
			p.visit(c, "/")
			first := p.robots
			p.robots = nil
			p.plug()
			d := p.new()
			follow(d)
			p.visit(d, "/", "/1")
			p.visit(c, "/3", "/4")
			kit.Must(p.T, first.Close())
			p.visit(c, "/5")
			p.visit(d, "/6")
		}},
	{name: "the collector of another plugin", records: true, outcomes: "done: / x3 /2; nofollow: /1 x3 /2 x3; unchanged: /2 x2",
		sites: robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "/": nofollow("/1", "/2"), "*": fresh("x")}}, impolite: true,
		options: []collyrobots.Option{collyrobots.SkipFresh(), collyrobots.EnforceRobotsTags(), collyrobots.MaxPages(3)}, run: func(p *operatorRun) {
			c := p.new(colly.AllowURLRevisit())
			follow(c)
			for range 3 {
				p.visit(c, "/", "/2")
				p.plug()
				kit.Must(p.T, p.robots.Attach(c))
			}
		}},
	{name: "usage and refusals", outcomes: "failed 451: /1 /2; refused: /3; usage: /ai/1 /ai/2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\nContent-Usage: /ai train-ai=n\n", kit.TDMURI: 403, "*": 451}},
		options: []collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(), collyrobots.TDMRep(), collyrobots.StopRefused(2), collyrobots.MaxPages(9)}, run: func(p *operatorRun) {
			c := p.new()
			p.visit(c, "/ai/1", "/1", "/2", "/3", "/ai/2")
		}},
	{name: "retries in OnUnchanged and OnDenied", records: true, outcomes: "budget: /1; done: /1 x2; unchanged: /1 x2",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": withETag("x")}},
		options: []collyrobots.Option{collyrobots.Revalidate(), collyrobots.MaxPages(4)}, run: func(p *operatorRun) {
			p.options = append(p.options, collyrobots.OnUnchanged(func(r *colly.Request) { p.end(r, "unchanged"); r.Retry() }))
			p.plug()
			c := p.new(colly.AllowURLRevisit())
			p.visit(c, "/1", "/1", "/1")
		}},
	{name: "several collectors with LimitRules and queues of hosts", outcomes: "budget: c.test/2; done: /0 /1 /2 b.a.test/0 b.a.test/1 b.a.test/2 c.test/0 c.test/1",
		sites:   robotstest.Sites{"a.test": {"/robots.txt": twoSeconds, "*": "x"}, "b.a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "*": "x"}, "c.test": {"*": "x"}},
		options: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.MaxPages(3), collyrobots.ForHosts("c.test", collyrobots.CrawlHours("01:00", "02:00", time.UTC), collyrobots.MaxPages(2))}, run: func(p *operatorRun) {
			c, d := p.new(kit.Async...), p.new(kit.Async...)
			kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 1}))
			for i := range 3 {
				p.visit(c, fmt.Sprint("/", i))
				p.visit(d, fmt.Sprint("http://b.a.test/", i), fmt.Sprint("http://c.test/", i))
			}
			c.Wait()
			d.Wait()
			synctest.Wait()
		}},
}
