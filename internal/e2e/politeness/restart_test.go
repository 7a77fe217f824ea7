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

// TestRestartKeepsDelay checks that a process that is started again keeps the delay of the hosts
// in its Store. It does not know when the last request was, so it waits for one delay after it was
// made. It waits once, and not for other hosts.
func TestRestartKeepsDelay(t *testing.T) {
	for name, tc := range map[string]struct {
		robots string
		opts   []collyrobots.Option
		later  time.Duration // between the last request and the restart
		want   string        // the schedule of both processes
	}{
		"at once":       {"User-agent: *\nCrawl-delay: 20\n", nil, 0, "0s /robots.txt, 20s /0, 40s /0, 1m0s /1"},
		"a while after": {"User-agent: *\nCrawl-delay: 20\n", nil, 5 * time.Second, "0s /robots.txt, 20s /0, 45s /0, 1m5s /1"},
		"MinDelay":      {kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(2 * time.Second)}, 0, "0s /robots.txt, 2s /0, 4s /0, 6s /1"},
		"no delay":      {kit.NoDenys, nil, 0, "0s /robots.txt, 0s /0, 0s /0, 0s /1"},
		"MaxDelay":      {"User-agent: *\nCrawl-delay: 20\n", []collyrobots.Option{collyrobots.MaxDelay(time.Second)}, 0, "0s /robots.txt, 1s /0, 2s /0, 3s /1"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, tc.robots), "b.test": robotstest.Pages(9, tc.robots)}, func(t *testing.T, web *robotstest.Web) {
				s := store.Memory()
				defer s.Close()
				opts := append([]collyrobots.Option{collyrobots.Store(s)}, tc.opts...)
				first := kit.Start(t, web, nil, opts...)
				first.Impolite = true // Verify does not know that MaxDelay caps the crawl delay
				kit.Must(t, first.Visit("http://a.test/0"))
				kit.Must(t, first.Robots.Close())
				time.Sleep(tc.later)
				again := kit.Start(t, web, nil, opts...)
				again.Impolite = true
				began := time.Now()
				if _, err := again.Robots.Check(t.Context(), "http://b.test/"); err != nil || time.Since(began) > time.Second {
					t.Errorf("Check for a host without requests took %v, %v, want no waiting", time.Since(began), err)
				}
				kit.Must(t, again.Visit("http://a.test/0"))
				kit.Must(t, again.Visit("http://a.test/1"))
				kit.WantSchedule(t, web, "a.test", tc.want)
			})
		})
	}
}

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
				s := store.Memory()
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

// TestRestartKeepsPace checks what else a process that is started again knows about a host.
func TestRestartKeepsPace(t *testing.T) {
	throttled := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	for name, tc := range map[string]struct {
		opt  collyrobots.Option
		want string
	}{
		"Retry-After":   {collyrobots.MinDelay(time.Second), "0s /robots.txt, 1s /busy, 1m31s /0, 1m32s /1"},
		"no robots.txt": {collyrobots.IgnoreRobotsWithPermission(), "0s /busy, 1m30s /0, 1m31s /1"},
		"own file":      {collyrobots.ForHosts("a.test", collyrobots.RobotsTxt([]byte("User-agent: *\nCrawl-delay: 5"))), "0s /busy, 1m30s /0, 1m35s /1"},
	} {
		t.Run(name, func(t *testing.T) {
			site := robotstest.Pages(9, kit.NoDenys)
			site["/busy"] = http.HandlerFunc(throttled)
			kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				s := store.Memory()
				defer s.Close()
				first := kit.Start(t, web, nil, collyrobots.Store(s), tc.opt)
				first.Impolite = true // Verify reads the robots.txt of the site
				first.Visit("http://a.test/busy")
				kit.Must(t, first.Robots.Close())
				again := kit.Start(t, web, nil, collyrobots.Store(s), tc.opt)
				again.Impolite = true
				kit.Must(t, again.Visit("http://a.test/0"))
				kit.Must(t, again.Visit("http://a.test/1"))
				kit.WantSchedule(t, web, "a.test", tc.want)
			})
		})
	}
}

// TestRestartKeepsDelayOfOtherScheme checks that the robots.txt under https waits for the crawl delay
// of the one under http, which an earlier process has read.
func TestRestartKeepsDelayOfOtherScheme(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 20\n")}, func(t *testing.T, web *robotstest.Web) {
		s := store.Memory()
		defer s.Close()
		for _, page := range []string{"http://a.test/0", "https://a.test/1"} {
			c := kit.Start(t, web, nil, collyrobots.Store(s))
			kit.Must(t, c.Visit(page))
			kit.Must(t, c.Robots.Close())
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 20s /0, 40s /robots.txt, 1m0s /1")
	})
}
