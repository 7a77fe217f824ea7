package denial

import (
	"errors"
	"fmt"
	"net/http"
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

// ownFile is a robots.txt that an operator uses in place of that of a site.
const ownFile = "User-agent: OtherBot\nDisallow: /\n\nUser-agent: ExampleBot\nDisallow: /2\nCrawl-delay: 5\n"

// withOwnFile returns the option that replaces the robots.txt of a.test.
func withOwnFile(body string, opts ...collyrobots.HostOption) collyrobots.Option {
	return collyrobots.ForHosts("a.test", append([]collyrobots.HostOption{collyrobots.RobotsTxt([]byte(body))}, opts...)...)
}

// TestRobotsTxtOption checks that the operator's file decides in place of that of the site, which
// is not requested, and that other hosts are not affected.
func TestRobotsTxtOption(t *testing.T) { kit.ForEachClient(t, testRobotsTxtOption) }

func testRobotsTxtOption(t *testing.T, start kit.Starter) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(4, "User-agent: *\nDisallow: /"), "b.test": robotstest.Pages(3, "User-agent: *\nDisallow: /1\n")}
	sites["b.test"]["/0"] = robotstest.Redirect("http://a.test/3")
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, withOwnFile(ownFile))
		c.Impolite = true
		for _, path := range []string{"/1", "/2", "/3?q"} {
			c.Visit("http://a.test" + path)
			c.Visit("https://a.test" + path + "&https")
		}
		c.Visit("http://b.test/1")
		c.Visit("http://b.test/0")
		kit.WantSchedule(t, web, "a.test", "0s /1, 5s /1&https, 10s /3?q, 15s /3?q&https, 20s /3")
		kit.WantURIs(t, web, "b.test", "/robots.txt /0")
		kit.WantDenied(t, c, "http://a.test/2", report.ReasonRule, 5)
		kit.WantDenied(t, c, "http://b.test/1", report.ReasonRule, 2)
	})
}

// TestRobotsTxtAndIgnore checks that RobotsTxt and IgnoreRobots replace each other
// inside ForHosts, and that a dry run denies nothing.
func TestRobotsTxtAndIgnore(t *testing.T) {
	file := collyrobots.RobotsTxt([]byte(ownFile))
	ignore := kit.IgnoreRobots()
	for name, test := range map[string]struct {
		opts   []collyrobots.Option
		denied bool
	}{
		"RobotsTxt, inside": {[]collyrobots.Option{ignore, collyrobots.ForHosts("a.test", file)}, true},
		"ignore, inside":    {[]collyrobots.Option{collyrobots.ForHosts("a.test", ignore), collyrobots.ForHosts("b.test", file)}, false},
		"two patterns":      {[]collyrobots.Option{collyrobots.ForHosts("a.test", ignore), collyrobots.ForHosts("*", file)}, true},
		"the other order":   {[]collyrobots.Option{collyrobots.ForHosts("*", file), collyrobots.ForHosts("a.test", ignore)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := collyrobots.New(test.opts...)
			kit.Must(t, err)
			defer p.Close()
			c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
			kit.Must(t, p.Attach(c))
			d, err := p.Check(t.Context(), "http://a.test/2")
			if err != nil || d.Allowed == test.denied {
				t.Errorf("got %v (%v)", d, err)
			}
		})
	}
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.DryRun(true), withOwnFile(ownFile))
		c.Impolite = true
		c.Visit("http://a.test/2")
		kit.WantURIs(t, web, "a.test", "/2")
		kit.WantDenied(t, c, "http://a.test/2", report.ReasonRule, 5)
	})
}

