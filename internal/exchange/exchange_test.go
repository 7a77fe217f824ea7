package exchange

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

var errRefused = errors.New("refused")

// newExchange returns an exchange of a page of a host that has no turn yet.
func (w *world) newExchange(host string) *Exchange {
	x := &Exchange{Wire: w.Wire, Host: w.host(host), Through: w}
	x.Trace.Report = w.Report
	x.Trace.URL = mustParse("http://" + host + "/")
	x.Trace.Kind = report.RequestPage
	x.Trace.Since = w.start
	return x
}

// TestPace checks when requests start, and the events of them, if responses slow the host down.
func TestPace(t *testing.T) {
	tests := []struct {
		name     string
		delay    time.Duration
		statuses []int       // in turn; the last one again and again
		header   http.Header // of the responses with an error status
		starts   string
		events   []string // some of the events
		log      string
	}{
		{name: "MinDelay", delay: 2 * time.Second, statuses: []int{200}, starts: "0s 2s 4s"},
		{name: "a single 503", statuses: []int{503, 200}, starts: "0s 0s 0s"},
		{
			name: "429 and recovery", delay: 100 * time.Millisecond, statuses: []int{429, 200}, starts: "0s 1s 2s",
			log: "host is throttling, slowing down\" host=a.test url=http://a.test/ status=429 delay=1s count=0",
			events: []string{
				"0s started a.test for=sitemap delay=100ms source=min_delay",
				"0s slowed a.test status=429 delay=1s source=back_off",
				"0s answered a.test for=sitemap status=429",
				"1s recovered a.test status=200 delay=1s source=back_off",
				"2s started a.test for=sitemap gap=1s delay=840.896415ms source=back_off",
			},
		},
		{
			name: "Retry-After", statuses: []int{503, 200}, header: http.Header{"Retry-After": {"90"}}, starts: "0s 1m30s 1m31s",
			log:    "host is throttling, slowing down",
			events: []string{"0s slowed a.test status=503 delay=1s source=retry_after until=1m30s"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, test.delay, func(w *world) {
				w.answer = func(*http.Request) *http.Response {
					status := test.statuses[0]
					if status < 400 {
						return respond(status, nil)
					}
					test.statuses = test.statuses[1:]
					return respond(status, test.header)
				}
				var want []string
				for start := range strings.FieldsSeq(test.starts) {
					w.get(new(Exchange), "http://a.test/", Lead{Kind: report.RequestSitemap})
					want = append(want, start+" GET a.test/")
				}
				w.wantRequests(want...)
				w.wantSome(test.events...)
				w.wantLog(test.log)
			})
		})
	}
}

