package frontier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestEnded checks why hosts ended, while a crawl runs and afterwards.
func TestEnded(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"done.test":    robotstest.Pages(3, kit.NoDenys),
		"denied.test":  robotstest.Pages(3, "User-agent: *\nDisallow: /"),
		"budget.test":  robotstest.Pages(3, kit.NoDenys),
		"refused.test": {"/robots.txt": kit.NoDenys, "*": http.StatusForbidden},
		"slow.test":    robotstest.Pages(3, "User-agent: *\nCrawl-delay: 100\n"),
		"hangs.test":   {"/robots.txt": kit.NoDenys, "*": http.HandlerFunc(kit.Hang)},
	}, func(t *testing.T, web *robotstest.Web) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := kit.Start(t, web, []colly.CollectorOption{colly.Async(), colly.StdlibContext(ctx)}, collyrobots.StopAfterRefusals(1), collyrobots.ForHosts("budget.test", collyrobots.MaxPagesPerHost(2)))
		c.SetRequestTimeout(time.Hour)
		if s := c.Robots.Stats(); s.Ended != nil {
			t.Errorf("a crawl that has not begun: %v", s.Ended)
		}
		for _, host := range []string{"done", "denied", "budget", "refused", "slow", "hangs"} {
			for i := range 3 {
				c.Visit(fmt.Sprintf("http://%s.test/%d", host, i))
				synctest.Wait()
			}
		}
		endings := func() map[string]report.Ending {
			all := make(map[string]report.Ending)
			for _, s := range c.Robots.Stats().Hosts {
				all[s.Host] = s.Ended
			}
			return all
		}
		want := map[string]report.Ending{
			"done.test": "done", "denied.test": "done", "budget.test": "budget", "refused.test": "refused", "slow.test": "", "hangs.test": "",
		}
		if got := endings(); !reflect.DeepEqual(got, want) {
			t.Errorf("while the crawl runs: %v, want %v", got, want)
		}
		cancel(errors.New("enough"))
		c.Wait()
		want["slow.test"] = "canceled"
		want["hangs.test"] = "canceled"
		if got := endings(); !reflect.DeepEqual(got, want) {
			t.Errorf("afterwards: %v, want %v", got, want)
		}
		s := c.Robots.Stats()
		counts := map[report.Ending]int{"done": 2, "budget": 1, "refused": 1, "canceled": 2}
		if !reflect.DeepEqual(s.Ended, counts) {
			t.Errorf("%v, want %v", s.Ended, counts)
		}
		encoded, err := json.Marshal(s)
		kit.Must(t, err)
		var back collyrobots.Stats
		kit.Must(t, json.Unmarshal(encoded, &back))
		if !reflect.DeepEqual(back.Ended, counts) || back.Totals.Refusals != 1 {
			t.Errorf("in JSON: %s", encoded)
		}
	})
}

// TestEndedByClose checks the endings after Close, with and without a urlstore.Store.
func TestEndedByClose(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"done.test": robotstest.Pages(3, kit.NoDenys),
		"slow.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 100\n"),
	}, func(t *testing.T, web *robotstest.Web) {
		for name, options := range map[string][]collyrobots.Option{"plain": nil, "Frontier": {collyrobots.Frontier(kit.NewMemoryStore())}} {
			c := kit.Start(t, web, kit.Async, options...)
			for _, host := range []string{"done", "slow"} {
				for i := range 9 {
					c.Visit(fmt.Sprintf("http://%s.test/%d", host, i))
				}
			}
			time.Sleep(10 * time.Second)
			if s := kit.HostStats(t, c.Robots, "slow.test"); s.Ended != "" {
				t.Errorf("%s: slow.test has ended: %q", name, s.Ended)
			}
			before := c.Robots.Stats()
			if !before.ClosedAt.IsZero() || before.NotSent != nil {
				t.Errorf("%s: before Close: closed at %v, not sent %v", name, before.ClosedAt, before.NotSent)
			}
			at := time.Now()
			kit.Must(t, c.Robots.Close())
			c.Wait()
			time.Sleep(time.Second)
			kit.Must(t, c.Robots.Close())
			after := c.Robots.Stats()
			if !after.ClosedAt.Equal(at) {
				t.Errorf("%s: closed at %v, want %v", name, after.ClosedAt, at)
			}
			if want := map[report.Ending]int{"closed": before.Totals.Waiting}; !reflect.DeepEqual(after.NotSent, want) {
				t.Errorf("%s: not sent: %v, want %v", name, after.NotSent, want)
			}
			if done, slow := kit.HostStats(t, c.Robots, "done.test").Ended, kit.HostStats(t, c.Robots, "slow.test").Ended; done != "done" || slow != "closed" {
				t.Errorf("%s: %q, %q, want done and closed", name, done, slow)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestEndedByLimitWithFrontier checks the endings of hosts whose pages are in a urlstore.Store because of
// a limit: after the crawl, when it was canceled, and after Close.
func TestEndedByLimitWithFrontier(t *testing.T) {
	for name, end := range map[string]func(cancel func(), c *kit.Crawl){
		"done":   func(_ func(), c *kit.Crawl) { c.Wait() },
		"cancel": func(cancel func(), c *kit.Crawl) { time.Sleep(20 * time.Second); cancel(); c.Wait() },
		"Close":  func(_ func(), c *kit.Crawl) { time.Sleep(20 * time.Second); c.Robots.Close(); c.Wait() },
		"done and Close": func(_ func(), c *kit.Crawl) {
			c.Wait()
			c.Robots.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{
				"budget.test":  robotstest.Pages(4, "User-agent: *\nCrawl-delay: 2"),
				"refused.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2", "*": http.StatusForbidden},
				"slow.test":    robotstest.Pages(4, "User-agent: *\nCrawl-delay: 100"),
			}, func(t *testing.T, web *robotstest.Web) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := kit.Start(t, web, []colly.CollectorOption{colly.Async(), colly.StdlibContext(ctx)}, collyrobots.StopAfterRefusals(2),
					collyrobots.ForHosts("budget.test", collyrobots.MaxPagesPerHost(2)), collyrobots.Frontier(kit.NewMemoryStore()))
				for _, host := range []string{"budget", "refused", "slow"} {
					for i := range 4 {
						c.Visit(fmt.Sprintf("http://%s.test/%d", host, i))
					}
				}
				end(cancel, c)
				synctest.Wait()
				want := map[string]report.Ending{"budget.test": "budget", "refused.test": "refused", "slow.test": "done"}
				switch name {
				case "cancel":
					want["slow.test"] = "canceled"
				case "Close":
					want["slow.test"] = "closed"
				}
				for host, ending := range want {
					if s := kit.HostStats(t, c.Robots, host); s.Ended != ending || (s.OnDisk > 0) != (ending != "done") {
						t.Errorf("%s: %q with %d pages on disk, want %q", host, s.Ended, s.OnDisk, ending)
					}
				}
			})
		})
	}
}
