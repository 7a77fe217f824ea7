package policy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

const (
	hour  = time.Hour
	day   = 24 * hour
	later = "User-agent: *\nDisallow: /z\n"
)

// TestLifetime checks how long a response is fresh, to the nanosecond.
func TestLifetime(t *testing.T) {
	for _, test := range []struct {
		dialect dialect.Dialect
		status  int
		header  []string
		want    time.Duration
	}{
		{dialect.RFC9309(), 200, nil, day},
		{dialect.RFC9309(), 404, nil, day},
		{dialect.RFC9309(), 429, nil, hour},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=3600"}, hour},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "public, Max-Age=\"3600\""}, hour},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=7200", "Age", "3600"}, hour},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=7200", "Age", "9999999999"}, time.Minute},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=1"}, time.Minute},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "no-store"}, time.Minute},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=3600", "Cache-Control", "no-cache"}, time.Minute},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "no-cache, max-age=3600"}, time.Minute},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=31536000"}, day},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=999999999999999999999"}, day},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=-5"}, day},
		{dialect.RFC9309(), 200, []string{"Cache-Control", "max-age=1e3"}, day},
		{dialect.RFC9309(), 404, []string{"Cache-Control", "max-age=3600"}, hour},
		{dialect.Google(), 200, []string{"Cache-Control", "max-age=3600"}, hour},
		{dialect.Google(), 200, []string{"Cache-Control", "max-age=172800"}, 2 * day},
		{dialect.Google(), 200, []string{"Cache-Control", "max-age=31536000"}, 7 * day},
		{dialect.CocCoc(), 200, nil, day},
		{dialect.CocCoc(), 500, nil, hour},
		{dialect.CocCoc(), 503, []string{"Retry-After", "7200"}, 2 * hour},
		{dialect.Original1994(), 200, nil, day},
	} {
		t.Run(fmt.Sprint(test.dialect, test.status, test.header), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(test.dialect), reply(test.status, closed, test.header...))
				p := c.get(t)
				if got := time.Until(p.Expires()); got != test.want {
					t.Errorf("expires after %v, want %v", got, test.want)
				}
				time.Sleep(test.want - time.Nanosecond)
				if c.get(t) != p || c.site.asked() != 1 {
					t.Error("fetched again too early")
				}
				time.Sleep(time.Nanosecond)
				if c.get(t) == p || c.site.asked() != 2 {
					t.Error("not fetched again")
				}
			})
		})
	}
}

// TestPauses checks the pauses between the fetches of a file that cannot be read.
func TestPauses(t *testing.T) {
	minutes := func(n ...int) (d []time.Duration) {
		for _, n := range n {
			d = append(d, time.Duration(n)*time.Minute)
		}
		return d
	}
	// fifths returns pauses of a fifth of the time since the outage began, within limits.
	fifths := func(shortest, longest time.Duration, n int) (d []time.Duration) {
		age := time.Duration(0)
		for range n {
			pause := min(max(shortest, age/5), longest)
			d = append(d, pause)
			age += pause
		}
		return d
	}
	for _, test := range []struct {
		name    string
		dialect dialect.Dialect
		answer  func(*http.Request) (*http.Response, error)
		want    []time.Duration
	}{
		{"RFC 9309", dialect.RFC9309(), reply(503, ""), minutes(1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360)},
		{"Google", dialect.Google(), reply(503, ""), minutes(1, 2, 4, 8, 16, 32, 60, 60)},
		{"no response, RFC 9309", dialect.RFC9309(), refuse, fifths(time.Second/10, 6*hour, 80)},
		{"no response, Google", dialect.Google(), refuse, fifths(time.Second/10, hour, 60)},
		{"no response, 1994", dialect.Original1994(), cut(200, closed), fifths(time.Second/10, 6*hour, 10)},
		{"no response, Coc Coc", dialect.CocCoc(), refuse, fifths(10*time.Minute, day, 50)},
		{"Retry-After in seconds", dialect.RFC9309(), reply(503, "", "Retry-After", "600"), minutes(10, 10, 10, 10, 16, 32)},
		{"a very long Retry-After", dialect.Google(), reply(503, "", "Retry-After", "99999999999999999"), minutes(12*60, 24*60, 24*60)},
		{"Retry-After in the past", dialect.RFC9309(), reply(503, "", "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"), minutes(1, 2)},
		{"an invalid Retry-After", dialect.RFC9309(), reply(503, "", "Retry-After", "soon"), minutes(1, 2)},
		{"Retry-After of a redirect without Location", dialect.RFC9309(), reply(302, "", "Retry-After", "300"), minutes(5, 5, 5, 8)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(test.dialect), test.answer)
				for i, want := range test.want {
					p := c.get(t)
					if got := time.Until(p.Expires()); got != want {
						t.Fatalf("pause %d: got %v, want %v", i, got, want)
					}
					time.Sleep(want)
				}
				c.site.says(reply(200, closed))
				if p := c.get(t); p.RobotsStatus != policy.Rules || p.Err() != nil {
					t.Errorf("after recovery: got %v, %v, want rules", p.RobotsStatus, p.Err())
				}
				time.Sleep(day)
				c.site.says(test.answer)
				if got := time.Until(c.get(t).Expires()); got != test.want[0] {
					t.Errorf("first pause of a new outage: got %v, want %v", got, test.want[0])
				}
			})
		})
	}
}

