package judge

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// TestSettings checks which settings apply to a host, and what they say together.
func TestSettings(t *testing.T) {
	s := &Settings{
		HostSettings: HostSettings{Pace: pace.Rules{MinDelay: 5 * time.Second}, UsageSettings: UsageSettings{Purpose: usage.Search}},
		Rules: []HostRule{
			forHosts("*", HostSettings{Pace: pace.Rules{MinDelay: 4 * time.Second}}),
			forHosts("*.a.test", HostSettings{Pace: pace.Rules{MinDelay: 2 * time.Second}, UsageSettings: UsageSettings{Purpose: usage.TrainAI}}),
			forHosts("b.test:8080", HostSettings{Pace: pace.Rules{MinDelay: 3 * time.Second}, Grouping: 1}),
		},
	}
	s.Complete(false)
	for host, want := range map[string]time.Duration{
		"www.a.test":      2 * time.Second,
		"www.a.test:8080": 2 * time.Second,
		"b.test:8080":     3 * time.Second,
		"b.test":          4 * time.Second,
		"[::1]:80":        4 * time.Second,
	} {
		if got := s.Of(host).Pace.MinDelay; got != want {
			t.Errorf("%s: MinDelay %v, want %v", host, got, want)
		}
	}
	groupings := s.Groupings()
	if groupings == nil || groupings("b.test:8080") != 1 || groupings("b.test") != exchange.Alone || new(Settings).Groupings() != nil {
		t.Error("Groupings")
	}
	if got := s.Rate(); got != "at most one request to a host every 2s" || new(Settings).Rate() != "" {
		t.Errorf("Rate %q", got)
	}
	if got, want := s.Purposes(), "search, train-ai"; got != want {
		t.Errorf("Purposes %q, want %q", got, want)
	}
	if !s.CompliesEverywhere() {
		t.Error("RFC 9309 is not obeyed everywhere")
	}
	s.Rules = append(s.Rules, forHosts("c.test", HostSettings{Permission: permitted}))
	if s.CompliesEverywhere() {
		t.Error("RFC 9309 is obeyed although robots.txt is ignored")
	}
}

// permitted is a permission that has not ended in any test.
var permitted = report.Permission{By: "the owner", Reference: "a contract", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}

// forHosts returns a rule that gives the hosts of a pattern these settings.
func forHosts(pattern string, h HostSettings) HostRule {
	return HostRule{Pattern: pattern, Apply: func(_ string, s *HostSettings) (bool, error) {
		*s = h
		return true, nil
	}}
}

// TestSettingsByHost checks that the settings of a host are made once, that a rule which changes nothing
// takes no memory for them, that the errors of rules are kept, and that old settings are forgotten.
func TestSettingsByHost(t *testing.T) {
	made := 0
	fails := errors.New("no options")
	s := &Settings{
		Rules: []HostRule{
			forHosts("a.test", HostSettings{Permission: permitted}),
			{ByHost: true, Apply: func(host string, s *HostSettings) (bool, error) {
				made++
				if host == "bad.test" {
					return false, fails
				}
				s.MaxPagesPerHost = len(host)
				return host != "same.test", nil
			}},
		},
	}
	s.Complete(false)
	for range 3 {
		if a := s.Of("a.test"); a.Permission != permitted || a.MaxPagesPerHost != 6 || a != s.Of("a.test") {
			t.Errorf("a.test: %+v", a)
		}
		if s.Of("same.test") != &s.HostSettings {
			t.Error("same.test has settings of its own")
		}
		if s.Of("bad.test").Err != fails {
			t.Error("the error is lost")
		}
	}
	if made != 3 {
		t.Errorf("settings were made %d times, want 3", made)
	}
	if !s.IsForAny(func(*HostSettings) bool { return false }) || s.CompliesEverywhere() || len(s.All()) != 2 || s.Rate() != "" {
		t.Error("the settings are known, although a rule depends on the host")
	}
	for i := range maxByHost {
		s.Of(strconv.Itoa(i))
	}
	if len(s.made) > maxByHost+1 {
		t.Errorf("%d settings are kept", len(s.made))
	}
	made = 0
	if s.Of("a.test").MaxPagesPerHost != 6 || made != 1 {
		t.Errorf("the settings of a forgotten host are made %d times", made)
	}
}

