package collyrobots_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// A process that is started again keeps the delay of hosts that it asked in its life before, as far
// as its Store knows them: it cannot know when that was, so it waits for one delay after it was
// made. It does so once, and nobody else waits.
func TestARestartKeepsTheDelay(t *testing.T) {
	for name, tc := range map[string]struct {
		robots string
		opts   []collyrobots.Option
		later  time.Duration // the restart after the last request
		want   string        // the schedule of all
	}{
		"at once":       {"User-agent: *\nCrawl-delay: 20\n", nil, 0, "0s /robots.txt, 20s /0, 40s /0, 1m0s /1"},
		"a while after": {"User-agent: *\nCrawl-delay: 20\n", nil, 5 * time.Second, "0s /robots.txt, 20s /0, 45s /0, 1m5s /1"},
		"MinDelay":      {noDenys, []collyrobots.Option{collyrobots.MinDelay(2 * time.Second)}, 0, "0s /robots.txt, 2s /0, 4s /0, 6s /1"},
		"no delay":      {noDenys, nil, 0, "0s /robots.txt, 0s /0, 0s /0, 0s /1"},
		"MaxDelay":      {"User-agent: *\nCrawl-delay: 20\n", []collyrobots.Option{collyrobots.MaxDelay(time.Second)}, 0, "0s /robots.txt, 1s /0, 2s /0, 3s /1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, tc.robots), "b.test": robotstest.Pages(9, tc.robots)}, func(t *testing.T, web *robotstest.Web) {
				s := store.Memory()
				defer s.Close()
				opts := append([]collyrobots.Option{collyrobots.Store(s)}, tc.opts...)
				first := start(t, web, nil, opts...)
				first.impolite = true // it is held against a Crawl-delay that MaxDelay cuts
				must(t, first.Visit("http://a.test/0"))
				must(t, first.robots.Close())
				time.Sleep(tc.later)
				again := start(t, web, nil, opts...)
				again.impolite = true
				began := time.Now()
				if _, err := again.robots.Check(t.Context(), "http://b.test/"); err != nil || time.Since(began) > time.Second {
					t.Errorf("a host that nobody has asked waits: %v, %v", time.Since(began), err)
				}
				must(t, again.Visit("http://a.test/0"))
				must(t, again.Visit("http://a.test/1"))
				wantSchedule(t, web, "a.test", tc.want)
			})
		})
	}
}

// So does the request for a robots.txt whose record has expired.
func TestARestartKeepsTheDelayToRobotsTxt(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, noDenys)}, func(t *testing.T, web *robotstest.Web) {
		s := store.Memory()
		defer s.Close()
		for range 2 {
			c := start(t, web, nil, collyrobots.Store(s), collyrobots.MinDelay(10*time.Second))
			must(t, c.Visit("http://a.test/0"))
			time.Sleep(24*time.Hour - 15*time.Second)
			must(t, c.Visit("http://a.test/1"))
			must(t, c.robots.Close())
			time.Sleep(6 * time.Second) // the record is good for a day
		}
		wantSchedule(t, web, "a.test", "0s /robots.txt, 10s /0, 23h59m55s /1, 24h0m11s /robots.txt, 24h0m21s /0, 48h0m6s /1")
	})
}

// The delay of a record that has expired holds too, for the request that reads robots.txt again and
// for each further attempt while that fails.
func TestARestartKeepsTheDelayOfAnExpiredRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		robots http.HandlerFunc // of the second process
		want   string
	}{
		"read again": {
			robots: robotsFor(5*time.Minute, "User-agent: *\nCrawl-delay: 20\n"),
			want:   "0s /robots.txt, 20s /0, 10m40s /robots.txt, 11m0s /1",
		},
		"no answer": {
			robots: drop,
			want:   "0s /robots.txt, 20s /0, 10m40s /robots.txt, 11m0s /robots.txt, 11m20s /robots.txt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "")}, func(t *testing.T, web *robotstest.Web) {
				s := store.Memory()
				defer s.Close()
				web.Set("a.test", "/robots.txt", robotsFor(5*time.Minute, "User-agent: *\nCrawl-delay: 20\n"))
				first := start(t, web, nil, collyrobots.Store(s))
				must(t, first.Visit("http://a.test/0"))
				must(t, first.robots.Close())
				time.Sleep(10 * time.Minute)
				web.Set("a.test", "/robots.txt", tc.robots)
				again := start(t, web, nil, collyrobots.Store(s))
				again.Visit("http://a.test/1")
				wantSchedule(t, web, "a.test", tc.want)
			})
		})
	}
}
