package policy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

// unreachable and forbidden return the options that replace what d says.
func unreachable(d dialect.Dialect, a policy.Access) policy.Options {
	return policy.Options{Dialect: d, WhenUnreachable: a}
}

func forbidden(d dialect.Dialect, a policy.Access) policy.Options {
	return policy.Options{Dialect: d, WhenForbidden: a}
}

// TestOverriddenStatusTable shows what each response to the first GET /robots.txt means if an
// option replaces what the dialect says. The letters are those of TestStatusTable.
func TestOverriddenStatusTable(t *testing.T) {
	letters := map[policy.RobotsStatus]string{
		policy.Rules: "R", policy.NoRobots: "o", policy.Unreachable: "-", policy.SiteDown: "D",
	}
	status := func(code int) func(*http.Request) (*http.Response, error) { return reply(code, closed) }
	for _, row := range []struct {
		answer                  string
		reply                   func(*http.Request) (*http.Response, error)
		denyAll, allowAll       string // WhenUnreachable, for RFC 9309, Google, Coc Coc, 1994, temoto, Yandex, Seznam
		denyForbid, allowForbid string // WhenForbidden
	}{
		{"200", status(200), "RRRRRRR", "RRRRRRR", "RRRRRRR", "RRRRRRR"},
		{"206", status(206), "RRoRRoR", "RRoRRoR", "RRoRRoR", "RRoRRoR"},
		{"302 without Location", status(302), "-------", "ooooooo", "--o--o-", "--o--o-"},
		{"301 to file:", reply(301, closed, "Location", "file:///etc/passwd"), "-------", "ooooooo", "--o--o-", "--o--o-"},
		{"401", status(401), "ooooooo", "ooooooo", "-------", "ooooooo"},
		{"403", status(403), "ooooooo", "ooooooo", "-------", "ooooooo"},
		{"404", status(404), "ooooooo", "ooooooo", "ooooooo", "ooooooo"},
		{"407", status(407), "ooooooo", "ooooooo", "ooooooo", "ooooooo"},
		{"410", status(410), "ooooooo", "ooooooo", "ooooooo", "ooooooo"},
		{"451", status(451), "ooooooo", "ooooooo", "ooooooo", "ooooooo"},
		{"429", status(429), "-------", "ooooooo", "o-ooooo", "o-ooooo"},
		{"500", status(500), "-------", "ooooooo", "--o-oo-", "--o-oo-"},
		{"503", status(503), "-------", "ooooooo", "--o-oo-", "--o-oo-"},
		{"999", status(999), "-------", "ooooooo", "--o--o-", "--o--o-"},
		{"connection reset", refuse, "-------", "ooooooo", "--D----", "--D----"},
		{"no response in time", hang, "-------", "ooooooo", "--D----", "--D----"},
		{"cut body", cut(200, closed), "-------", "ooooooo", "--D----", "--D----"},
		{"unknown coding", reply(200, closed, "Content-Encoding", "br"), "----R--", "ooooRoo", "--D-R--", "--D-R--"},
		{"panic", func(*http.Request) (*http.Response, error) { panic("ouch") }, "-------", "ooooooo", "--D----", "--D----"},
		{"a loop", reply(301, "", "Location", "/robots.txt"), "oooo-oo", "oooo-oo", "oooo-oo", "oooo-oo"},
		{"2 redirects to 403", redirects(2, 308, "", status(403)), "ooooooo", "ooooooo", "-------", "ooooooo"},
		{"redirect to an unreachable host", redirects(1, 301, "https://gone.example/", refuse), "-------", "ooooooo", "--D----", "--D----"},
	} {
		for i, d := range dialect.All()[:len(row.denyAll)] { // the options replace what any dialect says
			for _, test := range []struct {
				options policy.Options
				want    string
			}{
				{unreachable(d, policy.DenyAll), row.denyAll},
				{unreachable(d, policy.AllowAll), row.allowAll},
				{forbidden(d, policy.DenyAll), row.denyForbid},
				{forbidden(d, policy.AllowAll), row.allowForbid},
			} {
				name := fmt.Sprintf("%s/%s/%d%d", row.answer, d, test.options.WhenUnreachable, test.options.WhenForbidden)
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := newCrawler(t, test.options, row.reply).get(t)
						if got := letters[p.RobotsStatus]; got != test.want[i:i+1] {
							t.Errorf("got %s (%v), want %s", got, p.Err(), test.want[i:i+1])
						}
						if p.Err() == nil && p.RobotsStatus == policy.Unreachable {
							t.Error("unreachable without an error")
						}
					})
				})
			}
		}
	}
}

