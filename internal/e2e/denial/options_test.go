package denial

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestInvalidOptions checks that the error of New names each invalid option.
func TestInvalidOptions(t *testing.T) {
	cases := map[string]collyrobots.Option{
		"ProductToken":   collyrobots.ProductToken("ExampleBot", "Example Bot/1.0"),
		"MinDelay":       collyrobots.MinDelay(-1),
		"MaxDelay":       collyrobots.MaxDelay(-1),
		"SkipAbove":      collyrobots.SkipAbove(-1),
		"FollowSitemaps": collyrobots.FollowSitemaps(collyrobots.Feed{Window: -1}),
		"OnDenied":       collyrobots.OnDenied(nil),
		"OnEvent":        collyrobots.OnEvent(nil),
		"Store":          collyrobots.Store(nil),
		"Logger":         collyrobots.Logger(nil),
		"HTTPClient":     collyrobots.HTTPClient(nil),
		"SignRequests":   collyrobots.SignRequests(nil),
		"SharedPace":     collyrobots.SharedPace(nil),
		"ShardByHost":    collyrobots.ShardByHost(3, 3),
		"Option":         {},
	}
	var all []collyrobots.Option
	for name, o := range cases {
		all = append(all, o)
		_, err := collyrobots.New(o)
		var fault *collyrobots.OptionError
		if !errors.As(err, &fault) || fault.Option != name || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := colly.NewCollector()
	_, err := collyrobots.WithRobots(c, all...)
	for name := range cases {
		if err == nil || !strings.Contains(err.Error(), "collyrobots: "+name+": ") {
			t.Errorf("several invalid options: %s is missing in %v", name, err)
		}
	}
	for _, o := range []collyrobots.Option{
		collyrobots.ProductToken(), collyrobots.ProductToken(""), collyrobots.ProductToken("*"),
		collyrobots.FollowSitemaps(collyrobots.Feed{MaxURLs: -1}),
		collyrobots.ShardByHost(0, 0), collyrobots.ShardByHost(-1, 0), collyrobots.ShardByHost(2, -1),
		collyrobots.ForHosts("a.test", collyrobots.ShardByHost(2, 1)),
	} {
		if _, err := collyrobots.New(o); err == nil {
			t.Error("an invalid option caused no error")
		}
	}
	if _, err := collyrobots.WithRobots(nil); err == nil {
		t.Error("WithRobots(nil) succeeds")
	}
}

// TestForHostsFaults checks that the error of New names each fault of ForHosts.
func TestForHostsFaults(t *testing.T) {
	for _, bad := range []collyrobots.Option{
		collyrobots.ForHosts("", collyrobots.MinDelay(1)),
		collyrobots.ForHosts("A.test", collyrobots.MinDelay(1)),
		collyrobots.ForHosts("http://a.test/"),
		collyrobots.ForHosts("[", collyrobots.MinDelay(1)),
		collyrobots.ForHosts("a.test", collyrobots.MinDelay(-1), collyrobots.DryRun(), collyrobots.Option{}),
	} {
		_, err := collyrobots.New(bad)
		var fault *collyrobots.OptionError
		if !errors.As(err, &fault) || fault.Option != "ForHosts" {
			t.Errorf("invalid ForHosts: got %v", err)
		}
	}
	_, err := collyrobots.New(collyrobots.ForHosts("a.test", collyrobots.MinDelay(-1), collyrobots.DryRun()))
	if s := fmt.Sprint(err); !strings.Contains(s, "MinDelay") || !strings.Contains(s, "DryRun") {
		t.Errorf("the error does not name every fault: %v", err)
	}
}

// TestMaxDelayAndSkipAbove checks both options together. A host whose crawl delay is longer than
// SkipAbove is skipped; otherwise MaxDelay caps the delay. In ForHosts they replace the options
// outside of it.
func TestMaxDelayAndSkipAbove(t *testing.T) {
	type options = []collyrobots.Option
	both := options{collyrobots.MaxDelay(10 * time.Second), collyrobots.SkipAbove(time.Minute)}
	reversed := options{collyrobots.SkipAbove(time.Minute), collyrobots.MaxDelay(10 * time.Second)}
	useless := options{collyrobots.MaxDelay(time.Hour), collyrobots.ForHosts("a.*", collyrobots.SkipAbove(time.Minute))}
	forHost := options{collyrobots.ForHosts("a.*", both...)}
	forOthers := options{collyrobots.ForHosts("b.*", both...)}
	patient := append(both, collyrobots.ForHosts("a.*", collyrobots.SkipAbove(time.Hour), collyrobots.MaxDelay(30*time.Second)))
	for _, tc := range []struct {
		name  string
		opts  options
		asked string
		delay time.Duration // the delay in force; 0 if the host is skipped
		says  string        // the log; "" if nothing is logged
	}{
		{"short", both, "5", 5 * time.Second, ""},
		{"as long as MaxDelay", both, "10", 10 * time.Second, ""},
		{"over MaxDelay", both, "11", 10 * time.Second, "longer than MaxDelay, capped"},
		{"as long as SkipAbove", both, "60", 10 * time.Second, "longer than MaxDelay, capped"},
		{"over SkipAbove", both, "61", 0, "longer than SkipAbove, host is skipped"},
		{"over SkipAbove, given first", reversed, "61", 0, "longer than SkipAbove, host is skipped"},
		{"under both, MaxDelay the longer", useless, "60", time.Minute, ""},
		{"between the two, MaxDelay the longer", useless, "61", 0, "longer than SkipAbove, host is skipped"},
		{"capped for some hosts", forHost, "60", 10 * time.Second, "longer than MaxDelay, capped"},
		{"skipped for some hosts", forHost, "61", 0, "longer than SkipAbove, host is skipped"},
		{"for other hosts", forOthers, "61", 61 * time.Second, ""},
		{"capped where the others are skipped", patient, "61", 30 * time.Second, "longer than MaxDelay, capped"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: "+tc.asked+"\n")}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, tc.opts...)
				c.Impolite = true
				c.Visit("http://a.test/0")
				c.Visit("http://a.test/1")
				want := fmt.Sprintf("0s /robots.txt, %v /0, %v /1", tc.delay, 2*tc.delay)
				if tc.delay == 0 {
					want = "0s /robots.txt"
					kit.WantDenied(t, c, "http://a.test/0", report.ReasonDelay, 0)
				}
				kit.WantSchedule(t, web, "a.test", want)
				said := strings.Count(c.Logged.String(), "crawl delay is longer than")
				if tc.says == "" && said != 0 || tc.says != "" && (said != 1 || !strings.Contains(c.Logged.String(), tc.says)) {
					t.Errorf("the log does not have %q once: %s", tc.says, c.Logged)
				}
			})
		})
	}
}

