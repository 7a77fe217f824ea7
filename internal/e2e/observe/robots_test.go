package observe

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

const shopRobots = "User-agent: ExampleBot\nCrawl-delay: 2\nDisallow: /cart\nUser-agent: *\nDisallow: /\nSitemap: /map.xml\n"

// tagged serves a robots.txt with an ETag. After its second request, the site is down.
func tagged(text string) http.HandlerFunc {
	requests := 0
	return func(w http.ResponseWriter, r *http.Request) {
		requests++
		if requests > 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, text)
	}
}

// robotsOf returns the result of Robots for the site a.test.
func robotsOf(t *testing.T, c *kit.Crawl) report.Robots {
	t.Helper()
	r, err := c.Robots.Robots(t.Context(), "http://a.test/p")
	kit.Must(t, err)
	return r
}

func TestRobots(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": shopRobots}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		began := time.Now()
		for range 2 {
			r := robotsOf(t, c)
			switch {
			case r.Authority != "http://a.test" || r.RobotsURL != "http://a.test/robots.txt":
				t.Errorf("got %q and %q", r.Authority, r.RobotsURL)
			case r.RobotsStatus != report.RobotsRules || r.Status != 200 || r.Err != nil || r.Option != "":
				t.Errorf("got %v, %d, %v and %q", r.RobotsStatus, r.Status, r.Err, r.Option)
			case string(r.Body) != shopRobots:
				t.Errorf("got the text %q", r.Body)
			case r.Dialect != dialect.RFC9309() || r.Token != "ExampleBot" || r.Group.Name() != "ExampleBot":
				t.Errorf("got %v, %q and %q", r.Dialect, r.Token, r.Group.Name())
			case r.CrawlDelay != 2*time.Second || r.Delay != 2*time.Second || strings.Join(r.Sitemaps, " ") != "/map.xml":
				t.Errorf("got %v, %v and %v", r.CrawlDelay, r.Delay, r.Sitemaps)
			case !r.Fetched.Equal(began) || !r.Expires.Equal(began.Add(24*time.Hour)):
				t.Errorf("got %v and %v", r.Fetched, r.Expires)
			case r.Group.Decide("/cart").Allowed || !r.Group.Decide("/p").Allowed || r.Rules.Group("OtherBot").Decide("/p").Allowed:
				t.Error("the rules are wrong")
			}
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt")
	})
}

// TestRobotsWithoutText checks that Robots fetches the file again if its text is not known, and that an
// outage then changes no decision.
func TestRobotsWithoutText(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": tagged(shopRobots)}}
	t.Run("fetched again, without a condition", func(t *testing.T) {
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil)
			c.Visit("http://a.test/cart")
			kit.WantDenied(t, c, "http://a.test/cart", report.ReasonRule, 3)
			for range 3 {
				if r := robotsOf(t, c); string(r.Body) != shopRobots || r.Status != 200 {
					t.Errorf("got status %d and %q", r.Status, r.Body)
				}
			}
			kit.WantURIs(t, web, "a.test", "/robots.txt /robots.txt")
		})
	})
	t.Run("in the store", func(t *testing.T) {
		kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": tagged(shopRobots)}}, func(t *testing.T, web *robotstest.Web) {
			kept := store.NewMemory()
			for range 2 {
				c := kit.Start(t, web, nil, collyrobots.Store(kept))
				c.Visit("http://a.test/cart")
				kit.WantDenied(t, c, "http://a.test/cart", report.ReasonRule, 3)
				if r := robotsOf(t, c); string(r.Body) != shopRobots {
					t.Errorf("got %q", r.Body)
				}
			}
			kit.WantURIs(t, web, "a.test", "/robots.txt")
		})
	})
	t.Run("site down", func(t *testing.T) {
		down := false
		file := func(w http.ResponseWriter, _ *http.Request) {
			if down {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			io.WriteString(w, shopRobots)
		}
		kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": http.HandlerFunc(file)}}, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil)
			c.Visit("http://a.test/cart")
			kit.WantDenied(t, c, "http://a.test/cart", report.ReasonRule, 3)
			down = true
			r := robotsOf(t, c)
			if r.RobotsStatus != report.RobotsRules || r.Body != nil || r.Rules != nil || r.Group.Decide("/cart").Allowed {
				t.Errorf("got %v, %q and %v", r.RobotsStatus, r.Body, r.Rules)
			}
			d, err := c.Robots.Check(t.Context(), "http://a.test/p")
			kit.Must(t, err)
			if !d.Allowed {
				t.Errorf("got %v", d)
			}
		})
	})
}

func TestRobotsOfReasons(t *testing.T) {
	for _, tc := range reasonCases {
		t.Run(tc.host, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{tc.host: {"/robots.txt": tc.robots}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, tc.opts...)
				c.Impolite = true // some options do not obey RFC 9309
				r, err := c.Robots.Robots(t.Context(), "http://"+tc.host+"/p")
				kit.Must(t, err)
				d, err := c.Robots.Check(t.Context(), "http://"+tc.host+"/p")
				kit.Must(t, err)
				if r.Status != d.Status || r.Token != d.Token || r.Group.Name() != d.Group || r.Option != d.Option || r.CrawlDelay != d.CrawlDelay || !r.Expires.Equal(d.Expires) {
					t.Errorf("got %+v, and the decision %+v", r, d)
				}
				text, isText := tc.robots.(string)
				if d.Reason == report.ReasonIgnored {
					isText = false
				}
				if (r.Rules != nil) != isText || isText && string(r.Body) != text {
					t.Errorf("got %q", r.Body)
				}
			})
		})
	}
}

func TestRobotsErrors(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": ""}})
	c := kit.Start(t, web, nil, collyrobots.ForHosts("given.test", collyrobots.RobotsTxt([]byte("User-agent: *\nDisallow: /x"))))
	for _, bad := range []string{"", "a.test/x", "mailto:a@a.test", "http://[::1", "http://", "javascript:0"} {
		if _, err := c.Robots.Robots(t.Context(), bad); err == nil {
			t.Errorf("Robots(%q) returned no error", bad)
		}
	}
	if r := robotsOf(t, c); r.Body == nil || len(r.Body) > 0 || r.Rules == nil {
		t.Errorf("the empty file has the text %q and the rules %v", r.Body, r.Rules)
	}
	r, err := c.Robots.Robots(t.Context(), "http://given.test/x")
	kit.Must(t, err)
	if r.Option != "RobotsTxt" || r.Group.Decide("/x").Allowed || string(r.Body) != "User-agent: *\nDisallow: /x" {
		t.Errorf("got %+v", r)
	}
	kit.Must(t, c.Robots.Close())
	if _, err := c.Robots.Robots(t.Context(), "http://a.test/"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("after Close, got %v", err)
	}
	if _, err := new(collyrobots.Plugin).Robots(t.Context(), "http://a.test/"); err == nil {
		t.Error("the zero Plugin returned no error")
	}
}