// TestOverriddenOutage checks an outage of 300 days. DenyAll never allows a page, and AllowAll
// obeys the last good copy, if there is one.
func TestOverriddenOutage(t *testing.T) {
	days := 300
	if policy.UnderRace {
		days = 40 // longer than the month in which the last good copy matters
	}
	for _, test := range []struct {
		access policy.Access
		before func(*http.Request) (*http.Response, error) // nil if there was no fetch
		want   policy.RobotsStatus
	}{
		{policy.DenyAll, nil, policy.Unreachable},
		{policy.DenyAll, reply(200, closed), policy.Unreachable},
		{policy.DenyAll, reply(404, ""), policy.Unreachable},
		{policy.AllowAll, nil, policy.NoRobots},
		{policy.AllowAll, reply(200, closed), policy.Rules},
		{policy.AllowAll, reply(404, ""), policy.NoRobots},
	} {
		for _, outage := range []func(*http.Request) (*http.Response, error){reply(503, ""), refuse} {
			for _, d := range dialect.All() {
				want := test.want
				answered := func() bool { resp, _ := outage(nil); return resp != nil }()
				opens := d == dialect.CocCoc() || d == dialect.Yandex() || d == dialect.Temoto()
				if want == policy.Rules && answered && opens {
					want = policy.NoRobots // AllowAll does not make the dialect stricter
				}
				synctest.Test(t, func(t *testing.T) {
					c := newCrawler(t, unreachable(d, test.access), test.before)
					if test.before != nil && d != dialect.Temoto() { // temoto never reads a file again
						c.get(t)
						time.Sleep(7 * day)
					} else if want == policy.Rules {
						want = policy.NoRobots
					}
					c.site.says(outage)
					for range 4 * days {
						p := c.get(t)
						if p.RobotsStatus != want || p.Err() == nil || p.Stale() != (want == policy.Rules) {
							t.Fatalf("%v, access %d: got %v (%v), want %v", d, test.access, p.RobotsStatus, p.Err(), want)
						}
						if want == policy.Rules && allows(p, "/x") {
							t.Fatal("the last copy denies /x")
						}
						c.Answered(c.page)
						time.Sleep(6 * hour)
					}
				})
			}
		}
	}
}

// TestOverriddenPauses checks that the options do not change when the file is requested again. A
// dialect that would request it for each page, or that knows no such outage, does as RFC 9309.
func TestOverriddenPauses(t *testing.T) {
	minute := time.Minute
	for _, test := range []struct {
		name    string
		options policy.Options
		answer  func(*http.Request) (*http.Response, error)
		want    []time.Duration
	}{
		{"RFC 9309", unreachable(dialect.RFC9309(), policy.AllowAll), reply(503, ""), []time.Duration{minute, 2 * minute, 4 * minute}},
		{"Google", unreachable(dialect.Google(), policy.AllowAll), reply(429, ""), []time.Duration{minute, 2 * minute, 4 * minute}},
		{"Google, denied", unreachable(dialect.Google(), policy.DenyAll), reply(500, ""), []time.Duration{minute, 2 * minute, 4 * minute}},
		{"Retry-After", unreachable(dialect.RFC9309(), policy.AllowAll), reply(503, "", "Retry-After", "7200"), []time.Duration{2 * hour, 2 * hour}},
		{"Coc Coc, allowed by the dialect", unreachable(dialect.CocCoc(), policy.AllowAll), reply(503, ""), []time.Duration{hour, hour}},
		{"Coc Coc", unreachable(dialect.CocCoc(), policy.DenyAll), reply(503, ""), []time.Duration{minute, 2 * minute}},
		{"Coc Coc without an answer", unreachable(dialect.CocCoc(), policy.AllowAll), refuse, []time.Duration{10 * minute, 10 * minute}},
		{"Yandex", unreachable(dialect.Yandex(), policy.DenyAll), reply(503, ""), []time.Duration{minute, 2 * minute}},
		{"temoto", unreachable(dialect.Temoto(), policy.DenyAll), reply(503, ""), []time.Duration{minute, 2 * minute}},
		{"temoto without an answer", unreachable(dialect.Temoto(), policy.AllowAll), refuse, []time.Duration{hour / 36000, hour / 36000}},
		{"403", forbidden(dialect.RFC9309(), policy.DenyAll), reply(403, ""), []time.Duration{day, day}},
		{"403 with Cache-Control", forbidden(dialect.RFC9309(), policy.DenyAll), reply(403, "", "Cache-Control", "max-age=600"), []time.Duration{10 * minute, 10 * minute}},
		{"401, allowed", forbidden(dialect.Google(), policy.AllowAll), reply(401, ""), []time.Duration{day, day}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, test.options, test.answer)
				for i, want := range test.want {
					p := c.get(t)
					if got := time.Until(p.Expires()); got != want {
						t.Fatalf("pause %d: got %v, want %v", i, got, want)
					}
					asked := c.site.asked()
					time.Sleep(want - time.Nanosecond)
					if c.get(t); c.site.asked() != asked {
						t.Errorf("requested again before the end of pause %d", i)
					}
					time.Sleep(time.Nanosecond)
				}
				c.site.says(reply(200, closed))
				if p := c.get(t); p.RobotsStatus != policy.Rules || p.Err() != nil {
					t.Errorf("after recovery: got %v, %v, want rules", p.RobotsStatus, p.Err())
				}
			})
		})
	}
}

