package collectors

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests of this file make typical mistakes of new users and check the errors and warnings.

func TestOptionsThatAreMostLikelyAMistake(t *testing.T) {
	type options = []collyrobots.Option
	future := time.Now().Add(24 * time.Hour)
	cases := []struct {
		name string
		opts options
		says []string // in the only log record; nil if nothing is logged
	}{
		{"a plain number", options{collyrobots.MinDelay(1)}, []string{"MinDelay is shorter than a millisecond", "delay=1ns"}},
		{"a plain number for one host", options{collyrobots.ForHosts("a.test", collyrobots.MinDelay(5))}, []string{"MinDelay is shorter", "delay=5ns"}},
		{"a millisecond", options{collyrobots.MinDelay(time.Millisecond)}, nil},
		{"no robots.txt for all hosts", options{kit.IgnoreRobots()}, []string{"IgnoreRobots applies to all hosts"}},
		{"no robots.txt for one host", options{collyrobots.ForHosts("a.test", kit.IgnoreRobots())}, nil},
		{"Since tomorrow", options{collyrobots.FollowSitemaps(collyrobots.Feed{Since: future})}, []string{"Feed.Since is in the future", "since=" + future.Format("2006-01-02")}},
		{"Since yesterday", options{collyrobots.FollowSitemaps(collyrobots.Feed{Since: future.Add(-48 * time.Hour)})}, nil},
		{"MinDelay longer than MaxCrawlDelay for one host", options{collyrobots.MaxCrawlDelay(time.Second), collyrobots.ForHosts("a.test", collyrobots.MinDelay(time.Minute))},
			[]string{"MinDelay is longer than MaxCrawlDelay", "delay=1m0s", "limit=1s"}},
		{"MinDelay equal to MaxCrawlDelay", options{collyrobots.MinDelay(time.Second), collyrobots.MaxCrawlDelay(time.Second)}, nil},
		{"MinDelay longer than SkipCrawlDelayAbove for one host", options{collyrobots.SkipCrawlDelayAbove(time.Second), collyrobots.ForHosts("a.test", collyrobots.MinDelay(time.Minute))},
			[]string{"MinDelay is longer than SkipCrawlDelayAbove", "delay=1m0s", "limit=1s"}},
		{"MinDelay equal to SkipCrawlDelayAbove", options{collyrobots.MinDelay(time.Second), collyrobots.SkipCrawlDelayAbove(time.Second)}, nil},
		{"MaxCrawlDelay longer than SkipCrawlDelayAbove for one host", options{collyrobots.SkipCrawlDelayAbove(time.Second), collyrobots.ForHosts("a.test", collyrobots.MaxCrawlDelay(time.Minute))},
			[]string{"MaxCrawlDelay is not shorter than SkipCrawlDelayAbove", "delay=1m0s", "limit=1s"}},
		{"MaxCrawlDelay shorter than SkipCrawlDelayAbove", options{collyrobots.MaxCrawlDelay(time.Second), collyrobots.SkipCrawlDelayAbove(time.Minute)}, nil},
		{"ForHosts without options", options{collyrobots.ForHosts("*.a.test")}, []string{"ForHosts has no options", "pattern=*.a.test"}},
		{"a shadow of the dialect in force", options{collyrobots.Dialect(dialect.Google()), collyrobots.Shadow(dialect.Google())}, []string{"Shadow names the dialect in force", "dialect=google"}},
		{"a shadow of another dialect", options{collyrobots.Shadow(dialect.Google())}, nil},
		{"a shadow for some hosts", options{collyrobots.Shadow(dialect.RFC9309()), collyrobots.ForHosts("a.test", collyrobots.Dialect(dialect.Google()))}, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var lines strings.Builder
			p, err := collyrobots.New(append(tc.opts, kit.LogsTo(&lines, slog.LevelInfo))...)
			kit.Must(t, err)
			kit.Must(t, p.Close())
			log := lines.String()
			want := 0
			if tc.says != nil {
				want = 1
			}
			if n := strings.Count(log, "level=WARN"); n != want || strings.Count(log, "\n") != want {
				t.Errorf("got %d warnings, want %d: %s", n, want, log)
			}
			for _, text := range tc.says {
				if !strings.Contains(log, text) {
					t.Errorf("got log %swant %q", log, text)
				}
			}
		})
	}
}

func TestForHostsWithAURL(t *testing.T) {
	for _, pattern := range []string{"https://example.com", "https://example.com/", "http://*.example.com/a"} {
		_, err := collyrobots.New(collyrobots.ForHosts(pattern, collyrobots.MinDelay(time.Second)))
		if err == nil || strings.Count(err.Error(), "ForHosts") != 1 || !strings.Contains(err.Error(), "want a host, not a URL") {
			t.Errorf("%s: New returned %v", pattern, err)
		}
	}
}

func TestNilCollector(t *testing.T) {
	_, err := collyrobots.WithRobots(nil)
	if !errors.Is(err, collyrobots.ErrNilCollector) {
		t.Errorf("WithRobots returned %v, want ErrNilCollector", err)
	}
	p, err := collyrobots.New()
	kit.Must(t, err)
	defer p.Close()
	if err := p.Attach(nil); !errors.Is(err, collyrobots.ErrNilCollector) {
		t.Errorf("Attach returned %v, want ErrNilCollector", err)
	}
	if _, err := new(collyrobots.Collector).WithRobots(); !errors.Is(err, collyrobots.ErrNilCollector) {
		t.Errorf("Collector.WithRobots returned %v, want ErrNilCollector", err)
	}
}

