package observe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

var theWire = []report.EventKind{report.EventStarted, report.EventAnswered}

// TestEventsOfFailures checks that a request that fails has both events, and the error in the
// second. net/http repeats a request if an idle connection was closed.
func TestEventsOfFailures(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": kit.NoDenys, "/drop": kit.Drop,
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			w.Write([]byte("12345"))
			w.(http.Flusher).Flush()
			kit.Drop(w, nil)
		},
		"/hang": kit.Hang,
	}}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(theWire...)
		c := kit.Start(t, web, nil, h.On(), collyrobots.MinDelay(time.Second))
		c.SetRequestTimeout(3 * time.Second)
		for _, page := range []string{"drop", "cut", "hang"} {
			c.Visit("http://a.test/" + page)
		}
		h.Want(t, `
0s started robots a.test/robots.txt delay 1s min_delay
0s answered robots a.test/robots.txt 200 24 bytes
1s started page a.test/drop gap 1s delay 1s min_delay
1s answered page a.test/drop (collyrobots: the connection was dropped before an answer)
2s started retry a.test/drop gap 1s delay 1s min_delay
2s answered retry a.test/drop (EOF)
3s started page a.test/cut gap 1s delay 1s min_delay
3s answered page a.test/cut 200 5 bytes (unexpected EOF)
4s started page a.test/hang gap 1s delay 1s min_delay
7s answered page a.test/hang took 3s (context deadline exceeded)
`)
	})
}

// TestEventsWithOtherTransport checks that the start of a request is the time at which the
// transport gets it if the transport does not report when it writes.
func TestEventsWithOtherTransport(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/": kit.Takes(5*time.Second, "")}}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(theWire...)
		c := kit.Start(t, web, kit.Async, h.On())
		c.WithTransport(struct{ http.RoundTripper }{web.Transport()})
		c.Visit("http://a.test/")
		time.Sleep(time.Second)
		h.Want(t, `
0s started robots a.test/robots.txt
0s answered robots a.test/robots.txt 200 24 bytes
0s started page a.test/
`)
		c.Wait()
		if events := h.Wait(); len(events) != 4 || events[3].Took != 5*time.Second {
			t.Errorf("got events %v", events)
		}
	})
}

// TestListenDuringRequest checks that a listener that is added during a request gets the event of
// its start when the request ends, and no events after stop.
func TestListenDuringRequest(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/": kit.Takes(5*time.Second, "")}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		h := kit.Hear(theWire...)
		c.Visit("http://a.test/")
		time.Sleep(time.Second)
		stop := c.Robots.Listen(h.Hear)
		c.Wait()
		h.Want(t, `
0s started page a.test/
5s answered page a.test/ 200 took 5s
`)
		stop()
		c.Visit("http://a.test/?2")
		if n := len(h.Wait()); n != 2 {
			t.Errorf("got %d events, want none after stop", n-2)
		}
	})
}

// TestEventsOfDenials checks that a request that is not sent has an event with the reason.
func TestEventsOfDenials(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\nSitemap: /map.xml\nSitemap: http://10.0.0.1/map.xml\n",
			"/":           robotstest.Page(), "/moved": robotstest.Redirect("/closed/2"), "/out": robotstest.Redirect("http://10.0.0.1/"),
			"/shut":    robotstest.Redirect("http://shut.test/"),
			"/map.xml": robotstest.Sitemap("http://a.test/closed/3"),
		},
		"shut.test": {"/robots.txt": 404, "/": robotstest.Page()},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(report.EventDenied)
		shut := collyrobots.ForHosts("shut.test", collyrobots.RobotsTxt([]byte("User-agent: *\nVisit-time: 2200-2300\n")), collyrobots.HonorDelays())
		c := kit.Start(t, web, nil, h.On(), collyrobots.FollowSitemaps(collyrobots.Feed{}), shut)
		for _, page := range []string{"closed/1", "moved", "out", "shut"} {
			c.Visit("http://a.test/" + page)
		}
		c.Visit("http://dead.test/")
		got := h.Lines()
		slices.Sort(got) // two sitemaps are requested at once
		want := `
0s denied a.test/closed/1 rule line 2
0s denied a.test/closed/3 rule line 2
0s denied 10.0.0.1/map.xml (collyrobots: a.test leads to http://10.0.0.1/map.xml, a private address (10.0.0.1); use PrivateNetworks(AllowAll) to allow it)
0s denied a.test/closed/2 rule line 2
0s denied 10.0.0.1/ (collyrobots: a.test leads to http://10.0.0.1/, a private address (10.0.0.1); use PrivateNetworks(AllowAll) to allow it)
0s denied shut.test/ (collyrobots: the redirect would wait too long for its host)
0s denied dead.test/ unreachable line 0
`
		lines := strings.Split(strings.TrimSpace(want), "\n")
		slices.Sort(lines)
		if !slices.Equal(got, lines) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
		byPage, denied := 0, 0
		for _, e := range h.Wait() {
			if e.Request != 0 && e.Collector == c.ID {
				byPage++
			}
			if e.Kind == report.EventDenied && e.Decision != nil {
				denied++
			}
		}
		if total := c.Robots.Stats().Totals.Denied; byPage != 5 || denied != total {
			t.Errorf("got %d events of pages and %d denials by robots.txt; want 5 and %d as in Stats", byPage, denied, total)
		}
	})
}

