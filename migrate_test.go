package collyrobots_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/extensions"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
)

func TestForHosts(t *testing.T) {
	robots := "User-agent: *\nDisallow: /*x$\nCrawl-delay: 2\n"
	w := newWeb(t, map[string]site{
		"a.test": {"/robots.txt": robots}, "own.test": {"/robots.txt": robots}, "cdn.own.test": {"/robots.txt": robots},
		"old.test": {"/robots.txt": robots}, "slow.test:8080": {"/robots.txt": robots},
	})
	c := w.start(t, nil,
		collyrobots.MinDelay(100*time.Millisecond),
		collyrobots.ForHosts("cdn.own.test", collyrobots.Dialect(dialect.Google())),
		collyrobots.ForHosts("*own.test", collyrobots.IgnoreRobotsWithOwnersLeave(), collyrobots.MinDelay(0)),
		collyrobots.ForHosts("old.*", collyrobots.Dialect(dialect.Original1994()), collyrobots.HonorCrawlDelay()),
		collyrobots.ForHosts("*:8080", collyrobots.MinDelay(time.Minute)),
	)
	for _, tc := range []struct {
		url, dialect string
		allowed      bool
		reason       collyrobots.Reason
		delay        time.Duration
	}{
		{"http://a.test/x", "rfc9309", false, collyrobots.ReasonRule, 2 * time.Second},
		{"http://cdn.own.test/x", "google", false, collyrobots.ReasonRule, 100 * time.Millisecond},
		{"http://own.test/x", "rfc9309", true, collyrobots.ReasonIgnored, 0},
		{"http://old.test/x", "original1994", true, collyrobots.ReasonNoRule, 2 * time.Second},
		{"http://slow.test:8080/", "rfc9309", true, collyrobots.ReasonNoRule, time.Minute},
	} {
		d, err := c.robots.Check(t.Context(), tc.url)
		if err != nil || d.Dialect != tc.dialect || d.Allowed != tc.allowed || d.Reason != tc.reason || d.Delay != tc.delay {
			t.Errorf("%v, %s, delay %v (%v); want %+v", d, d.Dialect, d.Delay, err, tc)
		}
	}
	if w.uris("own.test") != "" {
		t.Errorf("own.test was asked for %s", w.uris("own.test"))
	}
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
			t.Errorf("a bad ForHosts: %v", err)
		}
	}
	_, err := collyrobots.New(collyrobots.ForHosts("a.test", collyrobots.MinDelay(-1), collyrobots.DryRun()))
	if s := fmt.Sprint(err); !strings.Contains(s, "MinDelay") || !strings.Contains(s, "DryRun") {
		t.Errorf("not every fault is named: %v", err)
	}
}

func TestADryRunReportsAndEnforcesNothing(t *testing.T) {
	s := pages(6, "User-agent: *\nCrawl-delay: 3600\nDisallow: /1\nDisallow: /hop\n")
	s["/2"] = redirect("/hop")
	s["/hop"] = page()
	w := newWeb(t, map[string]site{"a.test": s})
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": async} {
		c := w.start(t, options, collyrobots.DryRun()).follow()
		c.Visit("http://a.test/")
		c.Wait()
		h := c.robots.Stats().Hosts[0]
		if len(c.pages) != 7 || h.Requests != 9 || h.Denied != 2 || h.Delay != time.Hour || h.MinGap > time.Minute {
			t.Errorf("%s: %d pages, %+v", name, len(c.pages), h)
		}
		wantDenied(t, c, "http://a.test/1", collyrobots.ReasonRule, 3)
	}
}

