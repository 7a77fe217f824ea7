package observe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestEventsOfCrawl compares all events of a small crawl that has every kind of event.
func TestEventsOfCrawl(t *testing.T) {
	busy := true
	sites := robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /closed\nCrawl-delay: 2\nSitemap: /map.xml\n",
		"/":           "", "/old": robotstest.Redirect("/now"), "/now": "", "/new": kit.Takes(time.Second, "new"),
		"/map.xml":    robotstest.Sitemap("http://a.test/new"),
		"/busy?again": "",
		"/busy": func(w http.ResponseWriter, _ *http.Request) {
			if busy {
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(http.StatusTooManyRequests)
			}
			busy = false
		},
	}}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear()
		c := kit.Start(t, web, nil, h.On(), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		for _, page := range []string{"", "closed", "old", "busy", "busy?again"} {
			c.Visit("http://a.test/" + page)
		}
		h.Want(t, `
0s started robots a.test/robots.txt
0s robots a.test/robots.txt 200 rules 28b9 65 bytes
0s answered robots a.test/robots.txt 200 65 bytes
0s waiting a.test/ delay 2s crawl_delay line 3 count 1 until 2s
2s started page a.test/ gap 2s delay 2s crawl_delay line 3
2s answered page a.test/ 200
4s started sitemap a.test/map.xml gap 2s delay 2s crawl_delay line 3
4s answered sitemap a.test/map.xml 200 108 bytes
4s waiting a.test/new delay 2s crawl_delay line 3 count 1 until 6s
6s started page a.test/new gap 2s delay 2s crawl_delay line 3
7s answered page a.test/new 200 3 bytes took 1s
7s sitemap a.test/map.xml count 1
7s denied a.test/closed rule line 2
7s waiting a.test/old delay 2s crawl_delay line 3 count 1 until 8s
8s started page a.test/old gap 2s delay 2s crawl_delay line 3
8s answered page a.test/old 302 27 bytes
10s started redirect a.test/now from a.test/old gap 2s delay 2s crawl_delay line 3
10s answered redirect a.test/now 200
10s waiting a.test/busy delay 2s crawl_delay line 3 count 1 until 12s
12s started page a.test/busy gap 2s delay 2s crawl_delay line 3
12s slowed a.test/busy delay 2s retry_after 429 until 42s
12s answered page a.test/busy 429
12s waiting a.test/busy?again delay 2s retry_after count 1 until 42s
42s started page a.test/busy?again gap 30s delay 2s crawl_delay line 3
42s recovered a.test/busy?again delay 2s crawl_delay line 3 200
42s answered page a.test/busy?again 200
`)
		if s := c.Robots.Stats(); s.Totals.Requests != len(web.Log("")) || s.GapOverDelay != 1 {
			t.Errorf("got stats %+v", s)
		}
	})
}

// TestCloseWithBlockedListener checks that Close waits only a limited time for a listener that
// blocks, and that this listener then gets no more events.
func TestCloseWithBlockedListener(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/": ""}}, func(t *testing.T, web *robotstest.Web) {
		more, heard := make(chan bool), 0
		c := kit.Start(t, web, nil, collyrobots.OnEvent(func(*collyrobots.Event) { <-more; heard++ }))
		c.Visit("http://a.test/")
		began := time.Now()
		kit.Must(t, c.Robots.Close())
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		close(more)
		synctest.Wait()
		if heard != 1 {
			t.Errorf("%d events after Close", heard-1)
		}
	})
}