// TestOverrideFaults checks the faults of the options, and the warning about a file that is not
// read as written.
func TestOverrideFaults(t *testing.T) {
	for _, test := range []struct {
		option collyrobots.Option
		want   string
	}{
		{collyrobots.RobotsTxt([]byte(ownFile)), "RobotsTxt: can only be used inside ForHosts or HostOptions"},
		{collyrobots.ForHosts("a.test", collyrobots.RobotsTxt(nil)), `ForHosts: "a.test": RobotsTxt: the file is nil; an empty file, []byte{}, allows everything`},
		{collyrobots.WhenUnreachable(0), "WhenUnreachable: 0 is not DenyAll or AllowAll"},
		{collyrobots.WhenForbidden(7), "WhenForbidden: 7 is not DenyAll or AllowAll"},
	} {
		_, err := collyrobots.New(test.option)
		fault := (*collyrobots.OptionError)(nil)
		if !errors.As(err, &fault) || err.Error() != "collyrobots: "+test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, "")})
	c := kit.Start(t, web, nil, withOwnFile("/etc/bot/robots.txt"))
	if text := c.Logged.String(); !strings.Contains(text, "RobotsTxt has lines that the dialect ignores") || !strings.Contains(text, "no key and colon, line ignored: /etc/bot/robots.txt") {
		t.Errorf("got log %q", text)
	}
	body := []byte("User-agent: *\nDisallow: /1\n")
	c = kit.Start(t, web, nil, collyrobots.ForHosts("a.test", collyrobots.RobotsTxt(body)))
	copy(body, strings.Repeat("#", len(body)))
	if d, err := c.Robots.Check(t.Context(), "http://a.test/1"); err != nil || d.Allowed || c.Logged.Len() > 0 {
		t.Errorf("got %v (%v), log %q; want a copy of the file", d, err, c.Logged)
	}
}

// TestWhenUnreachableKeepsBackOff checks that AllowAll does not shorten the back-off of a
// robots.txt that was answered with 503, and that a readable file applies as soon as it was read.
func TestWhenUnreachableKeepsBackOff(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	sites := robotstest.Sites{"a.test": robotstest.Pages(4, "")}
	sites["a.test"]["/robots.txt"] = busy
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		var changes []*report.RobotsChange
		c := kit.Start(t, web, nil, collyrobots.WhenUnreachable(collyrobots.AllowAll), collyrobots.OnEvent(func(e *collyrobots.Event) {
			if e.Change != nil && e.Option == "" {
				changes = append(changes, e.Change)
			}
		}))
		c.Impolite = true
		c.Visit("http://a.test/0") // waits until the end of the Retry-After, and requests robots.txt again then
		web.Set("a.test", "/robots.txt", "User-agent: *\nDisallow: /2\nCrawl-delay: 10")
		c.Visit("http://a.test/1")
		time.Sleep(10 * time.Minute)
		c.Visit("http://a.test/2")
		c.Visit("http://a.test/3")
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 2m0s /robots.txt, 4m0s /0, 4m1s /robots.txt, 4m11s /1, 14m11s /3")
		c.Robots.Close()
		if len(changes) != 1 || changes[0].Old.RobotsStatus != report.RobotsNone || changes[0].New.RobotsStatus != report.RobotsRules {
			t.Errorf("got changes %+v", changes)
		}
	})
}

// TestWhenUnreachableAfterCopy checks an outage after the file was read, also across processes that
// share a Store: AllowAll obeys the last copy, and DenyAll denies.
func TestWhenUnreachableAfterCopy(t *testing.T) {
	for access, want := range map[collyrobots.Access]string{
		collyrobots.AllowAll: "/robots.txt /1 /robots.txt /1",
		collyrobots.DenyAll:  "/robots.txt /1 /robots.txt",
	} {
		kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nDisallow: /2")}, func(t *testing.T, web *robotstest.Web) {
			s := store.NewMemory()
			for range 2 {
				c := kit.Start(t, web, nil, collyrobots.Store(s), collyrobots.WhenUnreachable(access))
				c.Impolite = true
				c.Visit("http://a.test/1")
				c.Visit("http://a.test/2")
				kit.Must(t, c.Robots.Close())
				web.Set("a.test", "/robots.txt", 500)
				time.Sleep(25 * time.Hour)
			}
			kit.WantURIs(t, web, "a.test", want)
		})
	}
}