func TestShadowsListWhatTheyWouldDecide(t *testing.T) {
	w := newWeb(t, map[string]site{
		"a.test": pages(3, "User-agent: *\nDisallow: /*1$\nAllow: /2\nDisallow: /2\n"),
		"b.test": {"/robots.txt": "Disallow: /\nUser-agent: *\nDisallow: /x", "/": page()}, // temoto refuses this file
		"c.test": {"/robots.txt": 503, "/": page()},
	})
	c := w.start(t, nil, collyrobots.Shadow(dialect.Original1994(), dialect.Temoto(), dialect.RFC9309())).follow()
	for _, host := range []string{"a", "b", "c"} {
		c.Visit("http://" + host + ".test/")
	}
	for _, host := range []string{"a.test", "b.test", "c.test"} {
		if n := strings.Count(w.uris(host), "robots.txt"); n != 1 {
			t.Errorf("robots.txt of %s was asked for %d times, want once", host, n)
		}
	}
	want := []string{
		"original1994: 6 compared, 1 stricter, 1 laxer: http://a.test/1 allowed, http://a.test/2 denied",
		"temoto: 6 compared, 1 stricter, 1 laxer: http://b.test/ denied, http://c.test/ allowed",
		"rfc9309: 6 compared, 0 stricter, 0 laxer: ",
	}
	for i, s := range c.robots.Stats().Shadows {
		var differ []string
		for _, d := range s.Differences {
			verdict := map[bool]string{true: "allowed", false: "denied"}
			if d.Enforced.Allowed == d.Shadow.Allowed || d.Enforced.URL != d.Shadow.URL || d.Shadow.Dialect != s.Dialect.String() {
				t.Errorf("no difference: %+v", d)
			}
			differ = append(differ, d.Shadow.URL+" "+verdict[d.Shadow.Allowed])
		}
		got := fmt.Sprintf("%s: %d compared, %d stricter, %d laxer: %s", s.Dialect, s.Compared, s.Stricter, s.Laxer, strings.Join(differ, ", "))
		if got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
	if got, want := w.uris("a.test"), "/robots.txt / /0 /2"; got != want {
		t.Errorf("a.test was asked for %s, want %s: a shadow enforces nothing", got, want)
	}
}

func TestTheSelfCheckSaysWhatIsWiredWrongly(t *testing.T) {
	cases := []struct {
		name  string
		opts  []collyrobots.Option
		wrong func(c *crawl)
		says  string // empty: nothing
	}{
		{"all well", nil, func(*crawl) {}, ""},
		{"built-in check", nil, func(c *crawl) { c.IgnoreRobotsTxt = false }, "built-in"},
		{"random user agent", nil, func(c *crawl) { extensions.RandomUserAgent(c.Collector.Collector) }, "OnRequest callbacks were registered after Attach"},
		{"changing user agent", nil, func(c *crawl) { c.Visit("http://a.test/0"); c.UserAgent = "OtherBot/1.0" }, "user agent changes"},
		{"fixed token", []collyrobots.Option{collyrobots.ProductToken("ExampleBot")},
			func(c *crawl) { c.Visit("http://a.test/0"); c.UserAgent = "OtherBot/1.0" }, ""},
		{"token without a group", []collyrobots.Option{collyrobots.ProductToken("MJ12bot")}, func(*crawl) {}, "MJ12bot"},
		{"bare clone", nil, func(c *crawl) { c.Collector.Collector.Clone().Visit("http://a.test/1") }, "without Attach"},
		{"later callback", nil, func(c *crawl) { c.OnRequest(func(*colly.Request) {}) }, "after Attach"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWeb(t, map[string]site{"a.test": pages(3, noDenys)})
			c := w.start(t, nil, tc.opts...)
			tc.wrong(c)
			for range 2 {
				c.Visit("http://a.test/")
			}
			if log := c.logged.String(); tc.says == "" && log != "" || !strings.Contains(log, tc.says) || strings.Count(log, "\n") > 1 {
				t.Errorf("the log says %q, want %q once", log, tc.says)
			}
		})
	}
}

// Colly's own Clone has no callbacks of the plugin, but shares its parent's client: robots.txt holds all the same.
func TestABareCloneIsHeldAtTheTransport(t *testing.T) {
	sites := map[string]site{"a.test": pages(3, "User-agent: *\nDisallow: /1\nCrawl-delay: 20")}
	onWire(t, sites, func(t *testing.T, w *wire) {
		c := w.start(t, nil)
		clone := c.Collector.Collector.Clone()
		if err := clone.Visit("http://a.test/1"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("Visit of a disallowed page: %v", err)
		}
		clone.Visit("http://a.test/2")
		c.Visit("http://a.test/")
		w.keepsGap(t, "a.test", 20*time.Second, 3)
	})
}