// TestPausesByKind checks that the pause begins anew when an error status follows fetches without a
// response, or the reverse, while the outage continues.
func TestPausesByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), nil)
		c.page = authority("http://other.example/")
		start := time.Now()
		for _, step := range []struct {
			answer func(*http.Request) (*http.Response, error)
			want   time.Duration
		}{
			{refuse, time.Second / 10}, {refuse, time.Second / 10}, {cut(200, closed), time.Second / 10},
			{reply(503, ""), time.Minute}, {reply(500, ""), 2 * time.Minute}, {refuse, time.Second / 10},
			{reply(200, closed, "Content-Encoding", "br"), 15 * time.Second},
		} {
			c.site.says(step.answer)
			if got := time.Until(c.get(t).Expires()); got != step.want {
				t.Errorf("pause: got %v, want %v", got, step.want)
			}
			time.Sleep(step.want)
		}
		time.Sleep(time.Until(start.Add(30 * day)))
		if p := c.get(t); p.RobotsStatus != policy.NoRobots {
			t.Errorf("after thirty days: got %v, want no_robots", p.RobotsStatus)
		}
	})
}

func TestRetryAfterDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(2 * hour)
		c := newCrawler(t, under(dialect.RFC9309()), reply(503, "", "Retry-After", at.UTC().Format(http.TimeFormat)))
		if p := c.get(t); !p.Expires().Equal(at) {
			t.Errorf("expires at %v, want %v", p.Expires(), at)
		}
	})
}

// TestOutage checks the status of a policy at several times after the beginning of an outage that
// does not end.
func TestOutage(t *testing.T) {
	type at struct {
		age  time.Duration
		want policy.RobotsStatus
	}
	const (
		stop = policy.Unreachable
		copy = policy.Rules
		open = policy.NoRobots
	)
	for _, test := range []struct {
		name     string
		dialect  dialect.Dialect
		before   func(*http.Request) (*http.Response, error) // a day before the outage; nil if there was no fetch
		outage   func(*http.Request) (*http.Response, error)
		answered bool // whether pages of the site are answered during the outage
		ages     []at
	}{
		{"RFC 9309 with a copy", dialect.RFC9309(), reply(200, closed), reply(503, ""), true,
			[]at{{0, stop}, {hour, stop}, {30*day - 1, stop}, {30 * day, copy}, {300 * day, copy}}},
		{"RFC 9309 without a copy", dialect.RFC9309(), nil, refuse, true,
			[]at{{0, stop}, {30*day - 1, stop}, {30 * day, open}, {300 * day, open}}},
		{"RFC 9309 after a 404", dialect.RFC9309(), reply(404, ""), reply(503, ""), true,
			[]at{{0, stop}, {30*day - 1, stop}, {30 * day, open}}},
		{"1994 as RFC 9309", dialect.Original1994(), reply(200, closed), reply(500, ""), true,
			[]at{{0, stop}, {30*day - 1, stop}, {30 * day, copy}}},
		{"Google with a copy, site available", dialect.Google(), reply(200, closed), reply(503, ""), true,
			[]at{{0, stop}, {12*hour - 1, stop}, {12 * hour, copy}, {30*day + 12*hour - 1, copy}, {30*day + 12*hour, open}, {300 * day, open}}},
		{"Google with a copy, site not available", dialect.Google(), reply(200, closed), refuse, false,
			[]at{{0, stop}, {12*hour - 1, stop}, {12 * hour, copy}, {30*day + 12*hour - 1, copy}, {30*day + 12*hour, stop}, {300 * day, stop}}},
		{"Google without a copy, site available", dialect.Google(), nil, reply(429, ""), true,
			[]at{{0, stop}, {12*hour - 1, stop}, {12 * hour, open}, {300 * day, open}}},
		{"Google without a copy, site not available", dialect.Google(), nil, refuse, false,
			[]at{{0, stop}, {12*hour - 1, stop}, {12 * hour, open}, {30*day + 12*hour, stop}}},
		{"Google after a 404", dialect.Google(), reply(404, ""), reply(503, ""), false,
			[]at{{0, stop}, {12 * hour, open}, {30*day + 12*hour, stop}}},
		{"Coc Coc without an answer", dialect.CocCoc(), reply(200, closed), refuse, true,
			[]at{{0, policy.SiteDown}, {12 * hour, policy.SiteDown}, {300 * day, policy.SiteDown}}},
		{"Coc Coc with an error", dialect.CocCoc(), reply(200, closed), reply(503, ""), true,
			[]at{{0, open}, {300 * day, open}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(test.dialect), test.before)
				if test.before != nil {
					c.get(t)
					time.Sleep(day)
				}
				c.site.says(test.outage)
				start := time.Now()
				for _, at := range test.ages {
					for time.Since(start) < at.age { // a page every six hours
						time.Sleep(min(6*hour, at.age-time.Since(start)))
						c.get(t)
						if test.answered {
							c.Answered(c.page)
						}
					}
					p := c.get(t)
					if p.RobotsStatus != at.want {
						t.Errorf("at %v: got %v, want %v", at.age, p.RobotsStatus, at.want)
					}
					if p.Stale() != (at.want == copy) || p.Err() == nil {
						t.Errorf("at %v: got stale %t, error %v", at.age, p.Stale(), p.Err())
					}
					if at.want == copy && (allows(p, "/x") || p.Fetched().After(start)) {
						t.Errorf("at %v: got %+v, want the copy", at.age, p)
					}
				}
			})
		})
	}
}

