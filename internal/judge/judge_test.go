package judge

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// The tests of this file need unexported names: bounds of memory, and allocations.

// newTestJudge returns a judge with these settings, and a fetcher that uses web.
func newTestJudge(t *testing.T, web *robotstest.Web, s *Settings) (*Judge, exchange.Fetcher) {
	t.Helper()
	next := web.Transport()
	t.Cleanup(next.CloseIdleConnections)
	s.Complete(false)
	hosts := pace.New(func(host string) *pace.Rules { return &s.Of(host).Pace })
	w := exchange.NewWire(hosts, nil, reporter.New(slog.New(slog.DiscardHandler)))
	w.Client = &http.Client{Transport: next}
	w.Networks = netguard.New(func(name string) netguard.Host { return hosts.At(time.Now(), name) }, netguard.AllowAll)
	w.Quota = netguard.NewQuota(hostname.Registrable, errors.New("too many"))
	p := NewPolicies(s, nil, nil, w)
	t.Cleanup(func() {
		p.Stop()
		w.Close()
		p.Close()
		w.Report.Events.Close()
	})
	return New(s, w, p), exchange.Fetcher{Wire: w, Client: exchange.SeamClient{}}
}

// TestReadersAreShared checks that settings that read robots.txt alike share a reader, that others
// do not, and that no reader is made twice.
func TestReadersAreShared(t *testing.T) {
	web := robotstest.New(t, nil)
	settings := new(Settings)
	add := func(pattern string, s HostSettings) { settings.Rules = append(settings.Rules, forHosts(pattern, s)) }
	for i := range 20 {
		add(fmt.Sprintf("h%d.test", i), HostSettings{Pace: pace.Rules{MinDelay: time.Duration(i+1) * time.Second}, HostLimits: HostLimits{MaxPagesPerHost: i + 1}})
	}
	add("google.test", HostSettings{Reading: Reading{Dialect: dialect.Google()}})
	add("given.test", HostSettings{Reading: Reading{RobotsTxt: []byte{}}})
	add("open.test", HostSettings{Reading: Reading{WhenUnreachable: policy.AllowAll}})
	add("token.test", HostSettings{Reading: Reading{Tokens: []string{"Other"}}})
	j, _ := newTestJudge(t, web, settings)
	first := make(map[string]*Reader)
	for range 3 {
		for name := range 40 {
			userAgent := fmt.Sprintf("Bot%c%c/1.0", 'a'+name/26, 'a'+name%26)
			for _, host := range []string{"a.test", "h0.test", "h19.test", "google.test", "given.test", "open.test", "token.test"} {
				s := j.Settings.Of(host)
				r, err := j.Policies.Reader(s, userAgent)
				if err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(s.alike.number, r.Name)
				if first[key] == nil {
					first[key] = r
				}
				if r.cache != first[key].cache {
					t.Errorf("%s on %s has a second reader", userAgent, host)
				}
				if tokens := s.ProductTokens(s.Dialect, userAgent); r.tokens != tokens[0] {
					t.Errorf("%s on %s is read as %s", userAgent, host, r.tokens)
				}
			}
		}
	}
	if got, want := len(j.Policies.readers), 40*4+1; got != want {
		t.Errorf("%d readers, want %d", got, want)
	}
}

