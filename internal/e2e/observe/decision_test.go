package observe

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// hashOf returns the Decision.Hash of a robots.txt.
func hashOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:32] }

func TestCheckReturnsWholeDecision(t *testing.T) {
	const file = "# hello\nUser-agent: ExampleBot\nDisallow: /x*y$ # no\nCrawl-delay: 2\n"
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": file}})
	c := kit.Start(t, web, nil)
	before := time.Now()
	d, err := c.Robots.Check(t.Context(), "http://A.test:80/x/y")
	if err != nil {
		t.Fatal(err)
	}
	if d.Fetched.Before(before) || !d.Expires.After(d.Fetched.Add(23*time.Hour)) {
		t.Errorf("got Fetched %v and Expires %v", d.Fetched, d.Expires)
	}
	d.Fetched, d.Expires = time.Time{}, time.Time{}
	want := collyrobots.Decision{
		URL: "http://A.test:80/x/y", Authority: "http://a.test", RobotsURL: "http://a.test/robots.txt",
		Reason: report.ReasonRule, Dialect: dialect.RFC9309(), Token: "ExampleBot", Group: "ExampleBot",
		Rule: dialect.Rule{Pattern: "/x*y$", Line: 3}, Hash: hashOf(file), Status: 200, CrawlDelay: 2 * time.Second, Delay: 2 * time.Second,
	}
	if d != want {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
	if got, want := d.String(), `http://A.test:80/x/y denied: "Disallow: /x*y$", line 3 of http://a.test/robots.txt, group "ExampleBot" (rfc9309)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, bad := range []string{"", "a.test/x", "mailto:a@a.test", "http://[::1", "http://", "javascript:0"} {
		if _, err := c.Robots.Check(t.Context(), bad); err == nil {
			t.Errorf("Check(%q) returned no error", bad)
		}
	}
}

// TestReasonsAreStableCodes checks the codes of reasons. They must never change, because they are
// in the logs and records of users.
func TestReasonsAreStableCodes(t *testing.T) {
	for reason, want := range map[report.Reason]string{
		report.ReasonRule: "rule", report.ReasonNoRule: "no_rule", report.ReasonNoRobots: "no_robots",
		report.ReasonUnreachable: "unreachable", report.ReasonSiteDown: "site_down",
		report.ReasonDelay: "delay", report.ReasonIgnored: "ignored",
		report.ReasonNofollow: "nofollow",
	} {
		if string(reason) != want {
			t.Errorf("got %q, want %q", reason, want)
		}
	}
}

// reasonCases has a host for each reason of a decision.
var reasonCases = []struct {
	host   string
	robots any
	reason report.Reason
	opts   []collyrobots.Option
}{
	{"rule.test", "User-agent: *\nDisallow: /p*=1\nCrawl-delay: 1.5", report.ReasonRule, nil},
	{"norule.test", "User-agent: *\nCrawl-delay: 0.25", report.ReasonNoRule, nil},
	{"norobots.test", 404, report.ReasonNoRobots, nil},
	{"broken.test", 503, report.ReasonUnreachable, nil},
	{"dropped.test", kit.Drop, report.ReasonUnreachable, nil},
	{"down.test", kit.Drop, report.ReasonSiteDown, []collyrobots.Option{collyrobots.Dialect(dialect.CocCoc())}},
	{"slow.test", "User-agent: *\nCrawl-delay: 3600", report.ReasonDelay, []collyrobots.Option{collyrobots.SkipCrawlDelayAbove(time.Minute)}},
	{"own.test", "User-agent: *\nDisallow: /", report.ReasonIgnored, []collyrobots.Option{kit.IgnoreRobots()}},
	{"temoto.test", "User-agent: *\nDisallow: /p", report.ReasonRule, []collyrobots.Option{collyrobots.Dialect(dialect.Temoto())}},
	{"lax.test", 503, report.ReasonNoRobots, []collyrobots.Option{collyrobots.WhenUnreachable(collyrobots.AllowAll)}},
	{"strict.test", 403, report.ReasonUnreachable, []collyrobots.Option{collyrobots.WhenForbidden(collyrobots.DenyAll)}},
}

// forEachReason calls f with a decision for each of reasonCases.
func forEachReason(t *testing.T, f func(t *testing.T, d collyrobots.Decision)) {
	for _, tc := range reasonCases {
		t.Run(tc.host, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{tc.host: {"/robots.txt": tc.robots}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, tc.opts...)
				c.Impolite = true // some options do not obey RFC 9309
				d, err := c.Robots.Check(t.Context(), "http://"+tc.host+"/page?id=1")
				if err != nil || d.Reason != tc.reason {
					t.Fatalf("got %v (%v), want reason %q", d, err, tc.reason)
				}
				f(t, d)
			})
		})
	}
}

func TestDecisionsSurviveJSON(t *testing.T) {
	forEachReason(t, func(t *testing.T, d collyrobots.Decision) {
		text := kit.Survives(t, d)
		for _, want := range []any{d.Reason, d.Dialect.String()} {
			if quoted := fmt.Sprintf("%q", want); !strings.Contains(text, quoted) {
				t.Errorf("%s is not in %s", quoted, text)
			}
		}
		for name, delay := range map[string]time.Duration{"crawl_delay": d.CrawlDelay, "delay": d.Delay} {
			if field := fmt.Sprintf("%q:%v", name, delay.Seconds()); delay > 0 && !strings.Contains(text, field) {
				t.Errorf("%s is not in %s", field, text)
			}
		}
	})
}

// TestRobotsStatusesAreStableCodes checks the codes of RobotsStatus, which must never change
// either.
func TestRobotsStatusesAreStableCodes(t *testing.T) {
	for _, tc := range []struct {
		dialect dialect.Dialect
		want    string
	}{
		{dialect.RFC9309(), "rules -> no_robots, no_robots -> rules, rules -> unreachable"},
		{dialect.CocCoc(), "rules -> no_robots, no_robots -> rules, rules -> site_down"},
	} {
		t.Run(tc.dialect.String(), func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"*": ""}}, func(t *testing.T, web *robotstest.Web) {
				brief := func(status int, body string) http.HandlerFunc {
					return func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Cache-Control", "max-age=600")
						w.WriteHeader(status)
						io.WriteString(w, body)
					}
				}
				told := make(chan string, 10)
				c := kit.Start(t, web, nil, collyrobots.Dialect(tc.dialect), kit.OnChange(func(c report.RobotsChange) {
					told <- fmt.Sprint(c.Old.RobotsStatus, " -> ", c.New.RobotsStatus)
				}))
				for i, answer := range []any{brief(200, "User-agent: *\nDisallow: /x"), brief(404, ""), brief(200, "User-agent: *\nDisallow: /y"), kit.Drop} {
					web.Set("a.test", "/robots.txt", answer)
					c.Visit(fmt.Sprint("http://a.test/", i))
					time.Sleep(2 * time.Hour)
				}
				var got []string
				for len(told) > 0 {
					got = append(got, <-told)
				}
				if got := strings.Join(got, ", "); got != tc.want {
					t.Errorf("got changes %s, want %s", got, tc.want)
				}
			})
		})
	}
}