// TestAnsweredLongAgo checks that the answer of a page shows only for a week that the site is
// available.
func TestAnsweredLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.Google()), reply(503, ""))
		c.get(t)
		time.Sleep(25 * day)
		c.Answered(c.page)
		time.Sleep(6 * day)
		if p := c.get(t); p.RobotsStatus != policy.NoRobots {
			t.Errorf("six days after an answer: got %v, want no_robots", p.RobotsStatus)
		}
		time.Sleep(day)
		if p := c.get(t); p.RobotsStatus != policy.Unreachable {
			t.Errorf("seven days after an answer: got %v, want unreachable", p.RobotsStatus)
		}
	})
}

// TestConditionalRequest checks that dialects that permit it send validators, only to the URL of
// robots.txt itself, and that a 304 renews the copy.
func TestConditionalRequest(t *testing.T) {
	const modified = "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, d := range dialect.All() {
		if d == dialect.Temoto() {
			continue // never fetches again
		}
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(d), reply(200, closed, "ETag", `"a"`, "Last-Modified", modified))
				first := c.get(t)
				time.Sleep(day)
				c.site.says(reply(304, "", "ETag", `"b"`, "Cache-Control", "max-age=3600"))
				second := c.get(t)
				conditional := d != dialect.Google()
				if got := c.site.last().Header.Get("If-None-Match") == `"a"`; got != conditional {
					t.Errorf("If-None-Match sent: got %t, want %t", got, conditional)
				}
				if got := c.site.last().Header.Get("If-Modified-Since") == modified; got != conditional {
					t.Errorf("If-Modified-Since sent: got %t, want %t", got, conditional)
				}
				if !conditional {
					return
				}
				if second.RobotsStatus != policy.Rules || second.Group() != first.Group() || second.Err() != nil {
					t.Errorf("after 304: got %+v, want the rules of the copy", second)
				}
				if !second.Fetched().Equal(time.Now()) || time.Until(second.Expires()) != hour {
					t.Errorf("after 304: fetched %v, expires %v, want now and in an hour", second.Fetched(), second.Expires())
				}
				time.Sleep(hour)
				c.get(t)
				if got := c.site.last().Header.Get("If-None-Match"); got != `"b"` {
					t.Errorf("next request: got If-None-Match %q, want that of the 304", got)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), redirects(1, 302, "", reply(200, closed, "ETag", `"a"`)))
		c.get(t)
		time.Sleep(day)
		c.get(t)
		for _, req := range c.site.requests {
			if got := req.Header.Get("If-None-Match"); got != "" {
				t.Errorf("the request for %s has a validator from behind a redirect", req.URL)
			}
		}
	})
}

