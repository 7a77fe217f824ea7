package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/usage"
)

// A world is a judge in a bubble, with sites in memory.
type world struct {
	*Judge
	t     *testing.T
	start time.Time
	f     exchange.Fetcher
	web   *robotstest.Web
	log   *bytes.Buffer
}

// inBubble runs a test with a judge.
func inBubble(t *testing.T, s *Settings, sites robotstest.Sites, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &world{t: t, start: time.Now(), web: robotstest.New(t, sites), log: new(bytes.Buffer)}
		w.Judge, w.f = newTestJudge(t, w.web, s)
		w.Report.Log = slog.New(slog.NewTextHandler(w.log, nil))
		w.Policies.report = w.Report
		test(w)
	})
}

// target returns the target of a URL for the crawler Bot.
func target(rawURL string) Target {
	u, err := url.Parse(rawURL)
	if err != nil {
		panic(err)
	}
	return Target{URL: u, UserAgent: "Bot/1.0"}
}

// verdict returns the verdict on a target now.
func (w *world) verdict(target Target) Verdict {
	w.t.Helper()
	v, err := w.Verdict(w.t.Context(), time.Now(), target, w.f, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// wantRequests checks which requests the sites got, as "1s /robots.txt".
func (w *world) wantRequests(want ...string) {
	w.t.Helper()
	if got := w.web.Log("").Schedule(); !slices.Equal(got, want) {
		w.t.Errorf("requests %q, want %q", got, want)
	}
}

const closedFile = "User-agent: *\nDisallow: /\n"

// TestVerdict checks what decides about http://a.test/x, and whether robots.txt is requested for that.
func TestVerdict(t *testing.T) {
	fetched := []string{"0s /robots.txt"}
	tests := []struct {
		name     string
		settings HostSettings
		target   func(*Target)
		robots   any // the answer of a.test
		want     report.Reason
		allowed  bool
		option   string
		requests []string
	}{
		{name: "no rule", robots: "User-agent: *\nDisallow: /y\n", want: report.ReasonNoRule, allowed: true, requests: fetched},
		{name: "a rule that allows", robots: "User-agent: *\nAllow: /x\n", want: report.ReasonRule, allowed: true, requests: fetched},
		{name: "a rule that denies", robots: closedFile, want: report.ReasonRule, requests: fetched},
		{name: "the group of the crawler", robots: closedFile + "\nUser-agent: bot\nAllow: /x\n", want: report.ReasonRule, allowed: true, requests: fetched},
		{
			name:     "the group of ProductToken",
			settings: HostSettings{Reading: Reading{Tokens: []string{"Other"}}},
			robots:   closedFile + "\nUser-agent: other\nAllow: /x\n",
			want:     report.ReasonRule,
			allowed:  true,
			requests: fetched,
		},
		{name: "404", want: report.ReasonNoRobots, allowed: true, requests: fetched},
		{name: "403", robots: 403, want: report.ReasonNoRobots, allowed: true, requests: fetched},
		{name: "500", robots: 500, want: report.ReasonUnreachable, requests: fetched},
		{
			name:     "500 and WhenUnreachable",
			settings: HostSettings{Reading: Reading{WhenUnreachable: policy.AllowAll}},
			robots:   500,
			want:     report.ReasonNoRobots,
			allowed:  true,
			option:   policy.OptionWhenUnreachable,
			requests: fetched,
		},
		{
			name:     "403 and WhenForbidden",
			settings: HostSettings{Reading: Reading{WhenForbidden: policy.DenyAll}},
			robots:   403,
			want:     report.ReasonUnreachable,
			option:   policy.OptionWhenForbidden,
			requests: fetched,
		},
		{name: "RobotsTxt", settings: HostSettings{Reading: Reading{RobotsTxt: []byte(closedFile)}}, want: report.ReasonRule, option: policy.OptionRobotsTxt},
		{name: "IgnoreRobots", settings: HostSettings{Permission: permitted}, robots: closedFile, want: report.ReasonIgnored, allowed: true},
		{
			name:     "SkipCrawlDelayAbove",
			settings: HostSettings{LongDelays: LongDelays{SkipCrawlDelayAbove: time.Second}},
			robots:   "User-agent: *\nCrawl-delay: 2\n",
			want:     report.ReasonDelay,
			requests: fetched,
		},
		{
			name:     "a link that must not be followed, and robots.txt is not known",
			target:   func(t *Target) { t.LinkedFrom = "http://b.test/" },
			want:     report.ReasonNofollow,
			robots:   closedFile,
			requests: nil,
		},
		{
			name:     "EnforceUsage",
			settings: HostSettings{UsageSettings: UsageSettings{EnforceUsage: true, Purpose: usage.TrainAI}},
			robots:   "User-agent: *\nContent-Usage: train-ai=n\n",
			want:     report.ReasonUsage,
			requests: fetched,
		},
		{
			name:     "EnforceUsage and a file of the plugin",
			settings: HostSettings{UsageSettings: UsageSettings{EnforceUsage: true, Purpose: usage.TrainAI}},
			target:   func(t *Target) { t.IsFile = true },
			robots:   "User-agent: *\nContent-Usage: train-ai=n\n",
			want:     report.ReasonNoRule,
			allowed:  true,
			requests: fetched,
		},
		{
			name:     "the site of a Host header",
			target:   func(t *Target) { t.HostHeader = "b.test" },
			robots:   closedFile,
			want:     report.ReasonRule,
			requests: fetched,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sites := robotstest.Sites{"a.test": {"/robots.txt": test.robots}}
			inBubble(t, &Settings{HostSettings: test.settings}, sites, func(w *world) {
				w.Rules = []Rule{nofollowRule{}, usageRule{}}
				x := target("http://a.test/x")
				if test.target != nil {
					test.target(&x)
				}
				v := w.verdict(x)
				d := v.Decision(x.URL)
				if v.Reason != test.want || v.Rule.Allowed != test.allowed || d.Option != test.option {
					t.Errorf("got %s, allowed %v, by %q; want %s, %v, %q", v.Reason, v.Rule.Allowed, d.Option, test.want, test.allowed, test.option)
				}
				if d.Allowed != test.allowed || d.Reason != test.want || d.URL != "http://a.test/x" {
					t.Errorf("the Decision is another: %+v", d)
				}
				w.wantRequests(test.requests...)
				if known := w.IsKnown(w.t.Context(), time.Now(), x, w.f, false); known != (test.want != report.ReasonNofollow) {
					t.Errorf("robots.txt is known: %v", known)
				}
				r, err := w.Recall(x, w.f)
				switch {
				case test.want == report.ReasonNofollow:
					if err != errNotKnown {
						t.Errorf("Recall: %v", err)
					}
				case err != nil || test.want == report.ReasonRule && r.Rule != v.Rule:
					t.Errorf("Recall: %+v, %v", r.Rule, err)
				}
			})
		})
	}
}

// TestNoVerdict checks the errors of requests about which nothing is decided.
func TestNoVerdict(t *testing.T) {
	inBubble(t, new(Settings), nil, func(w *world) {
		verdict := func(x Target) error {
			_, err := w.Verdict(w.t.Context(), time.Now(), x, w.f, nil)
			return err
		}
		if err := verdict(target("http:///x")); err == nil {
			t.Error("a URL without a host has a verdict")
		}
		x := target("http://a.test/")
		x.HostHeader = "b test"
		if err := verdict(x); err == nil {
			t.Error("an invalid Host header has a verdict")
		}
		w.Shard = Shard{Of: 2, Index: 1 - ShardOf("a.test", 2)}
		foreign := (*report.ShardError)(nil)
		if err := verdict(target("http://a.test/")); !errors.As(err, &foreign) || foreign.Shard != 1-w.Shard.Index {
			t.Errorf("a host of another shard: %v", err)
		}
		w.Shard.Index = 1 - w.Shard.Index
		w.Policies.Stop()
		if err := verdict(target("http://a.test/")); err != report.ErrClosed {
			t.Errorf("after Stop: %v", err)
		}
	})
}

// TestShards checks that a shard does not depend on the port, and that a new shard takes hosts from
// others without moving any between them.
func TestShards(t *testing.T) {
	counts := make(map[int]int)
	for i := range 1000 {
		host := fmt.Sprint(i, ".test")
		three, four := ShardOf(host, 3), ShardOf(host, 4)
		if four != three && four != 3 {
			t.Errorf("%s moves from shard %d to %d", host, three, four)
		}
		if ShardOf(host+":8080", 4) != four {
			t.Errorf("%s has another shard with a port", host)
		}
		counts[four]++
	}
	for shard := range 4 {
		if n := counts[shard]; n < 200 || n > 300 {
			t.Errorf("shard %d has %d of 1000 hosts", shard, n)
		}
	}
}

// A quota is a Limit that denies all pages after some.
type quota struct{ left int }

func (q *quota) Judge(time.Time, Candidate) *Denial {
	if q.left > 0 {
		return nil
	}
	return &Denial{Reason: report.ReasonBudget, Describe: func(d *report.Decision) { d.MaxPagesPerHost = 7 }}
}

func (q *quota) Concerns(*HostSettings) bool             { return true }
func (q *quota) Take(now time.Time, c Candidate) *Denial { return q.Judge(now, c) }
func (q *quota) Undo(time.Time, string)                  {}

// A page is an Applicant.
type page struct{ fresh bool }

func (page) Complete(c Candidate) Candidate { return c }

func (p page) IsKnownFresh(context.Context, time.Time, *HostSettings) bool { return p.fresh }

// TestLimits checks that a limit denies what the rules allow, but no page that is fresh.
func TestLimits(t *testing.T) {
	inBubble(t, new(Settings), robotstest.Sites{"a.test": {}}, func(w *world) {
		x := target("http://a.test/")
		w.Limits = []Limit{&quota{left: 1}}
		if v := w.verdict(x); !v.Rule.Allowed {
			t.Error("denied below the limit")
		}
		w.Limits = append(w.Limits, new(quota))
		v := w.verdict(x)
		if d := v.Decision(x.URL); v.Rule.Allowed || d.Reason != report.ReasonBudget || d.MaxPagesPerHost != 7 {
			t.Errorf("got %+v", d)
		}
		for _, fresh := range []bool{false, true} {
			v, err := w.Verdict(w.t.Context(), time.Now(), x, w.f, page{fresh: fresh})
			if err != nil || v.Rule.Allowed != fresh {
				t.Errorf("fresh %v: allowed %v, error %v", fresh, v.Rule.Allowed, err)
			}
		}
		w.EnforceNow(&v, x.URL)
		if !v.Host.HasMark(reporter.LeftByBudget) {
			t.Error("the host has no mark of its limit")
		}
		markDenied(v.Host, report.ReasonRefused)
		if !v.Host.HasMark(reporter.LeftByRefusals) {
			t.Error("the host has no mark of its refusals")
		}
	})
}

// TestEnforce checks the errors and counts of verdicts, with and without a dry run.
func TestEnforce(t *testing.T) {
	for _, dry := range []bool{false, true} {
		sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\n"}}
		inBubble(t, new(Settings), sites, func(w *world) {
			w.DryRun = dry
			open := target("http://a.test/")
			v := w.verdict(open)
			if soft, err := w.Enforce(&v, open.URL, reporter.IDs{}, false); soft != nil || err != nil {
				t.Errorf("an allowed URL: %v, %v", soft, err)
			}
			if err := w.EnforceNow(&v, open.URL); err != nil {
				t.Error(err)
			}
			closed := target("http://a.test/x")
			v = w.verdict(closed)
			soft, err := w.Enforce(&v, closed.URL, reporter.IDs{}, true)
			if dry {
				soft, err = err, soft
			}
			denied := new(Denied)
			if soft != nil || !errors.As(err, &denied) || !denied.Redirect || denied.Decision.URL != "http://a.test/x" || denied.First != dry {
				t.Errorf("dry run %v: %v, %+v", dry, soft, denied)
			}
			err = w.EnforceNow(&v, closed.URL)
			if (err == nil) != dry || err != nil && !errors.As(err, &denied) || denied.First == dry && !dry {
				t.Errorf("dry run %v: %v", dry, err)
			}
			denials := 1
			if dry {
				denials = 2 // Enforce has counted one
			}
			counts := w.Statistics()
			if counts[report.ReasonNoRule] != 2 || counts[report.ReasonRule] != denials || v.Host.Stats(time.Now()).Denied != denials {
				t.Errorf("dry run %v: counts %v", dry, counts)
			}
		})
	}
}

// TestSilentHosts checks which denials are not notable, because the host does not respond.
func TestSilentHosts(t *testing.T) {
	silent := &policy.NoResponseError{}
	tests := []struct {
		name           string
		decision       report.Decision
		unread, silent bool
	}{
		{name: "a rule", decision: report.Decision{Reason: report.ReasonRule}},
		{name: "500", decision: report.Decision{Reason: report.ReasonUnreachable}, unread: true},
		{name: "no response", decision: report.Decision{Reason: report.ReasonUnreachable, Err: silent}, unread: true, silent: true},
		{name: "no response for long", decision: report.Decision{Reason: report.ReasonSiteDown, Err: silent}, unread: true, silent: true},
		{name: "WhenForbidden", decision: report.Decision{Reason: report.ReasonUnreachable, Option: policy.OptionWhenForbidden}},
	}
	inBubble(t, new(Settings), nil, func(w *world) {
		for i, test := range tests {
			d := &test.decision
			if IsUnread(d) != test.unread || IsSilent(d) != test.silent {
				t.Errorf("%s: unread %v, silent %v", test.name, IsUnread(d), IsSilent(d))
			}
			host := w.Wire.Hosts.At(time.Now(), fmt.Sprint(i, ".test"))
			if first := w.CountDenied(host, d, reporter.IDs{}); first == test.silent {
				t.Errorf("%s: notable %v", test.name, first)
			}
			if w.CountDenied(host, d, reporter.IDs{}) {
				t.Errorf("%s: a second denial is the first", test.name)
			}
		}
	})
}

// TestCrawlDelays checks the crawl delay in force and what is logged about it.
func TestCrawlDelays(t *testing.T) {
	const tenSeconds = "User-agent: *\nCrawl-delay: 10\n"
	tests := []struct {
		name     string
		settings HostSettings
		robots   string
		delay    time.Duration
		log      string
	}{
		{name: "none", robots: "User-agent: *\n", log: "no delay between requests to this host"},
		{name: "MinDelay", settings: HostSettings{Pace: pace.Rules{MinDelay: time.Second}}, robots: "User-agent: *\n", delay: time.Second},
		{name: "Crawl-delay", robots: tenSeconds, delay: 10 * time.Second},
		{name: "MaxCrawlDelay", settings: HostSettings{LongDelays: LongDelays{MaxCrawlDelay: 2 * time.Second}}, robots: tenSeconds, delay: 2 * time.Second, log: "longer than MaxCrawlDelay, capped"},
		{name: "SkipCrawlDelayAbove", settings: HostSettings{LongDelays: LongDelays{SkipCrawlDelayAbove: 2 * time.Second}}, robots: tenSeconds, delay: 2 * time.Second, log: "longer than SkipCrawlDelayAbove, host is skipped"},
		{name: "both", settings: HostSettings{LongDelays: LongDelays{MaxCrawlDelay: time.Minute, SkipCrawlDelayAbove: 2 * time.Second}}, robots: tenSeconds, delay: 2 * time.Second, log: "host is skipped"},
		{name: "a dialect without delays", settings: HostSettings{Reading: Reading{Dialect: dialect.Google()}}, robots: tenSeconds, log: "no delay"},
		{name: "HonorDelays", settings: HostSettings{Reading: Reading{Dialect: dialect.Google(), HonorDelays: true}}, robots: tenSeconds, delay: 10 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sites := robotstest.Sites{"a.test": {"/robots.txt": test.robots}}
			inBubble(t, &Settings{HostSettings: test.settings}, sites, func(w *world) {
				v := w.verdict(target("http://a.test/"))
				v.ObeyedBy(new(pace.Ticket))
				if got := v.Host.Delay(time.Now()); got != test.delay {
					t.Errorf("delay %v, want %v", got, test.delay)
				}
				if log := w.log.String(); test.log != "" && strings.Count(log, test.log) != 1 || test.log == "" && log != "" {
					t.Errorf("log %q, want %q once", log, test.log)
				}
			})
		})
	}
}

