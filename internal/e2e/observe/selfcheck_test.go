package observe

import (
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/extensions"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestSelfCheck checks that each mistake in the setup is logged once, and that nothing else is
// logged.
func TestSelfCheck(t *testing.T) {
	cases := []struct {
		name  string
		opts  []collyrobots.Option
		wrong func(c *kit.Crawl)
		says  string // part of the warning; empty if there is none
	}{
		{"no mistake", nil, func(*kit.Crawl) {}, ""},
		{"built-in check", nil, func(c *kit.Crawl) { c.IgnoreRobotsTxt = false }, "built-in"},
		{"random user agent", []collyrobots.Option{collyrobots.ProductToken("ExampleBot")}, func(c *kit.Crawl) { extensions.RandomUserAgent(c.Collector.Collector) }, "OnRequest callbacks were registered after Attach"},
		{"changing user agent", nil, func(c *kit.Crawl) { c.Visit("http://a.test/0"); c.UserAgent = "OtherBot/1.0" }, "user agent changes"},
		{"fixed token", []collyrobots.Option{collyrobots.ProductToken("ExampleBot")},
			func(c *kit.Crawl) { c.Visit("http://a.test/0"); c.UserAgent = "OtherBot/1.0" }, ""},
		{"token without a group", []collyrobots.Option{collyrobots.Dialect(dialect.Google()), collyrobots.ProductToken("MJ12bot")}, func(*kit.Crawl) {}, "MJ12bot"},
		{"user agent without a group", []collyrobots.Option{collyrobots.Dialect(dialect.Google())},
			func(c *kit.Crawl) { c.UserAgent = "MJ12bot/v1.4.8" }, "MJ12bot"},
		{"name with digits", nil, func(c *kit.Crawl) { c.UserAgent = "MJ12bot/v1.4.8" }, ""},
		{"unattached clone", nil, func(c *kit.Crawl) { c.Collector.Collector.Clone().Visit("http://a.test/1") }, "without Attach"},
		{"later callback", nil, func(c *kit.Crawl) { c.OnRequest(func(*colly.Request) {}) }, "after Attach"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys)})
			c := kit.Start(t, web, nil, tc.opts...)
			tc.wrong(c)
			for range 2 {
				c.Visit("http://a.test/")
			}
			if log := c.Logged.String(); tc.says == "" && log != "" || !strings.Contains(log, tc.says) || strings.Count(log, "\n") > 1 {
				t.Errorf("got log %q, want %q once", log, tc.says)
			}
		})
	}
}