// TestPermit checks that a permit decides again after the wait, and that robots.txt is read at most
// once in it.
func TestPermit(t *testing.T) {
	tests := []struct {
		name    string
		current []bool // the results of Current
		check   error
		want    string
		checks  string // the turns that Check got; "-" if it got none
		sent    string // when the second request was sent
	}{
		{name: "robots.txt is known", current: []bool{true}, want: "200", checks: "-", sent: "1s"},
		{name: "denied now", current: []bool{true}, check: errRefused, want: "refused", checks: "-"},
		{name: "robots.txt is read", current: []bool{false, true}, want: "200", checks: "1s 1s", sent: "2s"},
		{name: "the newer robots.txt was dropped", current: []bool{false, false}, want: "200", checks: "1s", sent: "2s"},
	}
	for _, test := range tests {
		inBubble(t, time.Second, func(w *world) {
			w.get(new(Exchange), "http://a.test/", Lead{})
			var checks []string
			permit := &Permit{
				Current: func(time.Time) bool {
					now := test.current[0]
					test.current = test.current[1:]
					return now
				},
				Check: func(turn time.Time) error {
					since := "-"
					if !turn.IsZero() {
						since = turn.Sub(w.start).String()
					}
					checks = append(checks, since)
					return test.check
				},
			}
			got := w.get(&Exchange{Permit: permit}, "http://a.test/x", Lead{})
			if all := strings.Join(checks, " "); got != test.want || all != test.checks {
				t.Errorf("%s: got %s, want %s; Check got the turns %s, want %s", test.name, got, test.want, all, test.checks)
			}
			want := []string{"0s GET a.test/"}
			if test.sent != "" {
				want = append(want, test.sent+" GET a.test/x")
			}
			w.wantRequests(want...)
			w.wantIdle("a.test", len(want))
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
	}{
		{name: "same", looks: []Standing{Same}, waits: 1},
		{name: "changed", looks: []Standing{Changed}, waits: 1, checks: 1},
		{name: "changed and denied", looks: []Standing{Changed}, check: errRefused, waits: 1, checks: 1},
		{name: "unread", looks: []Standing{Unread, Same}, waits: 2, checks: 1},
		{name: "unread and denied", looks: []Standing{Unread}, check: errRefused, waits: 1, checks: 1},
		{name: "unread and changed", looks: []Standing{Unread, Changed}, waits: 2, checks: 2},
	}
	for _, test := range tests {
		waits, checks := 0, 0
		wait := func() error {
			waits++
			return nil
		}
		err := Await(wait, func() Standing { return test.looks[waits-1] }, func() error {
			checks++
			return test.check
		})
		if waits != test.waits || checks != test.checks || err != test.check {
			t.Errorf("%s: %d waits, %d checks, error %v; want %d, %d, %v", test.name, waits, checks, err, test.waits, test.checks, test.check)
		}
	}
	if err := Await(func() error { return errRefused }, nil, nil); err != errRefused {
		t.Errorf("the error of the wait: got %v", err)
	}
}

// TestAgain checks that a request which the transport sends once more takes another turn, that the
// events say so, and that nothing is sent after a turn was refused.
func TestAgain(t *testing.T) {
	inBubble(t, time.Second, func(w *world) {
		x := w.newExchange("a.test")
		w.must(x.takeTurn(w.t.Context()))
		if x.Repeats() || !x.WasSent() {
			t.Error("before a repetition: Repeats, or not WasSent")
		}
		if err := x.Again(w.t.Context()); err != nil || !x.Repeats() {
			t.Errorf("Again: %v, Repeats %v", err, x.Repeats())
		}
		if err := x.Repeat(func() error { return errRefused }); err != errRefused || !x.WasSent() {
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
			"1s started a.test for=retry gap=1s delay=1s source=min_delay waited=1s",
			"1s answered a.test for=retry more=true err=collyrobots: the connection was dropped before an answer",
			"1s unsent a.test for=retry waited=1s err=refused",
		)
		w.wantIdle("a.test", 2)
	})
}

// TestUnsent checks that a request which was never written is not counted. The next one keeps the
// delay all the same.
func TestUnsent(t *testing.T) {
	inBubble(t, time.Minute, func(w *world) {
		x := w.newExchange("a.test")
		x.Through = http.DefaultTransport
		w.must(x.takeTurn(w.t.Context()))
		x.Ended(0, errRefused)
		w.get(new(Exchange), "http://a.test/", Lead{})
		w.wantRequests("1m0s GET a.test/")
		w.wantIdle("a.test", 1)
		left := w.newExchange("b.test")
		w.must(left.awaitTurn(w.t.Context()))
		left.Leave()
		if !left.WasSent() {
			t.Error("a request that the program sends was not sent")
		}
		left.SetUnsent()
		left.GiveBack()
		w.wantIdle("b.test", 0)
	})
}

// TestPrivateNetworks checks which requests to private addresses are sent, if the address is known
// from the name, from the connection, or not at all.
func TestPrivateNetworks(t *testing.T) {
	led := Lead{Origin: Origin{Host: "b.test"}}
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
		{name: "a host leads to the address", from: led, url: "http://10.0.0.1/", peer: "10.0.0.1"},
		{name: "a host leads to the name", from: led, url: "http://a.test/", peer: "10.0.0.1"},
		{name: "a host leads to a public host", from: led, url: "http://a.test/", peer: "192.88.0.1", sent: true},
		{name: "no address at all", access: netguard.DenyAll, url: "http://a.test/", peer: "10.0.0.1"},
		{name: "a proxy", from: led, url: "http://a.test/proxied", peer: "10.0.0.1", sent: true},
		{name: "no connection is reported", from: led, url: "http://a.test/", sent: true, log: "a transport reports no connections"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, 0, func(w *world) {
				w.allow(test.access)
				if test.peer != "" {
					w.peer = address(test.peer)
				}
				for range 2 {
					got := w.get(new(Exchange), test.url, test.from)
					if sent := got == "200"; sent != test.sent || sent != (len(w.requests) > 0) {
						t.Errorf("got %q, requests %q, want sent %v", got, w.requests, test.sent)
					}
				}
				w.wantLog(test.log)
			})
		})
	}
	if !IsForbidden(&report.PrivateNetworkError{}) || IsForbidden(errRefused) {
		t.Error("IsForbidden does not recognize its errors")
	}
}