// TestSchedules checks that Visit-time and Request-rate become slots of the host.
func TestSchedules(t *testing.T) {
	file := "User-agent: *\nRequest-rate: 1/5m\nVisit-time: 0600-0845\n"
	inBubble(t, &Settings{HostSettings: HostSettings{Reading: Reading{HonorDelays: true}}}, robotstest.Sites{"a.test": {"/robots.txt": file}}, func(w *world) {
		v := w.verdict(target("http://a.test/"))
		s := v.Host.Stats(time.Now())
		if s.Opens.Sub(w.start) != 6*time.Hour || s.Source != report.SourceVisitTime || s.Line != 3 {
			t.Errorf("at midnight: %+v", s)
		}
		v.Host.Start(w.t.Context(), new(pace.Ticket), true)
		if s := v.Host.Stats(time.Now()); time.Since(w.start) != 6*time.Hour || s.Delay != 5*time.Minute || s.Closes.Sub(w.start) != 8*time.Hour+46*time.Minute {
			t.Errorf("after the start: %+v", s)
		}
	})
}

// TestLongWaits checks what is logged once when pages wait for long.
func TestLongWaits(t *testing.T) {
	tests := []struct {
		cause report.DelaySource
		name  string
		// again is whether the cause is logged for another host.
		again bool
	}{
		{cause: report.SourceCrawlDelay, name: "Crawl-delay", again: true},
		{cause: report.SourceRetryAfter, name: "Retry-After", again: true},
		{cause: report.SourceBackOff, name: "status 429 or 503", again: true},
		{cause: report.SourceRequestRate, name: "Request-rate", again: true},
		{cause: report.SourceVisitTime, name: "Visit-time", again: true},
		{cause: report.SourceMaxRate, name: "MaxRate"},
		{cause: report.SourceHours, name: "CrawlHours"},
		{cause: report.SourceAdaptive, name: "their response time"},
		{cause: report.SourceMinDelay, name: "MinDelay"},
	}
	inBubble(t, &Settings{HostSettings: HostSettings{Pace: pace.Rules{MinDelay: time.Minute}}}, nil, func(w *world) {
		a := w.Wire.Hosts.At(time.Now(), "a.test")
		b := w.Wire.Hosts.At(time.Now(), "b.test")
		for _, test := range tests {
			cause, _, first := w.Delays.causeOfWait(a, test.cause)
			_, _, second := w.Delays.causeOfWait(a, test.cause)
			_, _, other := w.Delays.causeOfWait(b, test.cause)
			if cause != test.name || !first || second || other != test.again {
				t.Errorf("%s: %q, first %v, second %v, other host %v", test.cause, cause, first, second, other)
			}
		}
		v := w.verdict(target("http://c.test/"))
		w.Delays.LogLongWait(time.Now(), v.Host, v.Policy)
		if log := w.log.String(); strings.Contains(log, "pages wait long") {
			t.Errorf("log %q", log)
		}
	})
	file := "User-agent: *\nCrawl-delay: 60\n"
	inBubble(t, new(Settings), robotstest.Sites{"a.test": {"/robots.txt": file}}, func(w *world) {
		v := w.verdict(target("http://a.test/"))
		for range 2 {
			w.Delays.LogLongWait(time.Now(), v.Host, v.Policy)
		}
		if log := w.log.String(); strings.Count(log, "pages wait long for their host because of Crawl-delay") != 1 {
			t.Errorf("log %q", log)
		}
	})
}

