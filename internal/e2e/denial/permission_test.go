package denial

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// permission returns the option IgnoreRobots with a permission that ends after d.
func permission(d time.Duration) collyrobots.HostOption {
	return collyrobots.IgnoreRobots(collyrobots.Permission{By: "Jane Doe", Reference: "contract 7", Until: time.Now().Add(d)})
}

// TestPermissionEnds checks that robots.txt is read and obeyed when the permission ends, whatever the pages
// wait for at that time.
func TestPermissionEnds(t *testing.T) {
	const uris, times = "/0 /1 /2 /robots.txt /3", "0s 10s 20s 30s 40s"
	for _, test := range []struct {
		name  string
		opts  func() []collyrobots.Option
		uris  string // "" if they depend on the order of goroutines
		times string // as uris
	}{
		{"MinDelay", func() []collyrobots.Option { return []collyrobots.Option{collyrobots.MinDelay(10 * time.Second)} }, uris, times},
		{"Frontier", func() []collyrobots.Option {
			return []collyrobots.Option{collyrobots.MinDelay(10 * time.Second), collyrobots.Frontier(kit.NewMemoryStore())}
		}, uris, times},
		{"SharedPace", func() []collyrobots.Option {
			return []collyrobots.Option{collyrobots.MinDelay(10 * time.Second), collyrobots.SharedPace(kit.Shared(t))}
		}, uris, times},
		{"MaxRate", func() []collyrobots.Option { return []collyrobots.Option{collyrobots.MaxRate(0.1, 1)} }, "", ""},
		{"CrawlHours", func() []collyrobots.Option {
			opens := time.Now().Add(time.Hour)
			return []collyrobots.Option{collyrobots.CrawlHours(opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"), time.UTC), collyrobots.MinDelay(10 * time.Second)}
		}, "/robots.txt /0 /1 /2 /3", "1h0m0s 1h0m10s 1h0m20s 1h0m30s 1h0m40s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := robotstest.Pages(5, "User-agent: *\nDisallow: /4\n")
			kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				start := time.Now()
				events := kit.Hear(report.EventStarted)
				c := kit.Start(t, web, kit.Async, append(test.opts(), permission(25*time.Second), events.On())...)
				c.Impolite = true // until the permission ends
				for i := range 5 {
					c.Visit(fmt.Sprint("http://a.test/", i))
					synctest.Wait()
				}
				c.Wait()
				var got []string
				for _, r := range web.Log("a.test") {
					got = append(got, r.Time.Sub(start).String())
				}
				if text := strings.Join(got, " "); test.times != "" && text != test.times {
					t.Errorf("requests at %s, want %s", text, test.times)
				}
				if test.uris != "" {
					kit.WantURIs(t, web, "a.test", test.uris)
				}
				kit.WantDenied(t, c, "http://a.test/4", report.ReasonRule, 2)
				for _, e := range events.Wait() {
					if e.Decision == nil {
						continue // robots.txt
					}
					covered := e.Time.Sub(start) < 25*time.Second
					if (e.Decision.Permission != nil) != covered || covered && e.Decision.Permission.Reference != "contract 7" {
						t.Errorf("%s after %v: permission %v", e.URL, e.Time.Sub(start), e.Decision.Permission)
					}
				}
			})
		})
	}
}

// TestPermissionOfClients checks the same for redirects, and for the requests of clients.
func TestPermissionOfClients(t *testing.T) {
	kit.ForEachClient(t, func(t *testing.T, start kit.Starter) {
		sites := robotstest.Sites{
			"a.test": {"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/": robotstest.Redirect("/closed"), "/closed": "x"},
			"b.test": {"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/": robotstest.Redirect("http://a.test/closed?from=b")},
		}
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil, collyrobots.MinDelay(10*time.Second), collyrobots.ForHosts("a.test", permission(15*time.Second)))
			c.Impolite = true
			c.Visit("http://a.test/")
			kit.WantURIs(t, web, "a.test", "/ /closed")
			c.Visit("http://b.test/")
			kit.WantURIs(t, web, "a.test", "/ /closed /robots.txt")
			kit.WantDenied(t, c, "http://b.test/", report.ReasonRule, 2)
			d, err := c.Robots.Check(t.Context(), "http://a.test/closed")
			if err != nil || d.Allowed || d.Permission != nil {
				t.Errorf("Check: %v, %v", d, err)
			}
		})
	})
}

// TestPermissionOfSitemaps checks the same for a sitemap. It takes the turn after that of robots.txt.
func TestPermissionOfSitemaps(t *testing.T) {
	for path, want := range map[string]string{"/x": "/ /robots.txt /sitemap.xml", "/sitemap.xml": "/ /robots.txt"} {
		sites := robotstest.Sites{
			"a.test": {"/robots.txt": "User-agent: *\nDisallow: " + path + "\n", "/": "x", "/sitemap.xml": robotstest.Sitemap("http://a.test/1")},
			"b.test": {"/robots.txt": "Sitemap: http://a.test/sitemap.xml\n"},
		}
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil, collyrobots.MinDelay(10*time.Second), collyrobots.ForHosts("a.test", permission(5*time.Second)))
			c.Visit("http://a.test/")
			for range c.Robots.Pages(t.Context(), collyrobots.Feed{Scope: collyrobots.ScopeAny}, "http://b.test/") {
			}
			kit.WantURIs(t, web, "a.test", want)
			for log := web.Log("a.test"); len(log) > 1; log = log[1:] {
				if gap := log[1].Time.Sub(log[0].Time); gap < 10*time.Second {
					t.Errorf("%s came %v after %s", log[1].URI, gap, log[0].URI)
				}
			}
		})
	}
}

// TestEndedPermission checks that New warns about a permission that has ended, and what a decision says about
// one that has not.
func TestEndedPermission(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, "User-agent: *\nDisallow: /\n")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.ForHosts("a.test", permission(0)))
		c.Visit("http://a.test/0")
		kit.WantURIs(t, web, "a.test", "/robots.txt")
		if log := c.Logged.String(); strings.Count(log, "the permission of IgnoreRobots has ended, so robots.txt is obeyed") != 1 {
			t.Errorf("the log has no warning: %s", log)
		}
		p, _ := kit.NewRobots(t, web, permission(time.Hour))
		d, err := p.Check(t.Context(), "http://a.test/0")
		kit.Must(t, err)
		want := "http://a.test/0 allowed: robots.txt is ignored, by permission of Jane Doe (contract 7) until 2000-01-01 01:00 UTC (rfc9309)"
		if d.String() != want || !d.Expires.Equal(d.Permission.Until) {
			t.Errorf("got  %v\nwant %s", d, want)
		}
	})
}
