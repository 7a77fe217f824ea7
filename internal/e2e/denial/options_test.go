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
