package denial

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// TestOnlyRobotsIsErrRobotsTxtBlocked denies a page for each Reason. The error that OnError gets is
// Colly's ErrRobotsTxtBlocked only if robots.txt is the cause.
func TestOnlyRobotsIsErrRobotsTxtBlocked(t *testing.T) {
	page := map[string]report.Reason{
		"http://rule.test/closed": report.ReasonRule,
		"http://unread.test/":     report.ReasonUnreachable,
		"http://down.test/":       report.ReasonSiteDown,
		"http://slow.test/":       report.ReasonDelay,
		"http://use.test/":        report.ReasonUsage,
		"http://link.test/no":     report.ReasonNofollow,
		"http://budget.test/1":    report.ReasonBudget,
		"http://refuse.test/1":    report.ReasonRefused,
	}
	byRobots := []report.Reason{report.ReasonRule, report.ReasonUnreachable, report.ReasonSiteDown}
	denies := map[report.Reason]bool{report.ReasonNoRule: false, report.ReasonNoRobots: false, report.ReasonIgnored: false}
	for _, reason := range page {
		denies[reason] = true
	}
	for _, reason := range report.Reasons() {
		if _, known := denies[reason]; !known {
			t.Errorf("no page is denied for the reason %q", reason)
		}
	}
	sites := robotstest.Sites{
		"rule.test":   {"/robots.txt": "User-agent: *\nDisallow: /closed"},
		"unread.test": {"/robots.txt": 503},
		"slow.test":   {"/robots.txt": "User-agent: *\nCrawl-delay: 100"},
		"use.test":    {"/robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /"},
		"link.test":   {"/": "<a rel=nofollow href=/no>"},
		"budget.test": robotstest.Pages(2, ""),
		"refuse.test": {"/0": 403},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.SkipCrawlDelayAbove(time.Minute), collyrobots.StopAfterRefusals(1), collyrobots.EnforceNofollow(true),
			collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true),
			collyrobots.ForHosts("budget.test", collyrobots.MaxPagesPerHost(1)),
			collyrobots.ForHosts("down.test", collyrobots.Dialect(dialect.CocCoc())))
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		for _, before := range []string{"http://link.test/", "http://budget.test/0", "http://refuse.test/0"} {
			c.Visit(before)
		}
		for url, reason := range page {
			if reason != report.ReasonNofollow {
				c.Visit(url)
			}
			denied := new(collyrobots.DeniedError)
			if err := c.Errs[url]; !errors.As(err, &denied) || denied.Decision.Reason != reason {
				t.Errorf("%s: OnError got %v, want the reason %q", url, err, reason)
			}
			want := slices.Contains(byRobots, reason)
			if blocked := errors.Is(c.Errs[url], colly.ErrRobotsTxtBlocked); blocked != want {
				t.Errorf("%s: the error %v is ErrRobotsTxtBlocked: %t, want %t", url, c.Errs[url], blocked, want)
			}
		}
	})
}