// TestSkippedHostCanBeRetried checks that OnDenied gets the pages of a skipped host, and that they
// can be retried after the host has shortened its crawl delay.
func TestSkippedHostCanBeRetried(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, "")}, func(t *testing.T, web *robotstest.Web) {
		web.Set("a.test", "/robots.txt", changing(time.Hour, "User-agent: *\nCrawl-delay: 3600\n", "User-agent: *\nCrawl-delay: 1\n"))
		var skipped []error
		c := kit.Start(t, web, nil, collyrobots.SkipAbove(time.Minute), collyrobots.OnDenied(func(r *colly.Request, err error) {
			skipped = append(skipped, err)
			time.Sleep(90 * time.Minute)
			r.Retry()
		}))
		c.Visit("http://a.test/0")
		kit.WantURIs(t, web, "a.test", "/robots.txt /robots.txt /0")
		denied := (*collyrobots.DisallowedError)(nil)
		if len(skipped) != 1 || !errors.As(skipped[0], &denied) || denied.Decision.Reason != report.ReasonDelay ||
			denied.Decision.CrawlDelay != time.Hour || !strings.Contains(skipped[0].Error(), "1h0m0s") {
			t.Errorf("OnDenied got %v", skipped)
		}
		if log := c.Logged.String(); strings.Count(log, "longer than SkipAbove, host is skipped") != 1 || strings.Contains(log, "MaxDelay") {
			t.Errorf("got log %s", log)
		}
	})
}
