package denial

import (
	"errors"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// TestInvalidOptions checks that the error of New names each invalid option.
func TestInvalidOptions(t *testing.T) {
	cases := map[string]collyrobots.Option{
		"ProductToken":        collyrobots.ProductToken("ExampleBot", "Example Bot/1.0"),
		"MinDelay":            collyrobots.MinDelay(-1),
		"MaxCrawlDelay":       collyrobots.MaxCrawlDelay(-1),
		"SkipCrawlDelayAbove": collyrobots.SkipCrawlDelayAbove(-1),
		"FollowSitemaps":      collyrobots.FollowSitemaps(collyrobots.Feed{Window: -1}),
		"OnDenied":            collyrobots.OnDenied(nil),
		"OnEvent":             collyrobots.OnEvent(nil),
		"Store":               collyrobots.Store(nil),
		"Logger":              collyrobots.Logger(nil),
		"RobotsClient":        collyrobots.RobotsClient(nil),
		"SignRequests":        collyrobots.SignRequests(nil),
		"SharedPace":          collyrobots.SharedPace(nil),
		"ShardByHost":         collyrobots.ShardByHost(3, 3),
		"Option":              collyrobots.HostOption{},
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
	} {
		if _, err := collyrobots.New(o); err == nil {
			t.Error("an invalid option caused no error")
		}
	}
	if _, err := collyrobots.WithRobots(nil); err == nil {
		t.Error("WithRobots(nil) succeeds")
	}
}