// TestNames checks the names under which robots.txt is read, and the warnings about them.
func TestNames(t *testing.T) {
	collector := "Collector/1.0"
	tests := []struct {
		name     string
		settings HostSettings
		agents   []string
		token    string // of the last one
		log      string
	}{
		{name: "the product", agents: []string{"Bot/1.0 (+http://b.test)"}, token: "Bot"},
		{name: "ProductToken", settings: HostSettings{Reading: Reading{Tokens: []string{"A", "B"}}}, agents: []string{GoUserAgent}, token: "A B"},
		{name: "two names", agents: []string{"Bot/1.0", "Other/1.0"}, token: "Other", log: "user agent changes during the crawl"},
		{name: "no name", agents: []string{"(none)"}, log: "user agent names no crawler"},
		{name: "net/http", agents: []string{GoUserAgent}, token: "Go-http-client", log: "requests have no User-Agent header"},
		{name: "no collector", agents: []string{DefaultUserAgent, "Bot/1.0"}, token: "Bot"},
		{name: "the built-in check", settings: HostSettings{Reading: Reading{Dialect: dialect.Temoto()}}, agents: []string{"Bot/1.0"}, token: collector},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.settings.Pace.MinDelay = time.Second
			inBubble(t, &Settings{HostSettings: test.settings}, robotstest.Sites{"a.test": {}}, func(w *world) {
				w.f.Client = exchange.SeamClient{Name: &collector}
				x := target("http://a.test/")
				var v Verdict
				for _, agent := range test.agents {
					x.UserAgent = agent
					v = w.verdict(x)
				}
				if got := v.Decision(x.URL).Token; got != test.token {
					t.Errorf("token %q, want %q", got, test.token)
				}
				wantWarning(t, w, test.log)
			})
		})
	}
}

func wantWarning(t *testing.T, w *world, text string) {
	t.Helper()
	log := w.log.String()
	if text == "" && log != "" || text != "" && strings.Count(log, text) != 1 {
		t.Errorf("log %q, want %q", log, text)
	}
}

// TestTargets checks the target of a request: its Host header counts if the user has set it.
func TestTargets(t *testing.T) {
	u := target("http://a.test/").URL
	tests := []struct {
		host   string
		header http.Header
		want   string
	}{
		{host: "a.test"},
		{},
		{host: "b.test", header: http.Header{"Host": {"b.test"}}, want: "b.test"},
		{host: "b.test"}, // a callback has changed the URL
	}
	for _, test := range tests {
		if got := TargetOf(u, test.host, test.header); got.HostHeader != test.want || got.UserAgent != "" {
			t.Errorf("%q, %v: %+v", test.host, test.header, got)
		}
	}
	for scheme, want := range map[string]bool{"http": true, "https": true, "ftp": true, "file": false} {
		if HasRobots(&url.URL{Scheme: scheme}) != want {
			t.Errorf("robots.txt applies to %s: %v", scheme, !want)
		}
	}
}

