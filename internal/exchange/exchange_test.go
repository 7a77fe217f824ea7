package exchange

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

var errRefused = errors.New("refused")

// TestPace checks when requests start, and the events of them, if responses slow the host down.
func TestPace(t *testing.T) {
	statuses := func(headers http.Header, all ...int) func(*http.Request) *http.Response {
		return func(*http.Request) *http.Response {
			status := all[0]
			if len(all) > 1 {
				all = all[1:]
			}
			if status < 400 {
				return respond(status, nil)
			}
			return respond(status, headers)
		}
	}
	tests := []struct {
		name   string
		rules  pace.Rules
		answer func(*http.Request) *http.Response
		starts []string
		events []string
		log    string
	}{
		{
			name:   "MinDelay",
			rules:  pace.Rules{MinDelay: 2 * time.Second},
			answer: statuses(nil, 200),
			starts: []string{"0s", "2s", "4s"},
			events: []string{
				"0s started a.test for=sitemap delay=2s source=min_delay",
				"0s answered a.test for=sitemap status=200",
				"2s started a.test for=sitemap gap=2s delay=2s source=min_delay",
				"2s answered a.test for=sitemap status=200",
				"4s started a.test for=sitemap gap=2s delay=2s source=min_delay",
				"4s answered a.test for=sitemap status=200",
			},
		},
		{
			name:   "429 and recovery",
			rules:  pace.Rules{MinDelay: 100 * time.Millisecond},
			answer: statuses(nil, 429, 200),
			starts: []string{"0s", "1s", "2s"},
			events: []string{
				"0s started a.test for=sitemap delay=100ms source=min_delay",
				"0s slowed a.test status=429 delay=1s source=back_off",
				"0s answered a.test for=sitemap status=429",
				"1s started a.test for=sitemap gap=1s delay=1s source=back_off",
				"1s recovered a.test status=200 delay=1s source=back_off",
				"1s answered a.test for=sitemap status=200",
				"2s started a.test for=sitemap gap=1s delay=840.896415ms source=back_off",
				"2s answered a.test for=sitemap status=200",
			},
			log: "host is throttling, slowing down\" host=a.test url=http://a.test/ status=429 delay=1s count=0",
		},
		{
			name:   "Retry-After",
			answer: statuses(http.Header{"Retry-After": {"90"}}, 503, 200),
			starts: []string{"0s", "1m30s", "1m31s"},
			events: []string{
				"0s started a.test for=sitemap",
				"0s slowed a.test status=503 delay=1s source=retry_after until=1m30s",
				"0s answered a.test for=sitemap status=503",
				"1m30s started a.test for=sitemap gap=1m30s delay=1s source=back_off",
				"1m30s recovered a.test status=200 delay=1s source=back_off",
				"1m30s answered a.test for=sitemap status=200",
				"1m31s started a.test for=sitemap gap=1s delay=840.896415ms source=back_off",
				"1m31s answered a.test for=sitemap status=200",
			},
			log: "host is throttling, slowing down",
		},
		{
			name:   "a single 503",
			answer: statuses(nil, 503, 200),
			starts: []string{"0s", "0s", "0s"},
			events: []string{
				"0s started a.test for=sitemap",
				"0s answered a.test for=sitemap status=503",
				"0s started a.test for=sitemap",
				"0s answered a.test for=sitemap status=200",
				"0s started a.test for=sitemap",
				"0s answered a.test for=sitemap status=200",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.rules = test.rules
				w.answer = test.answer
			}, func(w *world) {
				var want []string
				for _, start := range test.starts {
					w.get(new(Exchange), "http://a.test/", Lead{Kind: report.RequestSitemap})
					want = append(want, start+" GET a.test/")
				}
				w.wantRequests(want...)
				w.wantEvents(test.events...)
				w.wantLog(test.log)
			})
		})
	}
}