// TestCrawlHours checks when a host opens and closes, also on the days on which the clock is set.
func TestCrawlHours(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		when, err := time.ParseInLocation(time.DateTime, text, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	tests := []struct {
		name          string
		opens, closes time.Duration // in hours
		at            string
		closed        bool
		until         string // "" if it changes at no clock time
	}{
		{name: "before", opens: 9, closes: 17, at: "2000-03-05 08:59:59", closed: true, until: "2000-03-05 09:00:00"},
		{name: "open", opens: 9, closes: 17, at: "2000-03-05 09:00:00", until: "2000-03-05 17:00:00"},
		{name: "after", opens: 9, closes: 17, at: "2000-03-05 17:00:00", closed: true, until: "2000-03-06 09:00:00"},
		{name: "over midnight", opens: 22, closes: 6, at: "2000-03-05 23:00:00", until: "2000-03-06 06:00:00"},
		{name: "until midnight", opens: 20, closes: 0, at: "2000-03-05 23:00:00", until: "2000-03-06 00:00:00"},
		{name: "the clock is set forward", opens: 22, closes: 6, at: "2000-03-25 23:00:00", until: "2000-03-26 06:00:00"},
		{name: "the hour that is left out", opens: 2, closes: 3, at: "2000-03-26 01:00:00", closed: true, until: "2000-03-27 02:00:00"},
		{name: "the clock is set back", opens: 22, closes: 6, at: "2000-10-28 23:00:00", until: "2000-10-29 06:00:00"},
	}
	for _, test := range tests {
		h := &CrawlHours{Opens: test.opens * time.Hour, Closes: test.closes * time.Hour, Loc: berlin}
		slot := h.At(at(test.at))
		if slot.Closed != test.closed || !slot.Until.Equal(at(test.until)) {
			t.Errorf("%s: closed %v until %v, want %v until %s", test.name, slot.Closed, slot.Until, test.closed, test.until)
		}
	}
}

// TestPaces checks that the pace of a host is kept in a store, that a later record is not replaced,
// and that a store which fails is logged.
func TestPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		memory := store.NewMemory()
		defer memory.Close()
		p := paces{store: memory, log: slog.New(slog.NewTextHandler(&log, nil))}
		if k, err := p.Load("a.test"); k != nil || err != nil {
			t.Errorf("before the first record: %v, %v", k, err)
		}
		now := time.Now()
		p.Save("a.test", pace.Kept{At: now, Delay: time.Minute})
		time.Sleep(time.Second)
		p.Save("a.test", pace.Kept{At: now.Add(-time.Second), Delay: time.Hour})
		if k, err := p.Load("a.test"); err != nil || k.Delay != time.Minute {
			t.Errorf("got %+v, %v", k, err)
		}
		p.Save("a.test", pace.Kept{At: time.Now(), Delay: time.Hour})
		if k, err := p.Load("a.test"); err != nil || k.Delay != time.Hour {
			t.Errorf("after a later record: %+v, %v", k, err)
		}
		for _, broken := range []string{"{", `{"version":9}`} {
			memory.Update(t.Context(), paceKey("b.test"), time.Hour, func([]byte) ([]byte, error) { return []byte(broken), nil })
			if k, err := p.Load("b.test"); k != nil || err == nil {
				t.Errorf("%s: %v, %v", broken, k, err)
			}
		}
		memory.Close()
		p.Save("a.test", pace.Kept{At: time.Now()})
		if text := log.String(); strings.Count(text, "stored pace not available") != 2 || strings.Count(text, "pace could not be stored") != 1 {
			t.Errorf("log %s", text)
		}
	})
}

