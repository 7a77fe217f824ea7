package programs

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The programs in strictPrograms crawl sites whose robots.txt denies some pages. They must behave
// under Temoto as with Colly's built-in check, except for the differences in
// docs/built-in-check.md.

// TestStrictProgramsAreTheSameWithPlugin checks that the output and the requests of each program
// are the same under Temoto as with the built-in check, and that no request breaks the rules under
// RFC 9309.
func TestStrictProgramsAreTheSameWithPlugin(t *testing.T) {
	for _, x := range strictPrograms {
		t.Run(x.name, func(t *testing.T) {
			said, seen := x.builtIn(t)
			if len(said) == 0 || len(seen) == 0 {
				t.Fatalf("the program does nothing: output %q, requests %q", said, seen)
			}
			withSaid, withSeen := x.once(t, setting{builtIn: true, options: []collyrobots.Option{collyrobots.Dialect(dialect.Temoto())}})
			compare(t, said, withSaid, seen, withSeen)
			x.once(t, setting{builtIn: true, options: x.pluginOptions(), verify: verify})
		})
	}
}

// builtIn runs a program with Colly's built-in check.
func (x program) builtIn(t *testing.T) (said, seen []string) {
	t.Helper()
	return x.once(t, setting{builtIn: true})
}

// verify checks the requests of a run under RFC 9309.
func verify(p *kit.Run) { robotstest.Verify(p.T, p.Web, dialect.RFC9309()) }

// closedTree returns tree with a robots.txt that denies some pages.
func closedTree() robotstest.Sites {
	sites := tree()
	sites["a.test"]["/robots.txt"] = "User-agent: *\nDisallow: /2\nDisallow: /4\n\nUser-agent: GuestBot\nDisallow: /\n"
	sites["a.test"]["/"] = robotstest.Page("/1", "/2", "/missing", "http://b.test/")
	sites["b.test"]["/robots.txt"] = "User-agent: *\nDisallow: /\n"
	return sites
}

// closedMembers returns members with a robots.txt.
func closedMembers(rules string) func() robotstest.Sites {
	return func() robotstest.Sites {
		sites := members()
		sites["a.test"]["/robots.txt"] = rules
		return sites
	}
}

