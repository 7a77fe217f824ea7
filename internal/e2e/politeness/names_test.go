package politeness

import (
	"fmt"
	"log/slog"
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

// TestEachCollectorHasItsOwnName has two collectors with different names that share a plugin. Each
// must obey the group for its own name, and the host must get requests at the longer of the two
// delays.
func TestEachCollectorHasItsOwnName(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: OneBot\nDisallow: /one\nCrawl-delay: 1\n\nUser-agent: TwoBot\nDisallow: /two\nCrawl-delay: 10\n",
		"*":           robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		one := kit.Start(t, web, []colly.CollectorOption{colly.UserAgent("OneBot/1.0")})
		one.Impolite = true // when OneBot reads the file, the delay for TwoBot is not known
		two := one.Clone()
		two.UserAgent = "TwoBot/1.0"
		for i := range 4 {
			one.Visit("http://a.test/one")
			two.Visit("http://a.test/two")
			kit.Must(t, one.Visit(fmt.Sprint("http://a.test/two?", i)))
			kit.Must(t, two.Visit(fmt.Sprint("http://a.test/one?", i)))
		}
		log := web.Log("a.test")
		if got, want := kit.URIsOf(log), "/robots.txt /robots.txt /two?0 /one?0 /two?1 /one?1 /two?2 /one?2 /two?3 /one?3"; got != want {
			t.Errorf("requests to a.test: %s, want %s", got, want)
		}
		if gap := log[2:].MinGap(); gap < 10*time.Second {
			t.Errorf("%v between two requests, TwoBot asks for 10 s", gap)
		}
	})
}

// TestCollectorsWithTwoNamesAtTheSameTime checks the same if pages of one collector wait while
// pages of the other are checked.
func TestCollectorsWithTwoNamesAtTheSameTime(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: OneBot\nCrawl-delay: 1\n\nUser-agent: TwoBot\nCrawl-delay: 10\n", "*": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		one := kit.Start(t, web, append(kit.Async, colly.UserAgent("OneBot/1.0")))
		one.Impolite = true
		two := one.Clone()
		two.UserAgent = "TwoBot/1.0"
		for i := range 10 {
			two.Visit(fmt.Sprint("http://a.test/two?", i))
			one.Visit(fmt.Sprint("http://a.test/one?", i))
			synctest.Wait()
		}
		one.Wait()
		two.Wait()
		var last time.Time
		pages := 0
		for _, r := range web.Log("a.test") {
			if strings.HasPrefix(r.URI, "/two") {
				if gap := r.Time.Sub(last); !last.IsZero() && gap < 10*time.Second-time.Microsecond {
					t.Errorf("%v before %s, TwoBot asks for 10 s", gap, r.URI)
				}
			}
			if r.URI != "/robots.txt" {
				last = r.Time
				pages++
			}
		}
		// The second name requests the file again unless it comes before the first one has read it.
		if files := len(web.Log("a.test")) - pages; pages != 20 || files < 1 || files > 2 {
			t.Errorf("got %d pages and %d robots.txt, want 20 and 1 or 2", pages, files)
		}
	})
}

// TestCheckBeforeAttach checks that the user agent of Check before Attach is not taken for the name
// of the crawler.
func TestCheckBeforeAttach(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: ExampleBot\nDisallow: /x\n\nUser-agent: *\nDisallow:\n", "*": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		var robots *collyrobots.Plugin
		kit.Must(t, c.Robots.Close())
		robots, err := collyrobots.New(collyrobots.OnDenied(c.OnDenied), collyrobots.Logger(slog.New(slog.NewTextHandler(c.Logged, nil))), collyrobots.HTTPClient(&http.Client{Transport: web.Transport()}))
		kit.Must(t, err)
		defer robots.Close()
		if d, err := robots.Check(t.Context(), "http://a.test/y"); err != nil || !d.Allowed {
			t.Errorf("Check returned %v, %v", d, err)
		}
		other := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
		other.WithTransport(web.Transport())
		kit.Must(t, robots.Attach(other))
		other.Visit("http://a.test/x")
		kit.Must(t, other.Visit("http://a.test/y"))
		kit.WantDenied(t, c, "http://a.test/x", report.ReasonRule, 2)
		if d, err := robots.Check(t.Context(), "http://a.test/x"); err != nil || d.Allowed {
			t.Errorf("Check returned %v, %v, but the page was denied", d, err)
		}
		if strings.Contains(c.Logged.String(), "user agent changes") {
			t.Error("the user agent of Check was taken for the user agent of a page")
		}
	})
}