// TestPermit checks that a permit decides again after the wait, and that robots.txt is read at most
// once in it.
func TestPermit(t *testing.T) {
	tests := []struct {
		name     string
		current  []bool // the results of Current
		check    error
		want     string
		checks   []time.Duration // the turns that Check got
		requests []string
	}{
		{
			name:     "robots.txt is known",
			current:  []bool{true},
			want:     "200",
			checks:   []time.Duration{-1},
			requests: []string{"0s GET a.test/", "1s GET a.test/x"},
		},
		{
			name:     "denied now",
			current:  []bool{true},
			check:    errRefused,
			want:     "refused",
			checks:   []time.Duration{-1},
			requests: []string{"0s GET a.test/"},
		},
		{
			name:     "robots.txt is read",
			current:  []bool{false, true},
			want:     "200",
			checks:   []time.Duration{time.Second, time.Second},
			requests: []string{"0s GET a.test/", "2s GET a.test/x"},
		},
		{
			name:     "the newer robots.txt was dropped",
			current:  []bool{false, false},
			want:     "200",
			checks:   []time.Duration{time.Second},
			requests: []string{"0s GET a.test/", "2s GET a.test/x"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w *world) { w.rules.MinDelay = time.Second }, func(w *world) {
				w.get(new(Exchange), "http://a.test/", Lead{})
				var checks []time.Duration
				permit := &Permit{
					Current: func(time.Time) bool {
						now := test.current[0]
						test.current = test.current[1:]
						return now
					},
					Check: func(turn time.Time) error {
						since := time.Duration(-1)
						if !turn.IsZero() {
							since = turn.Sub(w.start)
						}
						checks = append(checks, since)
						return test.check
					},
				}
				x := &Exchange{Permit: permit}
				if got := w.get(x, "http://a.test/x", Lead{}); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
				if !slices.Equal(checks, test.checks) {
					t.Errorf("Check got the turns %v, want %v", checks, test.checks)
				}
				w.wantRequests(test.requests...)
				if w.host("a.test").Stats(time.Now()).Busy {
					t.Error("the host is still busy")
				}
			})
		})
	}
}

// TestAwait checks which standings end the wait.
func TestAwait(t *testing.T) {
	tests := []struct {
		name          string
		looks         []Standing
		check         error
		waits, checks int
		fails         bool
	}{
		{name: "same", looks: []Standing{Same}, waits: 1},
		{name: "changed", looks: []Standing{Changed}, waits: 1, checks: 1},
		{name: "changed and denied", looks: []Standing{Changed}, check: errRefused, waits: 1, checks: 1, fails: true},
		{name: "unread", looks: []Standing{Unread, Same}, waits: 2, checks: 1},
		{name: "unread and denied", looks: []Standing{Unread}, check: errRefused, waits: 1, checks: 1, fails: true},
		{name: "unread and changed", looks: []Standing{Unread, Changed}, waits: 2, checks: 2},
	}
	for _, test := range tests {
		waits, checks := 0, 0
		wait := func() error {
			waits++
			return nil
		}
		look := func() Standing { return test.looks[waits-1] }
		err := Await(wait, look, func() error {
			checks++
			return test.check
		})
		if waits != test.waits || checks != test.checks || (err != nil) != test.fails {
			t.Errorf("%s: %d waits, %d checks, error %v; want %d, %d, error %v",
				test.name, waits, checks, err, test.waits, test.checks, test.fails)
		}
	}
	if err := Await(func() error { return errRefused }, nil, nil); err != errRefused {
		t.Errorf("the error of the wait: got %v", err)
	}
}