// TestMarks checks that each limit has one mark of a request, and where marks come from.
func TestMarks(t *testing.T) {
	var m Marks
	if !m.None() || (*Marks)(nil).Of(1) != (Mark{}) || m.Of(1) != (Mark{}) {
		t.Error("marks of nothing")
	}
	for i := range 3 {
		m.Set(Mark{By: i, Count: 1})
		m.Set(Mark{By: i, Count: 10 + i})
	}
	next := m.HandOn(OfCarrier)
	again := next.HandOn(OfRedirect)
	m.Clear(0)
	m.Clear(9)
	got := fmt.Sprint(m.Of(0).Count, m.Of(1).Count, m.Of(2).Count, next.Of(0).Source, next.Of(2).Source, again.Of(1).Source, again.Of(3))
	if want := fmt.Sprint(0, 11, 12, OfCarrier, OfCarrier, OfRedirect, Mark{}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m.Clear(1)
	m.Clear(2)
	if !m.None() || next.None() {
		t.Error("Clear")
	}
}

// TestTDM checks what a TDMRep file says about a page, and how often it is requested.
func TestTDM(t *testing.T) {
	const file = "/.well-known/tdmrep.json"
	const reserved = `[{"location": "/", "tdm-reservation": 1}]`
	tests := []struct {
		name   string
		robots string
		file   any
		other  any // the file of b.test
		denied bool
		// requests are those for the files in 26 hours, with a page at the beginning, after 30 minutes,
		// after 2 and after 26 hours
		requests int
	}{
		{name: "reserved", file: reserved, denied: true, requests: 2},
		{name: "absent", requests: 2},
		{name: "malformed", file: "{", requests: 2},
		{name: "denied by robots.txt", robots: "User-agent: *\nDisallow: /.well-known\n", file: reserved},
		{name: "a temporary error", file: 503, requests: 3},
		{name: "redirected", file: robotstest.Redirect("http://b.test/t"), other: reserved, denied: true, requests: 4},
		{name: "redirected too often", file: robotstest.Redirect(file), requests: 12},
		{name: "redirected to no site", file: robotstest.Redirect("ftp://b.test/"), requests: 2},
		{name: "too long", file: make([]byte, maxTDMFile+1), requests: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			settings := &Settings{HostSettings: HostSettings{UsageSettings: UsageSettings{TDMRep: true, EnforceUsage: true, Purpose: usage.TrainAI}}}
			sites := robotstest.Sites{
				"a.test": {"/robots.txt": test.robots, file: test.file},
				"b.test": {"/t": test.other},
			}
			inBubble(t, settings, sites, func(w *world) {
				w.Rules = []Rule{usageRule{}}
				w.f.ReadsTDM = true
				x := target("http://a.test/")
				var v Verdict
				for _, at := range []time.Duration{0, 30 * time.Minute, 2 * time.Hour, 26 * time.Hour} {
					time.Sleep(time.Until(w.start.Add(at)))
					v = w.verdict(x)
				}
				if v.Rule.Allowed == test.denied {
					t.Errorf("allowed %v", v.Rule.Allowed)
				}
				n := 0
				for _, r := range w.web.Log("") {
					if r.URI == file || r.URI == "/t" {
						n++
					}
				}
				if n != test.requests {
					t.Errorf("%d requests for files, want %d: %v", n, test.requests, w.web.Log("").Schedule())
				}
				w.f.ReadsTDM = false
				if again := w.verdict(x); again.Rule.Allowed != v.Rule.Allowed {
					t.Errorf("by the known file: allowed %v", again.Rule.Allowed)
				}
			})
		})
	}
}

// TestUse checks the counts of the preferences of fetched pages.
func TestUse(t *testing.T) {
	inBubble(t, &Settings{HostSettings: HostSettings{UsageSettings: UsageSettings{Purpose: usage.TrainAI}}}, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nContent-Usage: train-ai=n, search=y\n"},
	}, func(w *world) {
		if w.Uses.Statistics() != nil {
			t.Error("counts before the first page")
		}
		x := target("http://a.test/")
		v := w.verdict(x)
		w.RecordUse(v, &http.Response{Header: http.Header{}, Request: &http.Request{URL: x.URL}})
		v.Rule.Allowed = false
		w.RecordUse(v, &http.Response{Header: http.Header{}, Request: &http.Request{URL: x.URL}})
		s := w.Uses.Statistics()
		if s.TrainAI != (report.UsageCounts{Disallowed: 1, Unknown: 1}) || s.Search != (report.UsageCounts{Allowed: 1, Unknown: 1}) {
			t.Errorf("counts %+v", s)
		}
		if (&Verdict{Reason: report.ReasonRule}).preferences(x.URL) != (usage.Preferences{}) {
			t.Error("a denied page has preferences")
		}
	})
}

// TestRobotsTxtWarnings checks that the lines of RobotsTxt which the dialect ignores are reported.
func TestRobotsTxtWarnings(t *testing.T) {
	warnings := 0
	warn := func(string, ...any) { warnings++ }
	new(HostSettings).RobotsTxtWarnings(warn)
	(&HostSettings{Reading: Reading{RobotsTxt: []byte("User-agent: *\nDisallow: /x\n")}}).RobotsTxtWarnings(warn)
	if warnings != 0 {
		t.Error("a warning about good lines")
	}
	(&HostSettings{Reading: Reading{RobotsTxt: []byte("Disalow: /x\n")}}).RobotsTxtWarnings(warn)
	if warnings != 1 {
		t.Error("no warning about a misspelled line")
	}
}