// TestForbiddenIsFinal checks that a denial by WhenForbidden counts as final: pages that wait are
// denied at once when robots.txt is forbidden, a retry is not delayed, and a Frontier does not try
// the page again.
func TestForbiddenIsFinal(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(0, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.MinDelay(time.Hour), collyrobots.WhenForbidden(collyrobots.DenyAll))
		c.Impolite = true
		began := time.Now()
		for i := range 40 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		time.Sleep(20 * time.Hour)
		web.Set("a.test", "/robots.txt", 403) // read after 24 hours, in the turn of a page
		c.Wait()
		if took := time.Since(began); took != 25*time.Hour || len(c.Denied) != 17 {
			t.Errorf("%d pages were denied after %v, want 17 after 25 hours", len(c.Denied), took)
		}
	})
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": 403, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.WhenForbidden(collyrobots.DenyAll))
		began := time.Now()
		c.OnError(func(r *colly.Response, err error) { r.Request.Retry() })
		c.Visit("http://a.test/1")
		if time.Since(began) > 0 || len(web.Log("a.test")) != 1 {
			t.Errorf("the retries took %v and sent %v", time.Since(began), web.Log("a.test"))
		}
	})
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": 403, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		store := kit.NewMemoryStore()
		c := kit.Start(t, web, kit.Async, collyrobots.Frontier(store), collyrobots.WhenForbidden(collyrobots.DenyAll))
		kit.Must(t, c.Visit("http://a.test/0"))
		c.Wait()
		kit.WantStates(t, store, "denied: /0")
	})
}

// TestNeverCome checks that a file that denies everything keeps all requests away from a host,
// including those for its robots.txt and its sitemaps, and those that other sites lead to.
func TestNeverCome(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": robotstest.Pages(3, "Sitemap: http://a.test/map.xml\n"),
		"b.test": {"/robots.txt": "Sitemap: http://a.test/map.xml\n", "/0": robotstest.Page("http://a.test/1"), "/1": robotstest.Redirect("http://a.test/2")},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, withOwnFile("User-agent: *\nDisallow: /\n"), collyrobots.FollowSitemaps(collyrobots.Feed{WellKnown: true}))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		for _, u := range []string{"http://a.test/", "https://a.test/0", "http://b.test/0", "http://b.test/1"} {
			c.Visit(u)
		}
		c.Wait()
		for _, err := range c.Robots.Pages(t.Context(), collyrobots.Feed{}, "http://a.test/") {
			t.Error(err)
		}
		kit.WantURIs(t, web, "a.test", "")
		if got := len(web.Log("b.test")); got != 3 {
			t.Errorf("%d requests to b.test, want 3", got)
		}
	})
}

// TestUnreachableLogNamesOption checks that the log says which option has decided about a robots.txt
// that could not be read.
func TestUnreachableLogNamesOption(t *testing.T) {
	unreachable := []collyrobots.Option{collyrobots.WhenUnreachable(collyrobots.AllowAll)}
	forbidden := []collyrobots.Option{collyrobots.WhenForbidden(collyrobots.DenyAll)}
	for _, test := range []struct {
		status int
		opts   []collyrobots.Option
		want   string
	}{
		{http.StatusInternalServerError, nil, ""},
		{http.StatusInternalServerError, unreachable, "option=WhenUnreachable"},
		{http.StatusInternalServerError, forbidden, ""},
		{http.StatusForbidden, forbidden, "option=WhenForbidden"},
	} {
		kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": test.status, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil, test.opts...)
			c.Impolite = true
			c.Visit("http://a.test/")
			log := c.Logged.String()
			_, record, found := strings.Cut(log, "robots.txt could not be read")
			record, _, _ = strings.Cut(record, "\n")
			if !found || !strings.Contains(record, test.want) || test.want == "" && strings.Contains(record, "option=") {
				t.Errorf("status %d, want %q, the log is:\n%s", test.status, test.want, log)
			}
		})
	}
}
