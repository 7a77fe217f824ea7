package operators

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A bubble begins at midnight in UTC, on 2000-01-01.

// nights is the option of most tests.
var nights = collyrobots.CrawlHours("22:00", "06:00", time.UTC)

// startAt starts a crawl at a time after midnight.
func startAt(t *testing.T, web *robotstest.Web, at time.Duration, opts ...collyrobots.Option) *kit.Crawl {
	t.Helper()
	time.Sleep(at)
	return kit.Start(t, web, kit.Async, opts...)
}

func TestCrawlHoursFaults(t *testing.T) {
	for _, test := range []struct {
		from, to string
		loc      *time.Location
		want     string
	}{
		{"22:00", "6:00", time.UTC, ""},
		{"00:00", "23:59", time.UTC, ""},
		{"25:00", "06:00", time.UTC, `"25:00" is not a time of day`},
		{"22:00", "24:00", time.UTC, `"24:00" is not a time of day`},
		{"22", "", time.UTC, `"22" is not a time of day; "" is not a time of day`},
		{"22:60", "22:00:30", time.UTC, `"22:60" is not a time of day; "22:00:30" is not a time of day`},
		{"-1:00", "10pm", time.UTC, `"-1:00" is not a time of day; "10pm" is not a time of day`},
		{"22:00", "22:00", time.UTC, "the window from 22:00 to 22:00 is empty"},
		{"22:00", "06:00", nil, "the location is nil"},
	} {
		_, err := collyrobots.New(collyrobots.CrawlHours(test.from, test.to, test.loc))
		var got []string
		for _, fault := range kit.FaultsOf(err) {
			reason, _, _ := strings.Cut(fault.Reason, ": ")
			got = append(got, reason)
			if fault.Option != "CrawlHours" {
				t.Errorf("the fault is of %s", fault.Option)
			}
		}
		if got := strings.Join(got, "; "); got != test.want {
			t.Errorf("%s to %s in %v: got faults %q, want %q", test.from, test.to, test.loc, got, test.want)
		}
	}
}

// TestClosedHost checks the requests to a host that is closed when the crawl begins at 12:00.
func TestClosedHost(t *testing.T) {
	robots := "User-agent: *\nCrawl-delay: 60\n"
	for _, test := range []struct {
		name string
		opts []collyrobots.Option
		want string
	}{
		{"robots.txt at once, pages at night", []collyrobots.Option{nights}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"a later option applies", []collyrobots.Option{nights, collyrobots.CrawlHours("12:30", "12:32", time.UTC)},
			"12h0m0s /robots.txt, 12h30m0s /0, 12h31m0s /1, 36h30m0s /robots.txt, 36h31m0s /2"},
		{"ForHosts", []collyrobots.Option{collyrobots.ForHosts("*.test", nights)}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"ForHosts for another host", []collyrobots.Option{collyrobots.ForHosts("b.test", nights)}, "12h0m0s /robots.txt, 12h1m0s /0, 12h2m0s /1, 12h3m0s /2"},
		{"ForHosts before the option", []collyrobots.Option{collyrobots.ForHosts("a.test", collyrobots.MaxInFlightPerHost(1)), nights}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"robots.txt is ignored", []collyrobots.Option{nights, kit.IgnoreRobots(), collyrobots.MinDelay(time.Second)}, "22h0m0s /0, 22h0m1s /1, 22h0m2s /2"},
		{"a dry run", []collyrobots.Option{nights, collyrobots.DryRun(true)}, "12h0m0s /robots.txt, 12h0m0s /0, 12h0m0s /1, 12h0m0s /2"},
		{"MaxInFlightPerHost", []collyrobots.Option{nights, collyrobots.MaxInFlightPerHost(2)}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"SharedPace", []collyrobots.Option{nights}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
		{"Frontier", []collyrobots.Option{nights}, "12h0m0s /robots.txt, 22h0m0s /0, 22h1m0s /1, 22h2m0s /2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, robots)}, func(t *testing.T, web *robotstest.Web) {
				switch test.name { // the channels of a Pacer and a urlstore.Store must belong to the bubble
				case "SharedPace":
					test.opts = append(test.opts, collyrobots.SharedPace(kit.Shared(t)))
				case "Frontier":
					test.opts = append(test.opts, collyrobots.Frontier(kit.NewMemoryStore()))
				}
				c := startAt(t, web, 12*time.Hour, test.opts...)
				c.Impolite = strings.Contains(test.name, "dry") || strings.Contains(test.name, "ignored")
				for i := range 3 {
					c.Visit(fmt.Sprint("http://a.test/", i))
					synctest.Wait()
				}
				c.Wait()
				kit.WantSchedule(t, web, "a.test", test.want)
				if len(c.Errs) > 0 {
					t.Errorf("got errors %v", c.Errs)
				}
			})
		})
	}
}

// TestSlowDialAtClosingTime checks that a request is not written after the host has closed,
// although its turn came before that.
func TestSlowDialAtClosingTime(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		c := startAt(t, web, 6*time.Hour-5*time.Second, nights)
		c.SetRequestTimeout(time.Minute)
		c.Transport.DisableKeepAlives = true
		dial := c.Transport.DialContext
		c.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(3 * time.Second)
			return dial(ctx, network, address)
		}
		c.Visit("http://a.test/0")
		c.Wait()
		kit.WantSchedule(t, web, "a.test", "5h59m58s /robots.txt, 22h0m0s /0")
	})
}