// TestWithRobotsAfterVisit checks that a warning says how many requests were sent before Attach.
func TestWithRobotsAfterVisit(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(5, kit.NoDenys)})
	c := colly.NewCollector(colly.AllowURLRevisit())
	c.WithTransport(web.Transport())
	for i := range 5 {
		kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
	}
	for range 2 { // the second collector has had a plugin from the beginning
		var lines strings.Builder
		robots, err := collyrobots.WithRobots(c, kit.LogsTo(&lines, slog.LevelWarn))
		kit.Must(t, err)
		kit.Must(t, c.Visit("http://a.test/0"))
		kit.Must(t, robots.Close())
		if log := lines.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "Attach was called after the first Visit") || !strings.Contains(log, "count=5") {
			t.Errorf("got log %q", log)
		}
		lines.Reset()
		again, err := collyrobots.WithRobots(c, kit.LogsTo(&lines, slog.LevelWarn))
		kit.Must(t, err)
		kit.Must(t, again.Close())
		if lines.Len() > 0 {
			t.Errorf("a second plugin warns of requests that the first plugin has checked: %s", lines.String())
		}
		c = colly.NewCollector(colly.AllowURLRevisit())
		c.WithTransport(web.Transport())
		for i := range 5 {
			kit.Must(t, c.Visit(fmt.Sprint("http://a.test/", i)))
		}
	}
}

// TestCloseBeforeTheFirstVisit checks that a warning is logged at the first request if the plugin
// is already closed, for example because a constructor defers Close.
func TestCloseBeforeTheFirstVisit(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys)})
	newSpider := func(lines *strings.Builder) *colly.Collector {
		c := colly.NewCollector()
		c.WithTransport(web.Transport())
		robots, err := collyrobots.WithRobots(c, kit.LogsTo(lines, slog.LevelWarn))
		kit.Must(t, err)
		defer robots.Close()
		return c
	}
	var lines strings.Builder
	c := newSpider(&lines)
	for i := range 3 {
		err := c.Visit(fmt.Sprint("http://a.test/", i))
		if !errors.Is(err, collyrobots.ErrClosed) {
			t.Errorf("Visit returned %v, want ErrClosed", err)
		}
	}
	if log := lines.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "the plugin is closed") || !strings.Contains(log, "url=http://a.test/0") {
		t.Errorf("got log %q", log)
	}
	if log := web.Log(""); len(log) > 0 {
		t.Errorf("a closed plugin has allowed requests: %s", kit.URIsOf(log))
	}
}

// TestHostWithoutDelay checks that the first host without a delay is logged once.
func TestHostWithoutDelay(t *testing.T) {
	sites := robotstest.Sites{
		"slow.test": robotstest.Pages(1, "User-agent: *\nCrawl-delay: 0.001\n"),
		"a.test":    robotstest.Pages(1, kit.NoDenys),
		"b.test":    robotstest.Pages(1, kit.NoDenys),
	}
	for name, tc := range map[string]struct {
		opts []collyrobots.Option
		want int
	}{
		"no delay": {nil, 1},
		"MinDelay": {[]collyrobots.Option{collyrobots.MinDelay(time.Millisecond)}, 0},
		"dry run":  {[]collyrobots.Option{collyrobots.DryRun(true)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // otherwise the gaps of slow.test would be too short on a busy machine
				var lines strings.Builder
				c := kit.Start(t, robotstest.New(t, sites), nil, append(tc.opts, kit.LogsTo(&lines, slog.LevelInfo))...)
				c.Impolite = name == "dry run"
				for _, host := range []string{"slow.test", "a.test", "b.test"} {
					kit.Must(t, c.Visit("http://"+host+"/0"))
				}
				log := lines.String()
				if n := strings.Count(log, "no delay between requests to this host"); n != tc.want || strings.Count(log, "host=a.test") != tc.want {
					t.Errorf("got %d log records, want %d about a.test: %s", n, tc.want, log)
				}
			})
		})
	}
}

// TestPluginOfAnotherBubble checks that a plugin that was made in another synctest bubble fails at
// once.
func TestPluginOfAnotherBubble(t *testing.T) {
	const want = "synctest bubble"
	outside, err := collyrobots.New()
	kit.Must(t, err)
	defer outside.Close()
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, kit.NoDenys)})
	attached := kit.Start(t, web, nil)
	attached.Impolite = true
	synctest.Test(t, func(t *testing.T) {
		if err := outside.Attach(colly.NewCollector()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Attach returned %v", err)
		}
		if _, err := outside.Check(t.Context(), "http://a.test/"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check returned %v", err)
		}
		for _, err := range outside.Pages(t.Context(), collyrobots.Feed{}, "http://a.test/") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Pages returned %v", err)
			}
		}
		defer func() {
			if reason := fmt.Sprint(recover()); !strings.Contains(reason, want) {
				t.Errorf("Visit panicked with %s", reason)
			}
		}()
		attached.Visit("http://a.test/0")
		t.Error("Visit returned, want a panic")
	})
}