var strictPrograms = []program{
	{name: "follows links within a depth", sites: closedTree, run: func(p *kit.Run) {
		c := p.Results(p.Collector(colly.MaxDepth(3)))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) {
			err := e.Request.Visit(e.Attr("href"))
			already := (*colly.AlreadyVisitedError)(nil)
			if !errors.Is(err, colly.ErrRobotsTxtBlocked) && !errors.As(err, &already) { // a denied page counts as visited
				p.Say("%s: %s", e.Attr("href"), outcome(err))
			}
		})
		p.Attach(c)
		p.Say("%s", outcome(c.Visit("http://a.test/")))
	}},
	{name: "follows links in parallel", sites: closedTree, unordered: true, run: func(p *kit.Run) {
		c := p.Results(p.Collector(colly.Async()))
		follow(c)
		kit.Must(p.T, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2, RandomDelay: time.Second}))
		p.Attach(c)
		p.Say("%s", outcome(c.Visit("http://a.test/")))
		c.Wait()
	}},
	{name: "begins at a page that is denied", sites: closedTree, run: func(p *kit.Run) {
		c := p.Results(p.Collector())
		follow(c)
		p.Attach(c)
		p.Say("%s", outcome(c.Visit("http://b.test/")))
		if outcome(c.Visit("http://a.test/2")) == "denied" {
			p.Say("%s", outcome(c.Visit("http://a.test/3")))
		}
	}},
	{name: "logs in on a page that is allowed", sites: closedMembers("User-agent: *\nDisallow: /login$\nAllow: /login?\n"), run: func(p *kit.Run) {
		c := p.Results(p.Collector())
		c.OnHTML("form", func(e *colly.HTMLElement) {
			p.Say("post: %s", outcome(e.Request.Post(e.Attr("action"), map[string]string{"user": "me", "token": "t0"})))
		})
		p.Attach(c)
		p.Say("%s", outcome(c.Visit("http://a.test/login?next=1")))
	}},
	{name: "reads cached pages that are denied now", sites: closedTree, run: func(p *kit.Run) {
		dir := p.TempDir()
		p.Web.Set("a.test", "/robots.txt", 404)
		for range 2 {
			c := p.Results(p.Collector(colly.CacheDir(dir)))
			plugin := p.Plugin
			if plugin != nil { // the plugin reads robots.txt once, so each collector has another one
				var err error
				plugin, err = collyrobots.WithRobots(c, collyrobots.Dialect(dialect.Temoto()), collyrobots.Logger(slog.New(slog.DiscardHandler)))
				kit.Must(p.T, err)
			}
			for _, page := range []string{"/1", "/2", "/3", "/4"} {
				p.Say("%s", outcome(c.Visit("http://a.test"+page)))
			}
			if plugin != nil {
				kit.Must(p.T, plugin.Close())
			}
			p.Web.Set("a.test", "/robots.txt", "User-agent: *\nDisallow: /2\nDisallow: /4\n")
		}
	}},
	{name: "keeps URLs in a queue", sites: closedTree, unordered: true, run: func(p *kit.Run) {
		c := p.Results(p.Collector())
		q, err := queue.New(2, &queue.InMemoryQueueStorage{MaxSize: 1000})
		kit.Must(p.T, err)
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.AddURL(e.Request.AbsoluteURL(e.Attr("href"))) })
		p.Attach(c)
		kit.Must(p.T, q.AddURL("http://a.test/"))
		p.Say("%v", q.Run(c))
	}},
	{name: "has two collectors with two names", sites: closedTree, run: func(p *kit.Run) {
		c := p.Results(p.Collector(colly.AllowURLRevisit()))
		guest := p.Results(c.Clone())
		guest.UserAgent = "GuestBot/2.0"
		c.OnHTML("a[href]", func(e *colly.HTMLElement) {
			p.Say("guest: %s", outcome(guest.Visit(e.Request.AbsoluteURL(e.Attr("href")))))
		})
		p.Attach(c, guest)
		for _, page := range []string{"/", "/1", "/2"} {
			p.Say("%s", outcome(c.Visit("http://a.test"+page)))
		}
	}},
	{name: "sends HEAD before each GET", sites: closedTree, run: func(p *kit.Run) {
		c := p.Results(p.Collector(colly.CheckHead()))
		follow(c)
		p.Attach(c)
		p.Say("%s", outcome(c.Visit("http://a.test/3")))
		p.Say("%s", outcome(c.Visit("http://a.test/1")))
	}},
	{name: "watches a page that is denied for a while", sites: closedTree, run: func(p *kit.Run) {
		c := p.Results(p.Collector(colly.AllowURLRevisit()))
		p.Attach(c)
		for range 15 {
			p.Say("%s", outcome(c.Visit("http://a.test/2")))
			p.Say("%s", outcome(c.Visit("http://a.test/1")))
			time.Sleep(time.Hour)
		}
	}},
	{name: "visits a host with several ports and schemes", sites: func() robotstest.Sites {
		sites := closedTree()
		sites["a.test:8080"] = robotstest.Pages(3, "User-agent: *\nDisallow: /1\n")
		sites["a.test:8443"] = robotstest.Pages(3, "User-agent: *\nDisallow: /0\n")
		return sites
	}, run: func(p *kit.Run) {
		c := p.Results(p.Collector())
		p.Attach(c)
		for _, host := range []string{"http://a.test:8080", "https://a.test:8443", "http://a.test"} {
			for _, page := range []string{"/0", "/1", "/2"} {
				p.Say("%s", outcome(c.Visit(host+page)))
			}
		}
	}},
	// The program has no OnError: Colly may also call that for a robots.txt that cannot be read.
	{name: "cannot read robots.txt at first", sites: func() robotstest.Sites {
		sites := closedTree()
		var mu sync.Mutex
		tries := 0
		sites["a.test"]["/robots.txt"] = func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			tries++
			if tries <= 3 {
				kit.Drop(w, r)
			}
			io.WriteString(w, "User-agent: *\nDisallow: /2\n")
		}
		return sites
	}, run: func(p *kit.Run) {
		c := p.Collector(colly.AllowURLRevisit())
		c.OnResponse(func(r *colly.Response) { p.Say("response %d %s", r.StatusCode, r.Request.URL) })
		p.Attach(c)
		for _, page := range []string{"/1", "/2", "/3"} {
			for range 20 {
				if c.Visit("http://a.test"+page) == nil {
					break
				}
				time.Sleep(time.Second)
			}
		}
		p.Say("done")
	}},
}
