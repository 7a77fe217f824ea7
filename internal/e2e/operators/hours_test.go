package operators

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
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

// A bubble begins at midnight in UTC, on 2000-01-01.

// nights is the option of most tests.
var nights = collyrobots.CrawlHours("22:00", "06:00", time.UTC)

// startAt starts a crawl at a time after midnight.
func startAt(t *testing.T, web *robotstest.Web, at time.Duration, opts ...collyrobots.Option) *kit.Crawl {
	t.Helper()
	time.Sleep(at)
	return kit.Start(t, web, kit.Async, opts...)
}

func TestCrawlHoursFaults(t *testing.T) {
	for _, test := range []struct {
		from, to string
		loc      *time.Location
		want     string
	}{
		{"22:00", "6:00", time.UTC, ""},
		{"00:00", "23:59", time.UTC, ""},
		{"25:00", "06:00", time.UTC, `"25:00" is not a time of day`},
		{"22:00", "24:00", time.UTC, `"24:00" is not a time of day`},
		{"22", "", time.UTC, `"22" is not a time of day; "" is not a time of day`},
		{"22:60", "22:00:30", time.UTC, `"22:60" is not a time of day; "22:00:30" is not a time of day`},
		{"-1:00", "10pm", time.UTC, `"-1:00" is not a time of day; "10pm" is not a time of day`},
		{"22:00", "22:00", time.UTC, "the window from 22:00 to 22:00 is empty"},
		{"22:00", "06:00", nil, "the location is nil"},
	} {
		_, err := collyrobots.New(collyrobots.CrawlHours(test.from, test.to, test.loc))
		var got []string
		for _, fault := range kit.FaultsOf(err) {
			reason, _, _ := strings.Cut(fault.Reason, ": ")
			got = append(got, reason)
			if fault.Option != "CrawlHours" {
				t.Errorf("the fault is of %s", fault.Option)
			}
		}
		if got := strings.Join(got, "; "); got != test.want {
			t.Errorf("%s to %s in %v: got faults %q, want %q", test.from, test.to, test.loc, got, test.want)
		}
	}
}

// TestClosedHost checks the requests to a host that is closed when the crawl begins at 12:00.
func TestClosedHost(t *testing.T) {
	robots := "User-agent: *\nCrawl-delay: 60\n"
	for _, test := range []struct {
		name string
		opts []collyrobots.Option
		want string
	}{
		{"robots.txt at once, pages at night", []collyrobots.Option{nights}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"a later option applies", []collyrobots.Option{nights, collyrobots.CrawlHours("12:30", "12:32", time.UTC)},
			"12h0m0s /robots.txt, 12h30m0s /0, 12h31m0s /1, 36h30m0s /robots.txt, 36h31m0s /2"},
		{"ForHosts", []collyrobots.Option{collyrobots.ForHosts("*.test", nights)}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"ForHosts for another host", []collyrobots.Option{collyrobots.ForHosts("b.test", nights)}, "12h0m0s /robots.txt, 12h1m0s /0, 12h2m0s /1, 12h3m0s /2"},
		{"ForHosts before the option", []collyrobots.Option{collyrobots.ForHosts("a.test", collyrobots.MaxInFlight(1)), nights}, "12h0m0s /robots.txt, 12h1m0s /0, 12h2m0s /1, 12h3m0s /2"},
		{"robots.txt is ignored", []collyrobots.Option{nights, collyrobots.IgnoreRobotsWithPermission(), collyrobots.MinDelay(time.Second)}, "22h0m0s /0, 22h0m1s /1, 22h0m2s /2"},
		{"a dry run", []collyrobots.Option{nights, collyrobots.DryRun()}, "12h0m0s /robots.txt, 12h0m0s /0, 12h0m0s /1, 12h0m0s /2"},
		{"MaxInFlight", []collyrobots.Option{nights, collyrobots.MaxInFlight(2)}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"SharedPace", []collyrobots.Option{nights}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"Frontier", []collyrobots.Option{nights}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, robots)}, func(t *testing.T, web *robotstest.Web) {
				switch test.name { // the channels of a Pacer and a urlstore.Store must belong to the bubble
				case "SharedPace":
					test.opts = append(test.opts, collyrobots.SharedPace(kit.Shared(t)))
				case "Frontier":
					test.opts = append(test.opts, collyrobots.Frontier(kit.NewMemoryStore()))
				}
				c := startAt(t, web, 12*time.Hour, test.opts...)
				c.Impolite = strings.Contains(test.name, "dry") || strings.Contains(test.name, "ignored")
				for i := range 3 {
					c.Visit(fmt.Sprint("http://a.test/", i))
					synctest.Wait()
				}
				c.Wait()
				kit.WantSchedule(t, web, "a.test", test.want)
				if len(c.Errs) > 0 {
					t.Errorf("got errors %v", c.Errs)
				}
			})
		})
	}
}