// TestConditionalAfterOutage checks that the validators are kept during an outage, as the copy is.
func TestConditionalAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), reply(200, closed, "ETag", `"a"`))
		c.get(t)
		time.Sleep(day)
		c.site.says(refuse)
		if p := c.get(t); p.RobotsStatus != policy.Unreachable {
			t.Fatal(p.RobotsStatus)
		}
		time.Sleep(time.Minute)
		c.site.says(reply(304, ""))
		if p := c.get(t); p.RobotsStatus != policy.Rules || allows(p, "/x") || p.Err() != nil {
			t.Errorf("got %+v, want the rules of the copy", p)
		}
	})
}

// TestUpdatedFirst checks that Updated is called before the policy is in the cache, so that no
// request can start before the event about its robots.txt.
func TestUpdatedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *crawler
		updates := 0
		o := under(dialect.RFC9309())
		o.Updated = func(u policy.Update) {
			updates++
			if c.Last(t.Context(), c.page) != u.Old {
				t.Errorf("update %d: the new policy is already in the cache", updates)
			}
		}
		c = newCrawler(t, o, nil)
		for _, answer := range []func(*http.Request) (*http.Response, error){reply(200, closed), reply(404, ""), reply(503, ""), refuse} {
			c.site.says(answer)
			c.get(t)
			time.Sleep(day)
		}
		if updates != 4 {
			t.Errorf("%d updates", updates)
		}
	})
}

// TestChanged checks that Changed reports each change of the status or the rules once.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		o := under(dialect.RFC9309())
		o.Updated = func(u policy.Update) {
			if u.Changed() {
				reported = append(reported, fmt.Sprintf("%v to %v, /z %t", u.Old.RobotsStatus, u.Policy.RobotsStatus, allows(u.Policy, "/z")))
			}
		}
		c := newCrawler(t, o, nil)
		for _, step := range []struct {
			answer func(*http.Request) (*http.Response, error)
			want   string
		}{
			{reply(200, closed), ""},
			{reply(200, closed), ""},
			{reply(200, later), "rules to rules, /z false"},
			{reply(200, later), ""},
			{reply(404, ""), "rules to no_robots, /z true"},
			{reply(410, ""), ""},
			{reply(503, ""), "no_robots to unreachable, /z false"},
			{refuse, ""},
			{reply(200, closed), "unreachable to rules, /z true"},
		} {
			before := len(reported)
			c.site.says(step.answer)
			c.get(t)
			synctest.Wait()
			if got := strings.Join(reported[before:], "; "); got != step.want {
				t.Errorf("got %q, want %q", got, step.want)
			}
			time.Sleep(day)
		}
	})
}

// TestCrawlDelay checks that Crawl-delay is read as the dialect does, or as written if the dialect
// does not support it and HonorDelays is set.
func TestCrawlDelay(t *testing.T) {
	const body = "User-agent: ExampleBot\nCrawl-delay: 2.5\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 60\nDisallow: /\n"
	for _, test := range []struct {
		dialect         dialect.Dialect
		plain, honoured time.Duration
	}{
		{dialect.RFC9309(), 2500 * time.Millisecond, 2500 * time.Millisecond},
		{dialect.Google(), 0, 2500 * time.Millisecond},
		{dialect.CocCoc(), 3 * time.Second, 3 * time.Second},
		{dialect.Original1994(), 0, 2500 * time.Millisecond},
		{dialect.Temoto(), 0, 2500 * time.Millisecond},
	} {
		for _, honor := range []bool{false, true} {
			c := newCrawler(t, policy.Options{Dialect: test.dialect, HonorDelays: honor}, reply(200, body))
			want := test.plain
			if honor {
				want = test.honoured
			}
			if p := c.get(t); p.CrawlDelay() != want {
				t.Errorf("%v, HonorDelays %t: got %v, want %v", test.dialect, honor, p.CrawlDelay(), want)
			}
		}
	}
}

func TestSitemaps(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, closed+"Sitemap: https://example.com/s.xml\n"))
	if p := c.get(t); len(p.Sitemaps()) != 1 || p.Sitemaps()[0] != "https://example.com/s.xml" {
		t.Errorf("got %q, want one sitemap", p.Sitemaps())
	}
	c = newCrawler(t, under(dialect.RFC9309()), reply(404, closed+"Sitemap: https://example.com/s.xml\n"))
	if p := c.get(t); p.Sitemaps() != nil {
		t.Errorf("of a 404: got %q, want none", p.Sitemaps())
	}
}