// TestOwn checks that a request of the plugin's own is checked again if robots.txt changes while it
// waits, and that it is not sent to a private address.
func TestOwn(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 172800\n"}}
	inBubble(t, new(Settings), sites, func(w *world) {
		send := func() (int, error) {
			req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://a.test/s.xml", nil)
			if err != nil {
				t.Fatal(err)
			}
			check := func(_ exchange.Origin, turn time.Time) (Verdict, error) {
				f := w.f
				f.Turn = turn
				v, err := w.Verdict(w.t.Context(), time.Now(), target("http://a.test/s.xml"), f, nil)
				if err == nil && !v.Rule.Allowed {
					err = errors.New("denied")
				}
				return v, err
			}
			resp, _, err := w.SendOwn(req, 0, exchange.Lead{Kind: report.RequestSitemap, Client: exchange.SeamClient{}}, check)
			if err != nil {
				return 0, err
			}
			resp.Body.Close()
			return resp.StatusCode, nil
		}
		if status, err := send(); status != 404 || err != nil {
			t.Errorf("got %d, %v", status, err)
		}
		w.web.Set("a.test", "/robots.txt", closedFile)
		if _, err := send(); err == nil || err.Error() != "denied" {
			t.Errorf("after robots.txt has changed: %v", err)
		}
	})
}