// TestForbiddenAfterCopy checks that a response with status 403 replaces the copy before it, under
// either option.
func TestForbiddenAfterCopy(t *testing.T) {
	for access, want := range map[policy.Access]policy.RobotsStatus{
		policy.DenyAll: policy.Unreachable, policy.AllowAll: policy.NoRobots,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrawler(t, forbidden(dialect.Google(), access), reply(200, closed))
			c.get(t)
			time.Sleep(day)
			c.site.says(reply(403, ""))
			p := c.get(t)
			if p.RobotsStatus != want || !p.Refused() || p.Failing() || p.Status() != 403 {
				t.Errorf("got %v, %v, want %v", p.RobotsStatus, p.Err(), want)
			}
			failed := (*policy.StatusError)(nil)
			if errors.As(p.Err(), &failed) != (access == policy.DenyAll) {
				t.Errorf("error %v", p.Err())
			}
		})
	}
}

// TestOverridesShareStore checks that the options change nothing in the records of a store, which
// other processes read without them.
func TestOverridesShareStore(t *testing.T) {
	for _, answer := range []func(*http.Request) (*http.Response, error){reply(403, ""), reply(503, ""), refuse} {
		synctest.Test(t, func(t *testing.T) {
			record := func(o policy.Options) string {
				o.Store = store.NewMemory()
				newCrawler(t, o, answer).get(t)
				raw, err := o.Store.Get(t.Context(), "robots:https://example.com")
				if err != nil || raw == nil {
					t.Fatal(err, raw)
				}
				return string(raw)
			}
			plain := record(under(dialect.RFC9309()))
			for _, a := range []policy.Access{policy.DenyAll, policy.AllowAll} {
				o := unreachable(dialect.RFC9309(), a)
				o.WhenForbidden = a
				if got := record(o); got != plain {
					t.Errorf("access %d: got record %s, want %s", a, got, plain)
				}
			}
		})
	}
}

// TestGiven checks that a given file is in force at once and for ever, without a request and
// without a record in the store. A file of the site in the store has no effect.
func TestGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		newCrawler(t, policy.Options{Store: s}, reply(200, "User-agent: *\nDisallow: /site\n")).get(t)
		before, _ := s.Get(t.Context(), "robots:https://example.com")
		for _, d := range dialect.All() {
			var updates []policy.Update
			c := newCrawler(t, policy.Options{
				Dialect: d,
				Given:   []byte(closed + "Sitemap: https://example.com/own.xml\n"),
				Store:   s,
				Updated: func(u policy.Update) { updates = append(updates, u) },
			}, reply(200, "User-agent: *\nDisallow: /\n"))
			for range 3 {
				p := c.get(t)
				if !p.Given() || p.RobotsStatus != policy.Rules || allows(p, "/x") || !allows(p, "/site") || p.Status() != 0 || p.Err() != nil {
					t.Errorf("%v: got %+v", d, p)
				}
				if d != dialect.Original1994() && !slices.Equal(p.Sitemaps(), []string{"https://example.com/own.xml"}) {
					t.Errorf("%v: sitemaps %q", d, p.Sitemaps())
				}
				time.Sleep(2 * day)
			}
			if c.site.asked() != 0 {
				t.Errorf("%v: %d requests", d, c.site.asked())
			}
			if len(updates) != 1 || updates[0].Stored || updates[0].Old != nil || !strings.HasPrefix(string(updates[0].Body), closed) {
				t.Errorf("%v: updates %+v, want one", d, updates)
			}
		}
		if after, _ := s.Get(t.Context(), "robots:https://example.com"); string(after) != string(before) {
			t.Errorf("the record has changed from %q to %q", before, after)
		}
		c := newCrawler(t, policy.Options{Given: []byte(closed)}, nil)
		p := c.get(t)
		time.Sleep(20 * 365 * day)
		if c.get(t) != p || c.site.asked() != 0 {
			t.Error("not in force after twenty years")
		}
	})
}

// TestGivenBytes checks files that no site would serve.
func TestGivenBytes(t *testing.T) {
	for _, d := range dialect.All() {
		for _, body := range []string{"", "\ufeff" + closed, "\x00\xff\xfe", "no rule", strings.Repeat("User-agent: *\nDisallow: /x\n", 60_000)} {
			c := newCrawler(t, policy.Options{Dialect: d, Given: []byte(body)}, nil)
			p := c.get(t)
			if p.RobotsStatus != policy.Rules || !allows(p, "/other") || allows(p, "/x") == strings.Contains(body, closed) && d != dialect.Yandex() {
				t.Errorf("%v, %.20q: got %v, /x allowed: %t", d, body, p.RobotsStatus, allows(p, "/x"))
			}
		}
	}
}

// TestGivenConcurrently checks that callers that need a given file at the same time share one
// policy, and that Close ends later calls.
func TestGivenConcurrently(t *testing.T) {
	updates := 0
	c := newCrawler(t, policy.Options{Given: []byte(closed), Updated: func(policy.Update) { updates++ }}, nil)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if p := c.get(t); allows(p, "/x") {
				t.Error("/x is allowed")
			}
		})
	}
	wg.Wait()
	if updates != 1 {
		t.Errorf("%d updates, want 1", updates)
	}
	c.Close()
	if _, err := c.ask(context.Background(), c.page); !errors.Is(err, policy.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}
