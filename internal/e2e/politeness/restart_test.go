package politeness

import (
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// TestRestartKeepsDelayOfExpiredRecord checks that the crawl delay of an expired record applies to
// the request that fetches robots.txt again, and to each further attempt while that fails.
func TestRestartKeepsDelayOfExpiredRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		robots http.HandlerFunc // of the second process
		want   string
	}{
		"file is read": {
			robots: kit.RobotsFor(5*time.Minute, "User-agent: *\nCrawl-delay: 20\n"),
			want:   "0s /robots.txt, 20s /0, 10m40s /robots.txt, 11m0s /1",
		},
		"fetch fails": {
			robots: kit.Drop,
			want:   "0s /robots.txt, 20s /0, 10m40s /robots.txt, 11m0s /robots.txt, 11m20s /robots.txt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "")}, func(t *testing.T, web *robotstest.Web) {
				s := store.NewMemory()
				defer s.Close()
				web.Set("a.test", "/robots.txt", kit.RobotsFor(5*time.Minute, "User-agent: *\nCrawl-delay: 20\n"))
				first := kit.Start(t, web, nil, collyrobots.Store(s))
				kit.Must(t, first.Visit("http://a.test/0"))
				kit.Must(t, first.Robots.Close())
				time.Sleep(10 * time.Minute)
				web.Set("a.test", "/robots.txt", tc.robots)
				again := kit.Start(t, web, nil, collyrobots.Store(s))
				again.Visit("http://a.test/1")
				kit.WantSchedule(t, web, "a.test", tc.want)
			})
		})
	}
}

// TestRestartKeepsDelayOfOtherScheme checks that the robots.txt under https waits for the crawl delay
// of the one under http, which an earlier process has read.
func TestRestartKeepsDelayOfOtherScheme(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 20\n")}, func(t *testing.T, web *robotstest.Web) {
		s := store.NewMemory()
		defer s.Close()
		for _, page := range []string{"http://a.test/0", "https://a.test/1"} {
			c := kit.Start(t, web, nil, collyrobots.Store(s))
			kit.Must(t, c.Visit(page))
			kit.Must(t, c.Robots.Close())
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 20s /0, 40s /robots.txt, 1m0s /1")
	})
}