// TestAgain checks that a request which the transport sends once more takes another turn, that the
// events say so, and that nothing is sent after a turn was refused.
func TestAgain(t *testing.T) {
	inBubble(t, func(w *world) { w.rules.MinDelay = time.Second }, func(w *world) {
		u := mustParse("http://a.test/")
		x := &Exchange{Wire: w.Wire, Host: w.host("a.test"), Through: w}
		x.Trace.Report = w.Report
		x.Trace.URL = u
		x.Trace.Kind = report.RequestPage
		if err := x.takeTurn(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		if x.Repeats() || !x.WasSent() {
			t.Error("before a repetition: Repeats, or not WasSent")
		}
		if err := x.Again(w.t.Context()); err != nil || !x.Repeats() {
			t.Errorf("Again: %v, Repeats %v", err, x.Repeats())
		}
		err := x.Repeat(func() error { return errRefused })
		if err != errRefused || !x.WasSent() {
			t.Errorf("Repeat: %v, WasSent %v", err, x.WasSent())
		}
		x.Sent() // a connection that was closed before
		if err := x.Again(w.t.Context()); err != context.Canceled {
			t.Errorf("Again after a refusal: %v", err)
		}
		x.Ended(0, errRefused)
		w.wantEvents(
			"0s started a.test for=page delay=1s source=min_delay",
			"0s answered a.test for=page more=true err=collyrobots: the connection was dropped before an answer",
			"1s started a.test for=retry gap=1s delay=1s source=min_delay",
			"1s answered a.test for=retry more=true err=collyrobots: the connection was dropped before an answer",
			"1s unsent a.test for=retry err=refused",
		)
		if s := w.host("a.test").Stats(time.Now()); s.Busy || s.Requests != 2 {
			t.Errorf("busy %v, %d requests; want idle and 2", s.Busy, s.Requests)
		}
	})
}

// TestUnsent checks that a request which was never written is not counted. The next one keeps the
// delay all the same.
func TestUnsent(t *testing.T) {
	inBubble(t, func(w *world) { w.rules.MinDelay = time.Minute }, func(w *world) {
		x := &Exchange{Wire: w.Wire, Host: w.host("a.test"), Through: http.DefaultTransport}
		x.Trace.Report = w.Report
		x.Trace.URL = mustParse("http://a.test/")
		if err := x.takeTurn(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		x.Ended(0, errRefused)
		w.get(new(Exchange), "http://a.test/", Lead{})
		w.wantRequests("1m0s GET a.test/")
		if s := w.host("a.test").Stats(time.Now()); s.Requests != 1 {
			t.Errorf("%d requests, want 1", s.Requests)
		}
		left := &Exchange{Wire: w.Wire, Host: w.host("b.test"), Through: w}
		left.Trace.Report = w.Report
		left.Trace.URL = mustParse("http://b.test/")
		if err := left.awaitTurn(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		left.Leave()
		if !left.WasSent() {
			t.Error("a request that the program sends was not sent")
		}
		left.SetUnsent()
		left.GiveBack()
		if s := w.host("b.test").Stats(time.Now()); s.Requests != 0 {
			t.Errorf("%d requests, want none", s.Requests)
		}
	})
}

// TestPrivateNetworks checks which requests to private addresses are sent, if the address is known
// from the name, from the connection, or not at all.
func TestPrivateNetworks(t *testing.T) {
	tests := []struct {
		name   string
		access netguard.Access
		from   Lead
		url    string
		peer   string
		sent   bool
		log    string
	}{
		{name: "the program asks", url: "http://10.0.0.1/", peer: "10.0.0.1", sent: true},
		{name: "a host leads to the address", from: Lead{Origin: Origin{Host: "b.test"}}, url: "http://10.0.0.1/", peer: "10.0.0.1"},
		{name: "a host leads to the name", from: Lead{Origin: Origin{Host: "b.test"}}, url: "http://a.test/", peer: "10.0.0.1"},
		{name: "a host leads to a public host", from: Lead{Origin: Origin{Host: "b.test"}}, url: "http://a.test/", peer: "192.88.0.1", sent: true},
		{name: "no address at all", access: netguard.DenyAll, url: "http://a.test/", peer: "10.0.0.1"},
		{name: "a proxy", from: Lead{Origin: Origin{Host: "b.test"}}, url: "http://a.test/proxied", peer: "10.0.0.1", sent: true},
		{
			name: "no connection is reported",
			from: Lead{Origin: Origin{Host: "b.test"}},
			url:  "http://a.test/",
			sent: true,
			log:  "a transport reports no connections",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.access = test.access
				if test.peer != "" {
					w.peer = address(test.peer)
				}
			}, func(w *world) {
				for range 2 {
					x := new(Exchange)
					got := w.get(x, test.url, test.from)
					if sent := got == "200"; sent != test.sent {
						t.Errorf("got %q, want sent %v", got, test.sent)
					}
				}
				w.wantLog(test.log)
				if sent := len(w.requests) > 0; sent != test.sent {
					t.Errorf("requests %q, want sent %v", w.requests, test.sent)
				}
			})
		})
	}
	if !IsForbidden(&report.PrivateNetworkError{}) || IsForbidden(errRefused) {
		t.Error("IsForbidden does not recognize its errors")
	}
}