// TestForbiddenDomain checks that a host may not lead to a domain that the user has forbidden.
func TestForbiddenDomain(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		from := Lead{Client: forbidding{}, Origin: Origin{Host: "b.test"}}
		for host, want := range map[string]string{"b.test": "collyrobots: b.test leads to http://a.test/: refused", "a.test": "200"} {
			from.Host = host
			if got := w.get(new(Exchange), "http://a.test/", from); got != want {
				t.Errorf("from %s: got %q, want %q", host, got, want)
			}
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
	inBubble(t, 0, func(w *world) {
		got := make(map[string]int)
		from := Lead{Origin: Origin{Payer: "b.test"}}
		for range 201 {
			got[w.get(new(Exchange), "http://a.test/", from)]++
		}
		got[w.get(new(Exchange), "http://www.b.test/", from)]++
		want := "map[200:201 collyrobots: b.test leads to a.test but has already caused 200 requests in 24 hours: elsewhere:1]"
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
		if gap := 199 * time.Second; time.Since(w.start) != gap {
			t.Errorf("the requests took %v, want %v: led requests have a delay of a second", time.Since(w.start), gap)
		}
	})
}

// TestLicense checks that responses which ask for a license are counted, and logged once.
func TestLicense(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		w.answer = func(*http.Request) *http.Response { return respond(401, http.Header{"Www-Authenticate": {"License"}}) }
		for range 2 {
			w.get(new(Exchange), "http://a.test/", Lead{Kind: report.RequestSitemap})
		}
		if _, licenses := w.Statistics(); licenses != 2 {
			t.Errorf("%d responses were counted, want 2", licenses)
		}
		w.wantLog("a site asks for a license")
		w.wantSome("0s license a.test for=sitemap status=401")
	})
}

// TestEndOfWait checks that a wait ends with its context, and when the plugin is closed.
func TestEndOfWait(t *testing.T) {
	inBubble(t, time.Hour, func(w *world) {
		w.get(new(Exchange), "http://a.test/", Lead{})
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if err := w.newExchange("a.test").takeTurn(ctx); err != context.DeadlineExceeded {
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
	inBubble(t, time.Second, func(w *world) {
		x := &Exchange{Wire: w.Wire, Host: w.host("a.test"), Guard: &report.PrivateNetworkError{}, Conditions: http.Header{"If-A": {"b"}}}
		terms, ok := x.Ready()
		if !ok || !terms.CheckDials || terms.Sign != nil || !terms.Deadline.IsZero() || x.Header().Get("If-A") != "b" {
			t.Errorf("%v %+v, header %v", ok, terms, x.Header())
		}
		w.Share(&leases{length: time.Minute})
		w.ErrLate = errRefused
		y := w.newExchange("b.test")
		y.Trace.Report = reporter.New(w.Report.Log)
		w.must(y.takeTurn(w.t.Context()))
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

// wantIdle checks that a host has no request in flight, and how many it has had.
func (w *world) wantIdle(host string, requests int) {
	w.t.Helper()
	if s := w.host(host).Stats(time.Now()); s.Busy || s.Requests != requests {
		w.t.Errorf("%s: busy %v, %d requests; want idle and %d", host, s.Busy, s.Requests, requests)
	}
}

// wantSome checks that some events are among those so far.
func (w *world) wantSome(want ...string) {
	w.t.Helper()
	got := w.eventLines()
	for _, line := range want {
		if !slices.Contains(got, line) {
			w.t.Errorf("the event %q is not among\n\t%s", line, strings.Join(got, "\n\t"))
		}
	}
}