// TestCleaned checks that Clean-param holds under the dialect of Yandex, once robots.txt is known.
func TestCleaned(t *testing.T) {
	file := "User-agent: *\nClean-param: ref\n"
	inBubble(t, &Settings{HostSettings: HostSettings{Reading: Reading{Dialect: dialect.Yandex()}}}, robotstest.Sites{"a.test": {"/robots.txt": file}}, func(w *world) {
		x := target("http://a.test/p?ref=1&id=2")
		if got := w.Cleaned(x.URL); got != x.URL {
			t.Errorf("before robots.txt is known: %v", got)
		}
		w.verdict(x)
		if got := w.Cleaned(x.URL).String(); got != "http://a.test/p?id=2" {
			t.Errorf("got %s", got)
		}
		if got := w.Policies.LastUserAgent(); got != "Bot/1.0" {
			t.Errorf("the last user agent is %q", got)
		}
	})
}

// TestShadows checks how the decisions of two dialects are compared.
func TestShadows(t *testing.T) {
	// Google reads the lines after the blank one as a part of the group.
	file := "User-agent: *\nDisallow: /x\nAllow: /x*y\n"
	inBubble(t, new(Settings), robotstest.Sites{"a.test": {"/robots.txt": file}, "b.test": {"/robots.txt": 500}}, func(w *world) {
		dialects := []dialect.Dialect{dialect.Google(), dialect.Temoto()}
		w.Policies = NewPolicies(w.Settings, dialects, nil, w.Wire)
		defer w.Policies.Close()
		defer w.Policies.Stop()
		shadows := NewShadows(dialects)
		if !shadows.InUse() || NewShadows(nil).InUse() {
			t.Error("InUse")
		}
		for _, u := range []string{"http://a.test/", "http://a.test/x", "http://a.test/xzy", "http://b.test/"} {
			x := target(u)
			v := w.verdict(x)
			shadows.Compare(w.t.Context(), time.Now(), &v, &x, w.f)
		}
		stats := shadows.Statistics()
		for i, s := range stats {
			if s.Dialect != dialects[i] || s.Compared != 4 || s.Stricter+s.Laxer != len(s.Differences) {
				t.Errorf("%v: %+v", dialects[i], s)
			}
		}
		if n := len(stats[1].Differences); n == 0 {
			t.Error("the built-in check does not differ")
		}
		w.wantRequests("0s /robots.txt", "0s /robots.txt")
	})
}