// TestForbiddenDomain checks that a host may not lead to a domain that the user has forbidden.
func TestForbiddenDomain(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		from := Lead{Client: forbidding{}, Origin: Origin{Host: "b.test"}}
		got := w.get(new(Exchange), "http://a.test/", from)
		if want := "collyrobots: b.test leads to http://a.test/: refused"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		from.Host = "a.test"
		if got := w.get(new(Exchange), "http://a.test/", from); got != "200" {
			t.Errorf("from the same host: %s", got)
		}
		if err := error(&domainError{err: errRefused}); !IsForbidden(err) || !errors.Is(err, errRefused) {
			t.Error("the error is not recognized")
		}
	})
}

// forbidding is a client that forbids all domains.
type forbidding struct{ SeamClient }

func (forbidding) Forbids(*url.URL) error { return errRefused }

// TestQuota checks that requests to other sites are charged to the site that has led to them.
func TestQuota(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		from := Lead{Origin: Origin{Payer: "b.test"}}
		for range 200 {
			if got := w.get(new(Exchange), "http://a.test/", from); got != "200" {
				t.Fatal(got)
			}
		}
		const want = "collyrobots: b.test leads to a.test but has already caused 200 requests in 24 hours: elsewhere"
		if got := w.get(new(Exchange), "http://a.test/", from); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := w.get(new(Exchange), "http://www.b.test/", from); got != "200" {
			t.Errorf("the same site: %s", got)
		}
		if gap := 199 * time.Second; time.Since(w.start) != gap {
			t.Errorf("the requests took %v, want %v: led requests have a delay of a second", time.Since(w.start), gap)
		}
	})
}

// TestLicense checks that responses which ask for a license are counted, and logged once.
func TestLicense(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer = func(*http.Request) *http.Response {
			return respond(http.StatusUnauthorized, http.Header{"Www-Authenticate": {"License"}})
		}
	}, func(w *world) {
		for range 2 {
			w.get(new(Exchange), "http://a.test/", Lead{Kind: report.RequestSitemap})
		}
		if _, licenses := w.Statistics(); licenses != 2 {
			t.Errorf("%d responses were counted, want 2", licenses)
		}
		w.wantLog("a site asks for a license")
		w.wantEvents(
			"0s started a.test for=sitemap",
			"0s license a.test for=sitemap status=401",
			"0s answered a.test for=sitemap status=401",
			"0s started a.test for=sitemap",
			"0s license a.test for=sitemap status=401",
			"0s answered a.test for=sitemap status=401",
		)
	})
}

// TestEndOfWait checks that a wait ends with its context, and when the plugin is closed.
func TestEndOfWait(t *testing.T) {
	inBubble(t, func(w *world) { w.rules.MinDelay = time.Hour }, func(w *world) {
		w.get(new(Exchange), "http://a.test/", Lead{})
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		x := &Exchange{Wire: w.Wire, Host: w.host("a.test")}
		if err := x.takeTurn(ctx); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Second, w.Wire.Close)
		if got := w.get(new(Exchange), "http://a.test/", Lead{}); got != report.ErrClosed.Error() {
			t.Errorf("after Close: %s", got)
		}
	})
}

// TestReady checks the terms of a request: whether dials are checked, and the deadline of a lease.
func TestReady(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		x := &Exchange{Wire: w.Wire, Host: w.host("a.test"), Guard: &report.PrivateNetworkError{}, Conditions: http.Header{"If-A": {"b"}}}
		terms, ok := x.Ready()
		if !ok || !terms.CheckDials || terms.Sign != nil || !terms.Deadline.IsZero() {
			t.Errorf("%v %+v", ok, terms)
		}
		if x.Header().Get("If-A") != "b" {
			t.Error("the conditions are not sent")
		}
		w.Share(&leases{length: time.Minute})
		w.ErrLate = errRefused
		w.rules.MinDelay = time.Second
		y := &Exchange{Wire: w.Wire, Host: w.host("b.test"), Through: w}
		y.Trace.Report = reporter.New(w.Report.Log)
		y.Trace.URL = mustParse("http://b.test/")
		if err := y.takeTurn(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		terms, ok = y.Ready()
		if !ok || terms.Late != errRefused || terms.Deadline.Sub(w.start) != time.Minute {
			t.Errorf("%v %+v", ok, terms)
		}
		time.Sleep(time.Minute)
		if _, ok = y.Ready(); ok {
			t.Error("ready after the lease has expired")
		}
		y.GiveBack()
	})
}
