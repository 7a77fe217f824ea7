package operators

import (
	"fmt"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestJitterOnTheWire checks the gaps that the server sees, those in the events, and the smallest in the
// statistics. The share is random, so each gap has bounds. Package pace tests exact gaps.
func TestJitterOnTheWire(t *testing.T) {
	const s = time.Second
	crawl := "User-agent: *\nCrawl-delay: 2\n"
	for _, test := range []struct {
		name        string
		robots      string
		opts        []collyrobots.Option
		least, most time.Duration // of the gaps; if both are 0, there are no gaps
	}{
		{"MinDelay", kit.NoDenys, []collyrobots.Option{collyrobots.MinDelay(s), collyrobots.Jitter(0.5)}, s, 3 * s / 2},
		{"Crawl-delay", crawl, []collyrobots.Option{collyrobots.Jitter(1)}, 2 * s, 4 * s},
		{"Request-rate", "User-agent: *\nRequest-rate: 1/3\n", []collyrobots.Option{collyrobots.Jitter(1), collyrobots.HonorDelays(true)}, 3 * s, 6 * s},
		{"MaxCrawlDelay", crawl, []collyrobots.Option{collyrobots.MaxCrawlDelay(s), collyrobots.Jitter(1)}, s, 2 * s},
		{"PaceBy", crawl, []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain), collyrobots.Jitter(1)}, 2 * s, 4 * s},
		{"ForHosts", crawl, []collyrobots.Option{collyrobots.ForHosts("a.*", collyrobots.Jitter(0.5))}, 2 * s, 3 * s},
		{"ForHosts switches it off", crawl, []collyrobots.Option{collyrobots.Jitter(1), collyrobots.ForHosts("a.*", collyrobots.Jitter(0))}, 2 * s, 2 * s},
		{"the later option applies", crawl, []collyrobots.Option{collyrobots.Jitter(1), collyrobots.Jitter(0)}, 2 * s, 2 * s},
		{"Frontier", crawl, []collyrobots.Option{collyrobots.Jitter(1)}, 2 * s, 4 * s},
		{"SharedPace", crawl, []collyrobots.Option{collyrobots.Jitter(1)}, 2 * s, 4 * s},
		{"no delay", kit.NoDenys, []collyrobots.Option{collyrobots.Jitter(1)}, 0, 0},
		{"a dry run", crawl, []collyrobots.Option{collyrobots.Jitter(1), collyrobots.DryRun(true)}, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(8, test.robots)}, func(t *testing.T, web *robotstest.Web) {
				switch test.name { // the channels of a Pacer and a urlstore.Store must belong to the bubble
				case "SharedPace":
					test.opts = append(test.opts, collyrobots.SharedPace(kit.Shared(t)))
				case "Frontier":
					test.opts = append(test.opts, collyrobots.Frontier(kit.NewMemoryStore()))
				}
				var told []time.Duration
				test.opts = append(test.opts, collyrobots.OnEveryEvent(func(e *report.Event) {
					if e.Kind == report.EventStarted && e.Gap > 0 {
						told = append(told, e.Gap)
					}
				}))
				c := kit.Start(t, web, kit.Async, test.opts...)
				c.Impolite = test.most == 0 || test.name == "MaxCrawlDelay"
				for i := range 8 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				host := kit.HostStats(t, c.Robots, "a.test")
				kit.Must(t, c.Robots.Close())
				gaps := gapsOf(web.Log("a.test"))
				if len(gaps) != 8 {
					t.Fatalf("%d gaps, want 8", len(gaps))
				}
				wantJitter(t, gaps, test.least, test.most)
				if test.most == 0 {
					return
				}
				wantJitter(t, told, test.least, test.most)
				if host.MinGap < test.least || host.GapOverDelay < 1 || host.GapOverDelay != float64(host.MinGap)/float64(host.Delay) {
					t.Errorf("smallest gap %v, %v of the delay %v", host.MinGap, host.GapOverDelay, host.Delay)
				}
			})
		})
	}
}

// gapsOf returns the times between the requests in a log.
func gapsOf(log robotstest.Log) (gaps []time.Duration) {
	for i := 1; i < len(log); i++ {
		gaps = append(gaps, log[i].Time.Sub(log[i-1].Time))
	}
	return gaps
}

// wantJitter fails the test if a gap is not within bounds, or if all gaps are the same although the
// bounds differ.
func wantJitter(t *testing.T, gaps []time.Duration, least, most time.Duration) {
	t.Helper()
	differ := false
	for _, gap := range gaps {
		if gap < least || gap > most {
			t.Errorf("a gap of %v, want %v to %v", gap, least, most)
		}
		differ = differ || gap != gaps[0]
	}
	if differ != (least != most) {
		t.Errorf("gaps %v, want %v to %v", gaps, least, most)
	}
}