// TestEventWaiting checks that a page that has to wait has one event with the reason, and that a
// page that starts at once has none.
func TestEventWaiting(t *testing.T) {
	slow := robotstest.Pages(3, "User-agent: *\nCrawl-delay: 2\n")
	kit.InBubble(t, robotstest.Sites{"a.test": slow, "b.test": robotstest.Pages(3, kit.NoDenys), "c.test": robotstest.Pages(3, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(report.EventWaiting)
		c := kit.Start(t, web, nil, h.On(), collyrobots.ForHosts("c.*", collyrobots.MinDelay(10*time.Millisecond)))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		c.Visit("http://b.test/")
		c.Visit("http://c.test/")
		c.Visit("http://a.test/")
		h.Want(t, `
40ms waiting a.test/ delay 2s crawl_delay line 2 count 1 until 2.04s
2.04s waiting a.test/0 delay 2s crawl_delay line 2 count 1 until 4.04s
4.04s waiting a.test/1 delay 2s crawl_delay line 2 count 1 until 6.04s
6.04s waiting a.test/2 delay 2s crawl_delay line 2 count 1 until 8.04s
`)
	})
}

// TestEventSlowed checks that a host that throttles has one event for each incident, and one when
// it accepts requests again.
func TestEventSlowed(t *testing.T) {
	var busy string
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": func(w http.ResponseWriter, _ *http.Request) {
		if busy != "" {
			w.Header().Set("Retry-After", busy)
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}}}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(report.EventSlowed, report.EventRecovered)
		c := kit.Start(t, web, nil, h.On())
		c.Visit("http://a.test/1")
		busy = "20"
		c.Visit("http://a.test/2")
		busy = ""
		c.Visit("http://a.test/3")
		c.Visit("http://a.test/4")
		h.Want(t, `
0s slowed a.test/2 delay 1s retry_after 429 until 20s
20s recovered a.test/3 delay 1s back_off 200
`)
		busy = "x"
		c.Visit("http://a.test/5")
		events := h.Wait()
		if e := events[len(events)-1]; len(events) != 3 || e.Kind != report.EventSlowed || e.Source != report.SourceBackOff || e.Delay <= time.Second || !e.Until.IsZero() {
			t.Errorf("got event %+v", e)
		}
		if s := c.Robots.Stats().Hosts[0]; s.Throttled != 2 {
			t.Errorf("got stats %+v", s)
		}
	})
}

// TestEventRobots checks that each fetch of a robots.txt has an event with the change, and also a
// copy from the store.
func TestEventRobots(t *testing.T) {
	text, status := "User-agent: *\nDisallow: /x\n", 200
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", fmt.Sprintf("%q", text))
		if status == 200 && r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(status)
		if status == 200 {
			w.Write([]byte(text))
		}
	}, "/": ""}, "empty.test": {"/robots.txt": ""}, "none.test": {"/robots.txt": 404}, "down.test": {"/robots.txt": kit.Drop}}, func(t *testing.T, web *robotstest.Web) {
		kept := store.Memory()
		h := kit.Hear(report.EventRobots)
		c := kit.Start(t, web, nil, h.On(), collyrobots.Store(kept))
		look := func() {
			_, err := c.Robots.Check(t.Context(), "http://a.test/")
			kit.Must(t, err)
			time.Sleep(2 * time.Minute)
		}
		look()
		look() // 304
		text += "Crawl-delay: 2\n"
		look()
		status = 500
		look()
		for _, host := range []string{"empty", "none", "down"} {
			c.Robots.Check(t.Context(), "http://"+host+".test/")
		}
		recalled := kit.Hear(report.EventRobots)
		other := kit.Start(t, web, nil, recalled.On(), collyrobots.Store(kept))
		other.Robots.Check(t.Context(), "http://empty.test/")
		h.Want(t, `
0s robots a.test/robots.txt 200 rules a92d 27 bytes
2m0s robots a.test/robots.txt 200 rules a92d
4m0s robots a.test/robots.txt 200 rules 30a4 42 bytes rules -> rules
6m0s robots a.test/robots.txt 500 unreachable rules -> unreachable (robots.txt answered with status 500)
8m0s robots empty.test/robots.txt 200 rules e3b0 0 bytes
8m0s robots none.test/robots.txt 404 no_robots
8m0s robots down.test/robots.txt unreachable (no response: Get "http://down.test/robots.txt": EOF)
`)
		recalled.Want(t, `
0s robots empty.test/robots.txt 200 rules stored e3b0 0 bytes
`)
	})
}

// TestEventSitemap checks that each sitemap has an event after it was read, also if it is missing
// or truncated.
func TestEventSitemap(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 1\nSitemap: /index.xml\n",
		"/index.xml":  robotstest.SitemapIndex("http://a.test/map.xml", "http://a.test/gone.xml", "http://a.test/cut.xml"),
		"/map.xml":    robotstest.Sitemap("http://a.test/1", "http://a.test/2", "http://elsewhere.test/"),
		"/cut.xml":    "<urlset><url><loc>http://a.test/3</loc></url><url><loc>",
		"/":           "", "/1": "", "/2": "", "/3": "",
	}}, func(t *testing.T, web *robotstest.Web) {
		h := kit.Hear(report.EventSitemap)
		c := kit.Start(t, web, nil, h.On(), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.Visit("http://a.test/")
		c.Wait()
		h.Want(t, `
2s sitemap a.test/index.xml count 3
6s sitemap a.test/map.xml count 3
6s sitemap a.test/gone.xml (sitemap answered with status 404)
8s sitemap a.test/cut.xml count 1 (sitemap: http://a.test/cut.xml: offset 55: unexpected EOF)
`)
		if e := h.Wait()[0]; e.Host != "a.test" {
			t.Errorf("got event %+v", e)
		}
	})
}