// TestClosingTime checks what happens to requests that are in flight, or about to be sent, when the
// host closes at 6:00.
func TestClosingTime(t *testing.T) {
	const beforeClosing = 6*time.Hour - time.Second
	busy := func(after string) http.HandlerFunc {
		asked := false
		return func(w http.ResponseWriter, _ *http.Request) {
			if !asked {
				asked = true
				w.Header().Set("Retry-After", after)
				w.WriteHeader(429)
			}
		}
	}
	for _, test := range []struct {
		name string
		site robotstest.Site
		opts []collyrobots.Option
		want string
		err  string // of page /0
	}{
		{"a request in flight ends", robotstest.Site{"/0": kit.Takes(5*time.Second, "x")}, nil,
			"5h59m59s /robots.txt, 5h59m59s /0, 22h0m0s /1", ""},
		{"a redirect waits", robotstest.Site{"/0": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			http.Redirect(w, r, "/next", http.StatusFound)
		})}, []collyrobots.Option{collyrobots.MinDelay(500 * time.Millisecond)},
			"5h59m59s /robots.txt, 5h59m59.5s /0, 22h0m0s /next, 22h0m0.5s /1", ""},
		{"Retry-After ends when the host is closed", robotstest.Site{"/0": busy("120")}, nil,
			"5h59m59s /robots.txt, 5h59m59s /0, 22h0m0s /1", "Too Many Requests"},
		{"and is not retried", robotstest.Site{"/0": busy("120")}, []collyrobots.Option{collyrobots.RetryThrottled(3)},
			"5h59m59s /robots.txt, 5h59m59s /0, 22h0m0s /1", "Too Many Requests"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.site["/robots.txt"] = kit.NoDenys
			test.site["/1"] = "one"
			kit.InBubble(t, robotstest.Sites{"a.test": test.site}, func(t *testing.T, web *robotstest.Web) {
				c := startAt(t, web, beforeClosing, append(test.opts, nights)...)
				c.Visit("http://a.test/0")
				time.Sleep(3 * time.Second)
				c.Visit("http://a.test/1")
				c.Wait()
				kit.WantSchedule(t, web, "a.test", test.want)
				if err := c.Errs["http://a.test/0"]; test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
					t.Errorf("got error %v, want %q", err, test.err)
				}
			})
		})
	}
}

// TestSlowDialAtClosingTime checks that a request is not written after the host has closed,
// although its turn came before that.
func TestSlowDialAtClosingTime(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		c := startAt(t, web, 6*time.Hour-5*time.Second, nights)
		c.SetRequestTimeout(time.Minute)
		c.Transport.DisableKeepAlives = true
		dial := c.Transport.DialContext
		c.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(3 * time.Second)
			return dial(ctx, network, address)
		}
		c.Visit("http://a.test/0")
		c.Wait()
		kit.WantSchedule(t, web, "a.test", "5h59m58s /robots.txt, 22h0m0s /0")
	})
}

// TestRedirectToClosedHost checks that a redirect waits until its host opens.
func TestRedirectToClosedHost(t *testing.T) {
	for _, test := range []struct {
		at   time.Duration
		want string
	}{
		{12 * time.Hour, "12h0m0s /robots.txt, 22h0m0s /"},
		{22*time.Hour - 30*time.Second, "21h59m30s /robots.txt, 22h0m0s /"},
	} {
		kit.InBubble(t, robotstest.Sites{
			"a.test": {"/": robotstest.Redirect("http://b.test/"), "/robots.txt": kit.NoDenys},
			"b.test": {"/robots.txt": kit.NoDenys, "/": "b"},
		}, func(t *testing.T, web *robotstest.Web) {
			c := startAt(t, web, test.at, collyrobots.ForHosts("b.test", nights))
			c.Visit("http://a.test/")
			c.Wait()
			kit.WantSchedule(t, web, "b.test", test.want)
			kit.Must(t, c.Errs["http://a.test/"])
		})
	}
}

// TestSitemapsWaitForHours checks that sitemaps wait like pages, and that robots.txt does not wait
// behind a sitemap.
func TestSitemapsWaitForHours(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "Sitemap: http://a.test/map.xml\n",
		"/map.xml":    robotstest.Sitemap("http://a.test/listed"),
		"/listed":     "x", "/0": "y",
	}}, func(t *testing.T, web *robotstest.Web) {
		time.Sleep(12 * time.Hour)
		p, err := collyrobots.New(nights, collyrobots.HTTPClient(&http.Client{Transport: web.Transport()}))
		kit.Must(t, err)
		defer p.Close()
		go func() {
			time.Sleep(time.Hour)
			if d, err := p.Check(t.Context(), "https://a.test/x"); err != nil || !d.Allowed {
				t.Errorf("%v, %v", d, err)
			}
		}()
		for e, err := range p.Pages(t.Context(), collyrobots.Feed{}, "http://a.test/") {
			if err != nil || e.Loc != "http://a.test/listed" {
				t.Errorf("%v, %v", e, err)
			}
		}
		kit.WantSchedule(t, web, "a.test", "12h0m0s /robots.txt, 13h0m0s /robots.txt, 22h0m0s /map.xml")
	})
}

