package sitemaps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/pacer"
)

// unknownCharset answers with a page whose character set DetectCharset does not find. Colly then
// calls neither OnScraped nor OnError.
func unknownCharset(out http.ResponseWriter, _ *http.Request) {
	out.Header().Set("Content-Type", "text/html")
	io.WriteString(out, "\x80\x81")
}

var detecting = []colly.CollectorOption{colly.DetectCharset()}

// unread is a site for whose pages, except the last, Colly calls no hook at the end.
func unread(pages int) robotstest.Site {
	s := robotstest.Site{"/robots.txt": kit.NoDenys + "Sitemap: http://a.test/map.xml\n", "/": unknownCharset, "/last": robotstest.Page()}
	var locs []string
	for i := range pages {
		path := fmt.Sprint("/", i)
		s[path] = unknownCharset
		locs = append(locs, "http://a.test"+path)
	}
	s["/map.xml"] = robotstest.Sitemap(append(locs, "http://a.test/last")...)
	return s
}

// TestSitemapsAreReadWithoutLastHook checks that sitemaps are read, that Wait waits for them, and
// that no page blocks the feed, although Colly calls no hook at the end of the page that led to the
// site.
func TestSitemapsAreReadWithoutLastHook(t *testing.T) {
	for name, site := range map[string]robotstest.Site{
		"directly": unread(8),
		"after a redirect": func() robotstest.Site {
			s := unread(8)
			s["/"], s["/start"] = robotstest.Redirect("/start"), unknownCharset
			return s
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, append(detecting, kit.Async...), collyrobots.FollowSitemaps(collyrobots.Feed{Window: 3}))
				c.Visit("http://a.test/")
				c.Wait()
				if got := len(c.Pages); got != 1 || c.Pages[0] != "http://a.test/last" {
					t.Errorf("OnResponse got %v, want /last", c.Pages)
				}
				if s := c.Robots.Stats().Sitemaps; s.Fed != 9 || s.Files != 1 {
					t.Errorf("got stats %+v", s)
				}
			})
		})
	}
}

// TestSitemapsAreReadAfterVisit checks that a synchronous collector reads them when its Visit
// returns, or otherwise at the end of its next page.
func TestSitemapsAreReadAfterVisit(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": unread(2)}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, detecting, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		if err := c.Visit("http://a.test/"); err == nil {
			t.Error("Visit returned no error")
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt / /map.xml /0 /1 /last")
		web.Reset()
		plain := kit.Start(t, web, detecting, collyrobots.FollowSitemaps(collyrobots.Feed{})).Collector.Collector
		plain.Visit("http://a.test/")
		kit.WantURIs(t, web, "a.test", "/robots.txt /")
		plain.Visit("http://a.test/last")
		kit.WantURIs(t, web, "a.test", "/robots.txt / /last /map.xml /0 /1")
	})
}

// TestCloseReadsNoSitemaps checks that Close ends the wait for hooks, and that no sitemap is read
// then.
func TestCloseReadsNoSitemaps(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": unread(2)}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, append(detecting, kit.Async...), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.Visit("http://a.test/")
		time.Sleep(time.Second)
		closed := time.Now()
		kit.Must(t, c.Robots.Close())
		c.Wait()
		if took := time.Since(closed); took > 0 {
			t.Errorf("Wait took %v after Close, want no time", took)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt /")
	})
}

// TestVisitAfterCloseReadsNoSitemaps checks a synchronous collector whose plugin is closed during
// or before Visit.
func TestVisitAfterCloseReadsNoSitemaps(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nSitemap: http://a.test/map.xml\n", "/map.xml": robotstest.Sitemap("http://a.test/1"), "*": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.OnResponse(func(*colly.Response) { c.Robots.Close() })
		kit.Must(t, c.Visit("http://a.test/"))
		if err := c.Visit("http://a.test/2"); !errors.Is(err, collyrobots.ErrClosed) {
			t.Errorf("Visit after Close: got %v, want ErrClosed", err)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt /")
	})
}

// TestLateHookIsNotMissing checks that Wait waits for a page whose hooks are late, and no longer.
func TestLateHookIsNotMissing(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Site{
		"/robots.txt": kit.NoDenys + "Sitemap: http://a.test/map.xml\n", "/": robotstest.Page(), "/map.xml": robotstest.Sitemap("http://a.test/1"), "/1": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		kit.Limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 8, Delay: 25 * time.Second})
		began := time.Now()
		c.Visit("http://a.test/")
		c.Wait()
		if took := time.Since(began); took != 50*time.Second && took != 35*time.Second {
			t.Errorf("the crawl took %v", took)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt / /map.xml /1")
	})
}

// TestExchangeEndsAfterItsHook checks that Wait waits for no further hook if an exchange ends after
// its hook. This happens on the goroutine of the timer that has ended the exchange, while the Pacer
// is slow to release the host.
func TestExchangeEndsAfterItsHook(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\nSitemap: http://a.test/map.xml\n", "/map.xml": robotstest.Sitemap(), "/": func(out http.ResponseWriter, r *http.Request) {
			out.(http.Flusher).Flush()
			kit.Hang(out, r)
		}},
		"b.test": {"/robots.txt": "Sitemap: http://b.test/map.xml\n", "/map.xml": robotstest.Sitemap(), "/": kit.Takes(3*time.Second, "")},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		began := time.Now()
		c := kit.Start(t, web, kit.Async, collyrobots.SharedPace(slowRelease{Pacer: kit.Shared(t), host: "a.test", takes: 2 * time.Second}), collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.SetRequestTimeout(5 * time.Second)
		c.Visit("http://a.test/")
		time.Sleep(9 * time.Second) // the timer ended the exchange a second ago
		c.Visit("http://b.test/")
		c.Wait()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 3s /, 11s /map.xml")
		kit.WantSchedule(t, web, "b.test", "9s /robots.txt, 9s /, 12s /map.xml")
		if now := time.Since(began); now > 13*time.Second {
			t.Errorf("Wait returned after %v, want 12s", now)
		}
	})
}

// A slowRelease is a Pacer that releases one host slowly.
type slowRelease struct {
	pacer.Pacer
	host  string
	takes time.Duration
}

func (s slowRelease) Acquire(ctx context.Context, host string, delay time.Duration) (pacer.Lease, error) {
	lease, err := s.Pacer.Acquire(ctx, host, delay)
	if err != nil || host != s.host {
		return lease, err
	}
	return slowLease{lease, s.takes}, nil
}

type slowLease struct {
	pacer.Lease
	takes time.Duration
}

func (l slowLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	time.Sleep(l.takes)
	l.Lease.Release(sent, delay, notBefore)
}
