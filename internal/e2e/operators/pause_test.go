package operators

import (
	"context"
	"fmt"
	"net/http"
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

// TestPause pauses a.test from 3 s until 1 h, while pages of a.test and b.test wait. The pages of a.test
// keep their order and their delay, and those of b.test are not held back.
func TestPause(t *testing.T) {
	delayed := robotstest.Pages(4, "User-agent: *\nCrawl-delay: 2\n")
	paused := "0s /robots.txt, 2s /0, 1h0m0s /1, 1h0m2s /2, 1h0m4s /3"
	usual := "0s /robots.txt, 2s /0, 4s /1, 6s /2, 8s /3"
	for name, test := range map[string]struct {
		opts   []collyrobots.Option
		a, b   string
		oneKey bool // the hosts share one pace, so their requests are 2 s apart together
	}{
		"alone":              {a: paused, b: usual},
		"MaxRate":            {opts: []collyrobots.Option{collyrobots.MaxRate(100, 10)}, a: paused, b: usual},
		"MaxInFlightPerHost": {opts: []collyrobots.Option{collyrobots.MaxInFlightPerHost(2)}, a: paused, b: usual},
		"SharedPace":         {a: paused, b: usual},
		"Frontier":           {a: paused, b: usual},
		"PaceBy":             {opts: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain)}, oneKey: true},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := []string{"a.test", "b.test"}
			if test.oneKey {
				hosts = []string{"a.x.test", "b.x.test"}
			}
			sites := robotstest.Sites{hosts[0]: delayed, hosts[1]: delayed}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				switch name {
				case "SharedPace":
					test.opts = append(test.opts, collyrobots.SharedPace(kit.Shared(t)))
				case "Frontier":
					test.opts = append(test.opts, collyrobots.Frontier(kit.NewMemoryStore()))
				}
				c := kit.Start(t, web, kit.Async, test.opts...)
				for i := range 4 {
					for _, host := range hosts {
						c.Visit(fmt.Sprintf("http://%s/%d", host, i))
						synctest.Wait()
					}
				}
				time.Sleep(3 * time.Second)
				kit.Must(t, c.Robots.Pause(hosts[0]))
				synctest.Wait()
				if got := kit.HostStats(t, c.Robots, hosts[0]).Source; got != report.SourcePaused {
					t.Errorf("the source of the delay is %q", got)
				}
				time.Sleep(time.Hour - 3*time.Second)
				if got := kit.HostStats(t, c.Robots, hosts[1]); got.Waiting+got.OnDisk != 0 {
					t.Errorf("%s was held back: %+v", hosts[1], got)
				}
				kit.Must(t, c.Robots.Resume(hosts[0]))
				c.Wait()
				if test.oneKey {
					wantHeld(t, web, hosts[0])
					kit.WantNoSooner(t, web, "", 2*time.Second, 10)
					return
				}
				kit.WantSchedule(t, web, hosts[0], test.a)
				kit.WantSchedule(t, web, hosts[1], test.b)
			})
		})
	}
}

// wantHeld checks that a host got no request from 3 s until 1 h, and got all its pages in order.
func wantHeld(t *testing.T, web *robotstest.Web, host string) {
	t.Helper()
	log := web.Log(host)
	for _, r := range log {
		if r.Elapsed >= 3*time.Second && r.Elapsed < time.Hour {
			t.Errorf("%v %s was sent during the pause", r.Elapsed, r.URI)
		}
	}
	if got := kit.URIsOf(log); got != "/robots.txt /0 /1 /2 /3" {
		t.Errorf("the order is %s", got)
	}
}

// TestPauseOfEverything pauses a host before any request, by each door. Nothing is sent, not even
// robots.txt, and an event says what the requests wait for.
func TestPauseOfEverything(t *testing.T) {
	for name, test := range map[string]struct {
		pause, resume []string // the arguments of Pause and Resume
		isPaused      bool     // after Resume
	}{
		"the host":                    {pause: []string{"a.test"}, resume: []string{"a.test"}},
		"all hosts":                   {pause: []string{""}, resume: []string{""}},
		"all hosts, then one":         {pause: []string{""}, resume: []string{"A.test:80"}},
		"one host, then all":          {pause: []string{"a.test"}, resume: []string{""}},
		"all, one, and the one again": {pause: []string{"", "a.test"}, resume: []string{"a.test"}},
		"another host":                {pause: []string{"", "a.test"}, resume: []string{"b.test"}, isPaused: true},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{"a.test": robotstest.Pages(4, "User-agent: *\nCrawl-delay: 2\nSitemap: /sitemap.xml\n")}
			sites["a.test"]["/sitemap.xml"] = robotstest.Sitemap("http://a.test/3")
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				heard := kit.Hear(report.EventWaiting)
				c := kit.Start(t, web, kit.Async, heard.On(), collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.ProductToken("bot"))
				client := &http.Client{Transport: c.Robots.Transport(web.Transport())}
				for _, host := range test.pause {
					kit.Must(t, c.Robots.Pause(host))
				}
				c.Visit("http://a.test/0")
				done := make(chan error, 1)
				go func() {
					_, err := kit.Get(client, "http://a.test/1")
					done <- err
				}()
				time.Sleep(time.Hour)
				if log := web.Log(""); len(log) != 0 {
					t.Errorf("sent during the pause: %v", log)
				}
				events := heard.Wait()
				if len(events) != 2 || events[0].Source != report.SourcePaused {
					t.Errorf("events: %v", events)
				}
				for _, host := range test.resume {
					kit.Must(t, c.Robots.Resume(host))
				}
				if test.isPaused {
					time.Sleep(time.Hour)
					if log := web.Log(""); len(log) != 0 {
						t.Errorf("sent during the pause: %v", log)
					}
					kit.Must(t, c.Robots.Close())
					c.Wait()
					<-done
					return
				}
				c.Wait()
				kit.Must(t, <-done)
				for _, uri := range []string{"/0", "/1", "/3"} {
					if kit.CountURI(web, uri) != 1 {
						t.Errorf("%s was not fetched: %v", uri, web.Log(""))
					}
				}
			})
		})
	}
}