// TestFrontierWhileClosed checks that at most one page of a closed host waits in memory, also after
// the host has closed while it was crawled.
func TestFrontierWhileClosed(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(30, "User-agent: *\nCrawl-delay: 60\n")}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		c := startAt(t, web, 12*time.Hour, collyrobots.CrawlHours("13:00", "13:10", time.UTC), collyrobots.Frontier(store))
		for i := range 30 {
			kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
			synctest.Wait()
		}
		waits := func(memory, disk int) {
			t.Helper()
			s := c.Robots.Stats()
			h := s.Hosts[0]
			if h.Waiting > memory || h.Waiting+h.OnDisk != memory+disk || h.Source != report.SourceHours {
				t.Errorf("%v: %d pages wait in memory, %d on disk (%s), want %d, %d", time.Now(), h.Waiting, h.OnDisk, h.Source, memory, disk)
			}
			kit.Survives(t, s)
		}
		time.Sleep(30 * time.Minute)
		waits(1, 29)
		// Ten pages take their turns from 13:00 to 13:09, and robots.txt takes one on each later
		// day.
		if got, want := c.Robots.Stats().Hosts[0].TimeLeft(time.Now()), 48*time.Hour+39*time.Minute; got != want {
			t.Errorf("%v left, want %v", got, want)
		}
		time.Sleep(2 * time.Hour)
		waits(1, 19)
		c.Wait()
		if got := len(web.Log("a.test")); got != 30+4 {
			t.Errorf("%d requests, want 34", got)
		}
		for _, r := range web.Log("a.test") {
			if r.URI != "/robots.txt" && (r.Time.Hour() != 13 || r.Time.Minute() >= 10) {
				t.Errorf("%s was sent at %v", r.URI, r.Time)
			}
		}
	})
}

// TestClosedHostHoldsNoLease checks that a page that waits for the hours of its process keeps no
// other process from the host.
func TestClosedHostHoldsNoLease(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(5, "User-agent: *\nCrawl-delay: 60\n")}, func(t *testing.T, web *robotstest.Web) {
		p := kit.Shared(t)
		day := startAt(t, web, 12*time.Hour, collyrobots.SharedPace(p))
		night := kit.Start(t, web, kit.Async, collyrobots.SharedPace(p), nights)
		night.Visit("http://a.test/0")
		time.Sleep(10 * time.Minute)
		p.Mu.Lock()
		if p.Out != 0 {
			t.Errorf("%d leases are held while the host is closed", p.Out)
		}
		p.Mu.Unlock()
		day.Visit("http://a.test/1")
		day.Visit("http://a.test/2")
		day.Wait()
		night.Wait()
		log := web.Log("a.test")
		if got := log[len(log)-1]; got.URI != "/0" || got.Elapsed != 22*time.Hour {
			t.Errorf("the last request was %s after %v", got.URI, got.Elapsed)
		}
		if got := log[len(log)-2]; got.Elapsed > 12*time.Hour+15*time.Minute {
			t.Errorf("%s was sent after %v", got.URI, got.Elapsed)
		}
	})
}

// TestWaitForHoursEnds checks what ends the wait of requests of collectors, of http.Clients and of
// Acquire.
func TestWaitForHoursEnds(t *testing.T) {
	cause := errors.New("no more time")
	requests := map[string]func(ctx context.Context, web *robotstest.Web, p *collyrobots.Plugin) error{
		"collector": func(ctx context.Context, web *robotstest.Web, p *collyrobots.Plugin) error {
			c := colly.NewCollector(colly.StdlibContext(ctx), colly.UserAgent("ExampleBot/1.0"))
			c.WithTransport(web.Transport())
			if err := p.Attach(c); err != nil {
				return err
			}
			return c.Visit("http://a.test/0")
		},
		"transport": func(ctx context.Context, web *robotstest.Web, p *collyrobots.Plugin) error {
			client := &http.Client{Transport: p.Transport(web.Transport())}
			req, err := http.NewRequestWithContext(ctx, "GET", "http://a.test/0", nil)
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		},
		"acquire": func(ctx context.Context, _ *robotstest.Web, p *collyrobots.Plugin) error {
			req, err := http.NewRequest("GET", "http://a.test/0", nil)
			if err != nil {
				return err
			}
			turn, err := p.Acquire(ctx, req)
			turn.End()
			return err
		},
	}
	for name, request := range requests {
		for _, end := range []string{"context", "Close", "opening"} {
			t.Run(name+" "+end, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
					time.Sleep(12 * time.Hour)
					p, err := collyrobots.New(nights, collyrobots.HTTPClient(&http.Client{Transport: web.Transport()}))
					kit.Must(t, err)
					defer p.Close()
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					want := map[string]error{"context": cause, "Close": collyrobots.ErrClosed}[end]
					at := map[string]time.Duration{"context": 13 * time.Hour, "Close": 13 * time.Hour, "opening": 22 * time.Hour}[end]
					go func() {
						time.Sleep(time.Hour)
						switch end {
						case "context":
							cancel(cause)
						case "Close":
							p.Close()
						}
					}()
					began := time.Now().Add(-12 * time.Hour)
					if err := request(ctx, web, p); !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
					if got := time.Since(began); got != at {
						t.Errorf("the request returned after %v, want %v", got, at)
					}
				})
			})
		}
	}
}