// TestReadersAreBounded checks that readers are dropped when there are many names, that their
// policies stay within one bound, and that a request that still has a dropped reader is judged by a
// new one with the same name.
func TestReadersAreBounded(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: Botaaa\nDisallow: /\n"}})
	j, f := newTestJudge(t, web, new(Settings))
	decide := func(v *Verdict, userAgent string) {
		t.Helper()
		a := dialect.Authority{Scheme: "http", Host: "a.test"}
		var err error
		v.Settings = j.Settings.Of("a.test")
		if v.Reader == nil {
			v.Reader, err = j.Policies.Reader(v.Settings, userAgent)
		}
		if err == nil {
			v.Policy, err = j.Policies.get(t.Context(), v, a, userAgent, f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var before Verdict
	decide(&before, "Botaaa/1.0")
	for i := 1; i < 2*maxReaders; i++ {
		var v Verdict
		decide(&v, fmt.Sprintf("Bot%c%c%c/1.0", 'a'+i/676, 'a'+i/26%26, 'a'+i%26))
		if v.Policy.Group().Name() != "" {
			t.Fatalf("name %d has the group of %q", i, v.Policy.Group().Name())
		}
		if n := len(j.Policies.readers); n > maxReaders {
			t.Fatalf("%d readers", n)
		}
	}
	again := Verdict{Reader: before.Reader}
	decide(&again, "Botaaa/1.0")
	if again.Reader.cache == before.Reader.cache {
		t.Error("the first reader was not dropped")
	}
	if got := again.Policy.Group().Name(); got != "Botaaa" || again.Reader.tokens != "Botaaa" {
		t.Errorf("the request is judged by the group of %q for %q", got, again.Reader.tokens)
	}
	if n := len(web.Log("a.test")); n != 2 {
		t.Errorf("%d requests for robots.txt, want 2", n)
	}
	if n := j.Policies.Statistics()["rules"].Count; n != maxReaders {
		t.Errorf("%d policies are counted, want %d", n, maxReaders)
	}
}

// TestTDMFilesAreBounded checks that neither many sites nor large files take unlimited memory, and
// that a file that is being read is kept.
func TestTDMFilesAreBounded(t *testing.T) {
	now := time.Now()
	site := func(i int) dialect.Authority {
		return dialect.Authority{Scheme: "https", Host: fmt.Sprintf("%d.test", i)}
	}
	for _, size := range []int{0, maxTDMFile} {
		var files tdmFiles
		if _, known, reading := files.claim(site(-1), now); known || reading != nil {
			t.Fatal("the first caller must read the file")
		}
		for i := range 2 * maxTDMSites {
			files.claim(site(i), now)
			files.put(site(i), tdmCopy{size: size, expires: now.Add(time.Hour)}, nil)
		}
		sum := 0
		for _, s := range files.sites {
			sum += s.size
		}
		if len(files.sites) > maxTDMSites || files.size > maxTDMSizes || sum != files.size {
			t.Errorf("%d sites, %d bytes, counted as %d", len(files.sites), sum, files.size)
		}
		if _, known, _ := files.claim(site(2*maxTDMSites-1), now); !known {
			t.Error("the last file is not known")
		}
		if _, known, reading := files.claim(site(-1), now); known || reading == nil {
			t.Error("a file that is being read was dropped")
		}
		files.put(site(-1), tdmCopy{}, errors.New("the context has ended"))
		if _, known, reading := files.claim(site(-1), now); known || reading != nil {
			t.Error("after an error, the next caller must read the file")
		}
	}
}

// TestRecentIsBounded checks that the verdicts for Plugin.Usage do not take unlimited memory.
func TestRecentIsBounded(t *testing.T) {
	var s Uses
	var last *url.URL
	for range 3 * maxRecent {
		last = &url.URL{Host: "a.test"}
		s.add(last, Verdict{Reason: report.ReasonRule}, usage.Preferences{})
		s.add(last, Verdict{Reason: report.ReasonNoRule}, usage.Preferences{})
	}
	if len(s.recent) != maxRecent || len(s.order) != maxRecent {
		t.Errorf("%d verdicts, %d in order", len(s.recent), len(s.order))
	}
	v, known := s.Find(last)
	if !known || v.Reason != report.ReasonNoRule {
		t.Errorf("the last verdict is %v, known %v", v.Reason, known)
	}
	if n := s.Statistics().Search.Unknown; n != 6*maxRecent {
		t.Errorf("%d pages", n)
	}
}

// TestReasonsAreCounted checks that each Reason is counted, also one that newDecisions does not name.
func TestReasonsAreCounted(t *testing.T) {
	for _, r := range []report.Reason{report.ReasonRule, report.ReasonBudget, "forgotten"} {
		d := newDecisions()
		d.add(r)
		counts := d.counts()
		if len(counts) != 1 || counts[r] != 1 {
			t.Errorf("%s: got the counts %v", r, counts)
		}
	}
}
