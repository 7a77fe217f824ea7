package denial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// TestRobotsTxtRequestHasNoCredentials checks that robots.txt is fetched once, with the user agent
// and without the other headers and cookies of the collector.
func TestRobotsTxtRequestHasNoCredentials(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(30, kit.NoDenys)})
	c := kit.Start(t, web, kit.Async)
	c.Headers = &http.Header{"Authorization": {"Bearer secret"}, "X-Mine": {"1"}}
	c.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: "secret"}})
	for i := range 30 {
		c.Visit(fmt.Sprintf("http://a.test/%d", i))
	}
	c.Wait()
	if n := strings.Count(kit.URIsOf(web.Log("a.test")), "/robots.txt"); n != 1 || len(web.Log("a.test")) != 31 {
		t.Fatalf("%d fetches of robots.txt in %d requests, want 1 in 31", n, len(web.Log("a.test")))
	}
	for _, r := range web.Log("a.test") {
		private := r.Header.Get("Authorization") + r.Header.Get("X-Mine") + r.Header.Get("Cookie")
		if r.URI == "/robots.txt" && (private != "" || r.Header.Get("User-Agent") != "ExampleBot/1.0") {
			t.Errorf("robots.txt was requested with header %v", r.Header)
		}
		if r.URI != "/robots.txt" && private == "" {
			t.Errorf("%s was requested without the collector's headers", r.URI)
		}
	}
}

// TestRobotsTxtIgnoresAllowedDomains checks that AllowedDomains and MaxRequests do not apply to
// robots.txt.
func TestRobotsTxtIgnoresAllowedDomains(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{
		"a.test":   {"/robots.txt": robotstest.Redirect("http://cdn.test/robots.txt"), "/": robotstest.Page("/x", "/y"), "/x": robotstest.Page(), "/y": robotstest.Page()},
		"cdn.test": {"/robots.txt": "User-agent: *\nDisallow: /x"},
	})
	c := kit.Start(t, web, []colly.CollectorOption{colly.AllowedDomains("a.test"), colly.MaxRequests(3)}).Follow()
	c.Visit("http://a.test/")
	kit.WantURIs(t, web, "a.test", "/robots.txt / /y")
}

// TestRobotsTxtIgnoresFilters checks that AllowedDomains and the URL filters do not apply to the
// redirects of a robots.txt, because they are for pages. Only DisallowedDomains applies: see
// TestForbiddenDomains.
func TestRobotsTxtIgnoresFilters(t *testing.T) {
	for name, set := range map[string]colly.CollectorOption{
		"AllowedDomains":       colly.AllowedDomains("a.test"),
		"URLFilters":           colly.URLFilters(regexp.MustCompile(`^http://a\.test/\d?$`)),
		"DisallowedURLFilters": colly.DisallowedURLFilters(regexp.MustCompile(`robots|cdn`)),
	} {
		t.Run(name, func(t *testing.T) {
			a := robotstest.Pages(3, "")
			a["/robots.txt"] = robotstest.Redirect("https://cdn.test/a-robots")
			kit.InBubble(t, robotstest.Sites{"a.test": a, "cdn.test": {
				"/a-robots": robotstest.Redirect("/b-robots"), "/b-robots": "User-agent: *\nCrawl-delay: 1\nDisallow: /1"},
			}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, []colly.CollectorOption{set}).Follow()
				c.Visit("http://a.test/")
				kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /, 2s /0, 3s /2")
				kit.WantURIs(t, web, "cdn.test", "/a-robots /b-robots")
			})
		})
	}
}

// TestStoreAvoidsFetch checks that a robots.txt in the store is not fetched again, under any
// dialect.
func TestStoreAvoidsFetch(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, "User-agent: *\nDisallow: /1")})
	shared := store.Memory()
	defer shared.Close()
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc()} {
		c := kit.Start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()}, collyrobots.Store(shared), collyrobots.Dialect(d)).Follow()
		c.Visit("http://a.test/")
		c.Robots.Close()
	}
	kit.WantURIs(t, web, "a.test", "/robots.txt / /0 / /0 / /0")
}

// TestStoreHangs checks that the crawl continues without a store that does not answer, for example
// a database behind a broken network, that this is logged, and that the crawl ends.
func TestStoreHangs(t *testing.T) {
	site := robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /2\nSitemap: http://a.test/map.xml", "/map.xml": robotstest.Sitemap("http://a.test/1", "http://a.test/2"), "*": robotstest.Page()}
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.Store(hangingStore{}), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
		began := time.Now()
		kit.Must(t, c.Visit("http://a.test/0"))
		c.Wait()
		kit.Must(t, c.Robots.Close())
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("the crawl took %v", took)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /map.xml /1")
		for _, what := range []string{"action=reading", "action=updating", "sitemap record cannot be used", "sitemap record cannot be written"} {
			if !strings.Contains(c.Logged.String(), what) {
				t.Errorf("the log does not have %q:\n%s", what, c.Logged)
			}
		}
	})
}

// A hangingStore is a store whose calls return when their context ends.
type hangingStore struct{ store.Store }

func (hangingStore) Get(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hangingStore) Update(ctx context.Context, _ string, _ time.Duration, _ func([]byte) ([]byte, error)) error {
	<-ctx.Done()
	return ctx.Err()
}

// changing returns a handler for a robots.txt that changes once, when the time after has passed.
func changing(after time.Duration, before, then string) http.HandlerFunc {
	began := time.Now()
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		if time.Since(began) < after {
			fmt.Fprint(w, before)
			return
		}
		fmt.Fprint(w, then)
	}
}

// TestCloseWhileListenerRuns checks that a listener may call the plugin while Close waits for the
// listener.
func TestCloseWhileListenerRuns(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(1, "")}, func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/robots.txt", changing(time.Minute, kit.NoDenys, "User-agent: *\nDisallow: /\n"))
		var c *kit.Crawl
		result := make(chan error, 1)
		c = kit.Start(t, web, nil, kit.OnChange(func(report.RobotsChange) {
			time.Sleep(time.Second)
			_, err := c.Robots.Check(t.Context(), "http://a.test/")
			result <- err
		}))
		c.Visit("http://a.test/")
		time.Sleep(time.Hour)
		c.Visit("http://a.test/0")
		c.Robots.Close()
		if err := <-result; err != nil && !errors.Is(err, collyrobots.ErrClosed) {
			t.Error(err)
		}
	})
}