// TestClosedHostReports checks what Check, Stats, events and the log say about a closed host.
func TestClosedHostReports(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 60\n")}, func(t *testing.T, web *robotstest.Web) {
		midnight := time.Now()
		heard := kit.Hear(report.EventWaiting, report.EventStarted)
		c := startAt(t, web, 12*time.Hour, nights, heard.On())
		c.Visit("http://a.test/0")
		synctest.Wait()
		c.Visit("http://a.test/1")
		synctest.Wait()
		d, err := c.Robots.Check(t.Context(), "http://a.test/x")
		if opens := midnight.Add(22 * time.Hour); err != nil || !d.Allowed || !d.Opens.Equal(opens) {
			t.Errorf("%+v, %v", d, err)
		}
		kit.Survives(t, d)
		h := c.Robots.Stats().Hosts[0]
		if opens := midnight.Add(22 * time.Hour); h.Source != report.SourceHours || !h.NextStart.Equal(opens) || !h.Opens.Equal(opens) || !h.Closes.IsZero() {
			t.Errorf("%+v", h)
		}
		if got := h.TimeLeft(time.Now()); got != 10*time.Hour+time.Minute || !h.LastStart.Equal(time.Now().Add(got)) {
			t.Errorf("%v left, the last page starts at %v", got, h.LastStart)
		}
		var events []string
		for _, e := range heard.Wait() {
			if e.Kind == report.EventWaiting {
				events = append(events, fmt.Sprintf("%s %d %s", e.Source, e.Count, e.Until.Sub(midnight)))
			}
		}
		if got := strings.Join(events, ", "); got != "hours 1 22h0m0s, hours 2 22h0m0s" {
			t.Errorf("events: %s", got)
		}
		c.Wait()
		h = c.Robots.Stats().Hosts[0]
		if closes := midnight.Add(30 * time.Hour); !h.Closes.Equal(closes) || !h.Opens.IsZero() || !h.LastStart.IsZero() || h.Source != report.SourceCrawlDelay {
			t.Errorf("%+v", h)
		}
		d, err = c.Robots.Check(t.Context(), "http://a.test/x")
		if err != nil || !d.Opens.IsZero() {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// TestClosedHostLog checks that the log says once why pages wait.
func TestClosedHostLog(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(2, kit.NoDenys), "b.test": robotstest.Pages(2, kit.NoDenys)}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		log := new(strings.Builder)
		c := startAt(t, web, 12*time.Hour, nights, collyrobots.Logger(slog.New(slog.NewTextHandler(&kit.LockedWriter{W: log}, nil))))
		for _, host := range []string{"a", "b"} {
			kit.VisitPages(c, host+".test", 1)
		}
		c.Wait()
		if got := strings.Count(log.String(), "because of CrawlHours"); got != 1 || !strings.Contains(log.String(), "option=CrawlHours") {
			t.Errorf("the log mentions CrawlHours %d times:\n%s", got, log)
		}
	})
}

// TestLimitRuleAtClosingTime checks that pages that have had their turn, but wait for a slot of a
// LimitRule when the host closes, are not sent before it opens, and are not lost.
func TestLimitRuleAtClosingTime(t *testing.T) {
	site := pagesAfter(6, kit.NoDenys, 10*time.Second)
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := startAt(t, web, 6*time.Hour-15*time.Second, nights)
		kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 1})
		c.SetRequestTimeout(time.Minute)
		for i := range 6 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			synctest.Wait()
		}
		c.Wait()
		count := 0
		for _, r := range web.Log("a.test") {
			if r.Time.Hour() >= 6 && r.Time.Hour() < 22 {
				t.Errorf("%s was sent at %v", r.URI, r.Time)
			}
			count++
		}
		if count != 7 || len(c.Pages) != 6 {
			t.Errorf("%d requests and %d pages, want 7 and 6", count, len(c.Pages))
		}
	})
}