// TestPauseOfRequestsUnderWay pauses a host while a page is on the wire, and while a redirect leads to
// the host.
func TestPauseOfRequestsUnderWay(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/slow": kit.Takes(5*time.Second, "slow"), "/1": "one"},
		"b.test": {"/robots.txt": kit.NoDenys, "/away": robotstest.Redirect("http://a.test/1")},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		c.Visit("http://a.test/slow")
		time.Sleep(time.Second)
		kit.Must(t, c.Robots.Pause("a.test"))
		c.Visit("http://b.test/away")
		time.Sleep(time.Minute)
		c.Note(func() {
			if len(c.Pages) != 1 {
				t.Errorf("the page under way was not fetched: %q", c.Pages)
			}
		})
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 0s /slow")
		kit.Must(t, c.Robots.Resume("a.test"))
		c.Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 0s /slow, 1m1s /1")
	})
}

// TestPauseEnds checks what ends the wait for a host that is paused.
func TestPauseEnds(t *testing.T) {
	for _, ends := range []string{"the context", "the timeout of a client", "Close"} {
		t.Run(ends, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
				robots, client := kit.NewRobots(t, web)
				_, err := kit.Get(client, "http://a.test/0")
				kit.Must(t, err)
				kit.Must(t, robots.Pause(""))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch ends {
				case "the context":
					time.AfterFunc(time.Minute, cancel)
				case "the timeout of a client":
					client.Timeout = time.Minute
				case "Close":
					time.AfterFunc(time.Minute, func() { robots.Close() })
				}
				began := time.Now()
				_, err = client.Do(kit.NewRequest(t, "http://a.test/1").WithContext(ctx))
				if err == nil || time.Since(began) != time.Minute {
					t.Errorf("got %v after %v", err, time.Since(began))
				}
				kit.WantURIs(t, web, "a.test", "/robots.txt /0")
			})
		})
	}
}

// TestPauseNames passes texts that are not names of hosts.
func TestPauseNames(t *testing.T) {
	robots, err := collyrobots.New(kit.Quiet())
	kit.Must(t, err)
	defer robots.Close()
	for _, host := range []string{"http://a.test", "a.test/", "a.test/x", "user@a.test", "a.test:99999", "a b", "xn--a", " ", "*.test", "a.test?x", "a.test#x"} {
		if err := robots.Pause(host); err == nil && host != "*.test" {
			t.Errorf("%q was paused", host)
		}
		if err := robots.Resume(host); err == nil && host != "*.test" {
			t.Errorf("%q was resumed", host)
		}
	}
	if err := new(collyrobots.Plugin).Pause(""); err == nil {
		t.Error("the zero Plugin was paused")
	}
}

// TestPauseHoldsNothing pauses a host before its pages are visited. They hold no slot of a LimitRule and
// no place in a group, so the pages of another host are fetched. With Frontier they wait on disk.
func TestPauseHoldsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		delay string
		opts  []collyrobots.Option
	}{
		"no delay":       {},
		"a delay":        {delay: "Crawl-delay: 2\n"},
		"PaceBy":         {delay: "Crawl-delay: 2\n", opts: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain)}},
		"Frontier":       {},
		"Frontier, slow": {delay: "Crawl-delay: 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			site := robotstest.Pages(5, "User-agent: *\n"+test.delay)
			kit.InBubble(t, robotstest.Sites{"a.x.test": site, "b.x.test": site}, func(t *testing.T, web *robotstest.Web) {
				opts := test.opts
				hasStore := strings.HasPrefix(name, "Frontier")
				if hasStore {
					opts = append(opts, collyrobots.Frontier(kit.NewMemoryStore()))
				}
				c := kit.Start(t, web, kit.Async, opts...)
				kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 1})
				c.Visit("http://a.x.test/0") // reads robots.txt
				time.Sleep(time.Minute)
				kit.Must(t, c.Robots.Pause("a.x.test"))
				before := len(web.Log("a.x.test"))
				for _, host := range []string{"a.x.test", "b.x.test"} {
					for i := 1; i < 5; i++ {
						c.Visit(fmt.Sprintf("http://%s/%d", host, i))
						synctest.Wait()
					}
				}
				time.Sleep(time.Hour + time.Second) // each minute, a page is handed out and goes back at once
				synctest.Wait()
				if n := len(web.Log("b.x.test")); n != 5 {
					t.Errorf("b.x.test got %d requests during the pause, want 5", n)
				}
				if n := len(web.Log("a.x.test")); n != before {
					t.Errorf("a.x.test got %d requests during the pause", n-before)
				}
				if s := kit.HostStats(t, c.Robots, "a.x.test"); hasStore && (s.OnDisk != 4 || s.Waiting != 0) {
					t.Errorf("%d pages wait on disk and %d in memory", s.OnDisk, s.Waiting)
				}
				kit.Must(t, c.Robots.Resume("a.x.test"))
				c.Wait()
				kit.WantSortedURIs(t, web, "a.x.test", "/0 /1 /2 /3 /4 /robots.txt")
			})
		})
	}
}