// TestStartedHasDecision checks that the event of each start has the robots.txt and the rule that
// allow the request, also after a redirect, after a retry and in a dry run.
func TestStartedHasDecision(t *testing.T) {
	const file = "User-agent: ExampleBot\nDisallow: /\nAllow: /a\nAllow: /b\nCrawl-delay: 1\n"
	busy := true
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": file, "/a": robotstest.Redirect("/b"), "/b": func(w http.ResponseWriter, _ *http.Request) {
			if busy {
				w.WriteHeader(http.StatusTooManyRequests)
			}
			busy = false
		}},
		"b.test": {"/": ""},
	}
	for _, dry := range []bool{false, true} {
		busy = true
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			h := kit.Hear(report.EventStarted)
			opts := []collyrobots.Option{h.On(), collyrobots.RetryThrottled(1)}
			if dry {
				opts = append(opts, collyrobots.DryRun(true))
			}
			c := kit.Start(t, web, nil, opts...)
			c.Impolite = dry
			c.Visit("http://a.test/a")
			c.Visit("http://a.test/closed")
			c.Visit("http://b.test/")
			var got []string
			for _, e := range h.Wait() {
				if e.Decision == nil {
					got = append(got, fmt.Sprint(e.RequestKind, " ", e.URL))
					continue
				}
				d := *e.Decision
				got = append(got, fmt.Sprint(e.RequestKind, " ", e.URL, " ", d.Allowed, " ", d.Reason, " ", d.Rule.Line, " ", d.Token, " ", d.Hash == hashOf(file), " ", d.CrawlDelay))
				if d.URL != e.URL {
					t.Errorf("the decision about %s is about %s", e.URL, d.URL)
				}
			}
			want := []string{
				"robots http://a.test/robots.txt",
				"page http://a.test/a true rule 3 ExampleBot true 1s",
				"redirect http://a.test/b true rule 4 ExampleBot true 1s",
				"retry http://a.test/b true rule 4 ExampleBot true 1s",
				"robots http://b.test/robots.txt",
				"page http://b.test/ true no_robots 0 ExampleBot false 0s",
			}
			if dry {
				want = slices.Insert(want, 4, "page http://a.test/closed false rule 2 ExampleBot true 1s")
			}
			if !slices.Equal(got, want) {
				t.Errorf("dry run %v: got\n%s\nwant\n%s", dry, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestSeveralListeners gives the options with functions several times. Each function of OnEveryEvent
// must get each event, also beside a slow one, and the functions of OnDenied are called in their
// order.
func TestSeveralListeners(t *testing.T) {
	const pages = 3000
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /closed\n", "*": ""}}, func(t *testing.T, web *robotstest.Web) {
		var slow, fast, lossy, other []*collyrobots.Event
		var denied []string
		listen := func(events *[]*collyrobots.Event, pause time.Duration) func(*collyrobots.Event) {
			return func(e *collyrobots.Event) {
				time.Sleep(pause)
				*events = append(*events, e)
			}
		}
		onDenied := func(name string) collyrobots.Option {
			return collyrobots.OnDenied(func(r *colly.Request, _ error) { denied = append(denied, name+r.URL.Path) })
		}
		c := kit.Start(t, web, nil, // a goroutine that waits for a lock would stop the clock of the bubble
			collyrobots.OnEveryEvent(listen(&slow, time.Millisecond)),
			collyrobots.OnEvent(listen(&lossy, 0)),
			collyrobots.OnEveryEvent(listen(&fast, 0)),
			collyrobots.OnEvent(listen(&other, 0)),
			onDenied("1"), onDenied("2"),
		)
		c.Visit("http://a.test/closed")
		c.Wait()
		for n := range pages {
			c.Visit(fmt.Sprint("http://a.test/", n))
		}
		c.Wait()
		kit.Must(t, c.Robots.Close())
		synctest.Wait()
		if got := fmt.Sprint(denied); got != "[1/closed 2/closed]" || len(c.Denied) != 1 {
			t.Errorf("OnDenied was called for %s and %v", got, c.Denied)
		}
		kinds := func(events []*collyrobots.Event) (kinds []string) {
			for _, e := range events {
				kinds = append(kinds, fmt.Sprint(e.Kind, e.URL))
			}
			slices.Sort(kinds)
			return kinds
		}
		if n := len(slow); n < 2*pages {
			t.Errorf("the slow function got %d events", n)
		}
		for name, events := range map[string][]*collyrobots.Event{"fast": fast, "lossy": lossy, "other": other} {
			if !slices.Equal(kinds(events), kinds(slow)) {
				t.Errorf("the %s function got %d events, the slow one %d", name, len(events), len(slow))
			}
		}
	})
}
