package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/temoto/robotstxt"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// underRace reports whether the race detector is enabled.
func underRace() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// A canned transport answers every request from memory, so that only the crawler is measured.
type canned struct{ robots string }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body := c.robots
	if r.URL.Path != "/robots.txt" {
		body = "<!doctype html><title>x</title>"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/html"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// robotsOf returns a robots.txt with n rules. None of them matches, and every tenth has a wildcard.
func robotsOf(n int) string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range n {
		if i%10 == 9 {
			fmt.Fprintf(&b, "Disallow: /*/private/%d\n", i)
		} else {
			fmt.Fprintf(&b, "Disallow: /private/%d\n", i)
		}
	}
	return b.String()
}

func quiet() Option { return Logger(slog.New(slog.DiscardHandler)) }

// warm returns the hooks of a collector that has already visited the site.
func warm(tb testing.TB, rules int, url string, opts ...Option) (*hooks, *colly.Request) {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.AllowURLRevisit())
	c.WithTransport(canned{robotsOf(rules)})
	p, err := WithRobots(c, append(opts, quiet())...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Close() })
	var r *colly.Request
	c.OnResponse(func(resp *colly.Response) { r = resp.Request })
	if err := c.Visit(url); err != nil {
		tb.Fatal(err)
	}
	return p.first(), r
}

func TestOnRequestDoesNotAllocate(t *testing.T) {
	if underRace() {
		t.Skip("the race detector also allocates")
	}
	for _, url := range []string{"http://example.test/some/page.html", "http://example.test/some/page.html?id=1"} {
		l, r := warm(t, 9, url)
		for _, async := range []bool{false, true} {
			l.c.Async = async
			if n := testing.AllocsPerRun(100, func() { l.onRequest(r) }); n != 0 {
				t.Errorf("%s: OnRequest allocates %v times, async %t", url, n, async)
			}
		}
	}
}

// A queryRule is a rule that denies pages with a query. It shows that a feature needs no other file.
type queryRule struct{}

func (queryRule) Judge(_ time.Time, c judge.Candidate) *judge.Denial {
	if c.URL.RawQuery == "" {
		return nil
	}
	return queryDenied
}

var queryDenied = &judge.Denial{Reason: "query"}

// TestNewRule adds a rule to a plugin. Check, a collector, a client and the counts know it.
func TestNewRule(t *testing.T) {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	web := canned{robotsOf(9)}
	c.WithTransport(web)
	var denied []string
	p, err := WithRobots(c, quiet(), OnDenied(func(r *colly.Request, _ error) { denied = append(denied, r.URL.String()) }))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.judge.Rules = append(p.judge.Rules, queryRule{})
	if err := c.Visit("http://example.test/some/page.html"); err != nil {
		t.Error(err)
	}
	const withQuery = "http://example.test/some/page.html?id=1"
	d, err := p.Check(t.Context(), withQuery)
	if err != nil || d.Allowed || d.Reason != "query" {
		t.Errorf("Check: %v, %v", d, err)
	}
	failure := outcomeOf(c.Visit(withQuery))
	if failure.denied == nil || failure.denied.Decision.Reason != "query" {
		t.Errorf("Visit: %v", failure.err)
	}
	_, err = (&http.Client{Transport: p.Transport(web)}).Get(withQuery)
	failure = outcomeOf(err)
	if failure.denied == nil || failure.denied.Decision.Reason != "query" {
		t.Errorf("Get: %v", err)
	}
	if !slices.Equal(denied, []string{withQuery}) || p.Stats().Decisions["query"] != 2 {
		t.Errorf("OnDenied was called for %q, counts %v", denied, p.Stats().Decisions)
	}
}

// fiveRules returns the hooks of a plugin with three rules and two limits, which allow every page.
func fiveRules(tb testing.TB, url string) (*hooks, *colly.Request) {
	l, r := warm(tb, 9, url, Purpose(usage.Search), EnforceUsage(true), EnforceNofollow(true), StopAfterRefusals(3), MaxPagesPerHost(1<<30))
	l.judge.Rules = append(l.judge.Rules, queryRule{})
	if len(l.judge.Rules) != 3 || len(l.judge.Limits) != 2 {
		tb.Fatalf("%d rules and %d limits", len(l.judge.Rules), len(l.judge.Limits))
	}
	return l, r
}

// TestRulesDoNotAllocate checks that rules and limits need no memory for a request that they allow and
// count. (A page that waits for its host needs a function that asks the limits again.)
func TestRulesDoNotAllocate(t *testing.T) {
	if underRace() {
		t.Skip("the race detector also allocates")
	}
	const url = "http://example.test/some/page.html"
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	allocations := func(l *hooks) float64 {
		return testing.AllocsPerRun(100, func() {
			q, err := l.gate.Acquire(t.Context(), req, l)
			if err != nil {
				t.Fatal(err)
			}
			q.Finish(nil)
		})
	}
	without, _ := warm(t, 9, url)
	with, _ := fiveRules(t, url)
	want := allocations(without)
	got := allocations(with)
	if got != want || with.gate.PagesSent("example.test") < 100 {
		t.Errorf("%v allocations with five rules, %v without; %d requests were counted", got, want, with.gate.PagesSent("example.test"))
	}
}

// BenchmarkRules measures the hook in OnRequest without rules, and with five of them.
func BenchmarkRules(b *testing.B) {
	const url = "http://example.test/some/page.html"
	judge := func(l *hooks, r *colly.Request) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.onRequest(r)
			}
		}
	}
	l, r := warm(b, 9, url)
	b.Run("none", judge(l, r))
	l, r = fiveRules(b, url)
	b.Run("five", judge(l, r))
}

// TestMarks checks the marks of one request and of those that get them from it.
func TestMarks(t *testing.T) {
	var m judge.Marks
	for _, by := range []string{"a", "b", "c"} {
		m.Set(judge.Mark{By: by, Host: by + ".test"})
	}
	m.Set(judge.Mark{By: "b", Host: "other.test", Count: 2})
	redirect := m.HandOn(judge.OfRedirect)
	inner := redirect.HandOn(judge.OfCarrier)
	m.Set(judge.Mark{By: "c", Host: "later.test"})
	m.Clear("a")
	for _, row := range []struct {
		m    judge.Marks
		by   string
		want judge.Mark
	}{
		{m: m, by: "a"},
		{m: m, by: "d"},
		{m: m, by: "b", want: judge.Mark{By: "b", Host: "other.test", Count: 2}},
		{m: m, by: "c", want: judge.Mark{By: "c", Host: "later.test"}},
		{m: redirect, by: "a", want: judge.Mark{By: "a", Host: "a.test", Source: judge.OfRedirect}},
		{m: redirect, by: "c", want: judge.Mark{By: "c", Host: "c.test", Source: judge.OfRedirect}},
		{m: inner, by: "c", want: judge.Mark{By: "c", Host: "c.test", Source: judge.OfRedirect}},
	} {
		if got := row.m.Of(row.by); got != row.want {
			t.Errorf("the mark of %s is %+v, want %+v", row.by, got, row.want)
		}
	}
	none := (*judge.Marks)(nil)
	if none.Of("a") != (judge.Mark{}) {
		t.Error("no marks have a mark")
	}
}

// TestStoppedListenerCostsNothing checks that events cost no allocation without a listener, also
// after a listener was stopped. With a listener, they cost a known number of allocations.
func TestStoppedListenerCostsNothing(t *testing.T) {
	if underRace() {
		t.Skip("the race detector also allocates")
	}
	c := colly.NewCollector(colly.AllowURLRevisit())
	c.WithTransport(canned{robotsOf(9)})
	p, err := WithRobots(c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	visit := func() { c.Visit("http://example.test/") }
	before := testing.AllocsPerRun(50, visit)
	stop := p.Listen(func(*Event) {})
	during := testing.AllocsPerRun(50, visit)
	stop()
	after := testing.AllocsPerRun(50, visit)
	if after > before+1 || during < before+2 {
		t.Errorf("got %v allocations before, %v with a listener, %v after", before, during, after)
	}
}

// BenchmarkOnRequest measures the hook of the plugin in OnRequest.
func BenchmarkOnRequest(b *testing.B) {
	for _, rules := range []int{9, 1000} {
		b.Run(fmt.Sprint(rules, " rules"), func(b *testing.B) {
			l, r := warm(b, rules, "http://example.test/some/page.html?id=1")
			b.ReportAllocs()
			for b.Loop() {
				l.onRequest(r)
			}
		})
	}
}

// BenchmarkBuiltIn measures Colly's built-in check of a request whose robots.txt is known.
func BenchmarkBuiltIn(b *testing.B) {
	for _, rules := range []int{9, 1000} {
		b.Run(fmt.Sprint(rules, " rules"), func(b *testing.B) {
			file, err := robotstxt.FromString(robotsOf(rules))
			if err != nil {
				b.Fatal(err)
			}
			u, _ := url.Parse("http://example.test/some/page.html?id=1")
			b.ReportAllocs()
			for b.Loop() {
				file.FindGroup("ExampleBot/1.0").Test(u.EscapedPath() + "?" + u.Query().Encode())
			}
		})
	}
}

// errorsOfRequests returns an error of each kind that can end a request, by its name.
func errorsOfRequests() map[string]error {
	noResponse := &policy.NoResponseError{Err: syscall.ECONNREFUSED}
	private := &report.PrivateNetworkError{URL: "http://b.test/", Address: "10.0.0.1", From: "a.test"}
	unpaced := &report.PaceError{Host: "a.test", Err: errors.New("no Redis")}
	expires := time.Now().Add(time.Hour)
	denied := func(reason report.Reason, cause error) *DeniedError {
		return &DeniedError{Decision: Decision{URL: "http://a.test/", Reason: reason, Err: cause, Expires: expires}}
	}
	limited := func(reason report.Reason, next time.Time) *DeniedError {
		err := denied(reason, nil)
		err.Decision.NextTry = next
		return err
	}
	redirect := denied(report.ReasonRule, nil)
	redirect.denied = &judge.Denied{Decision: redirect.Decision, Redirect: true}
	optional := denied(report.ReasonUnreachable, &policy.StatusError{Status: 403})
	optional.Decision.Option = policy.OptionWhenForbidden
	return map[string]error{
		"a rule":                            denied(report.ReasonRule, nil),
		"a rule, after a redirect":          redirect,
		"nofollow":                          denied(report.ReasonNofollow, nil),
		"usage":                             denied(report.ReasonUsage, nil),
		"SkipCrawlDelayAbove":               denied(report.ReasonDelay, nil),
		"WhenForbidden":                     optional,
		"no robots.txt: no response":        denied(report.ReasonUnreachable, noResponse),
		"no robots.txt: site down":          denied(report.ReasonSiteDown, noResponse),
		"no robots.txt: status":             denied(report.ReasonUnreachable, &policy.StatusError{Status: 500}),
		"no robots.txt: status of a proxy":  denied(report.ReasonUnreachable, &policy.StatusError{Status: 502, Proxy: "p.test:80"}),
		"no robots.txt: private":            denied(report.ReasonUnreachable, &policy.NoResponseError{Err: exchange.WithKind(private, policy.ErrForbidden)}),
		"no robots.txt: canceled":           denied(report.ReasonUnreachable, &policy.NoResponseError{Err: context.Canceled}),
		"no robots.txt: forbidden domain":   denied(report.ReasonUnreachable, fmt.Errorf("redirect: %w", colly.ErrForbiddenDomain)),
		"no robots.txt: panic":              denied(report.ReasonUnreachable, &policy.PanicError{Value: "p"}),
		"no robots.txt: closed":             denied(report.ReasonUnreachable, ErrClosed),
		"no robots.txt: no pace":            denied(report.ReasonUnreachable, unpaced),
		"StopAfterRefusals":                 limited(report.ReasonRefused, expires),
		"MaxPagesPerHost":                   limited(report.ReasonBudget, time.Time{}),
		"private":                           private,
		"shard":                             &report.ShardError{URL: "http://a.test/", Shard: 1, Of: 2},
		"no pace":                           unpaced,
		"no pace: canceled":                 &report.PaceError{Err: context.Canceled},
		"no pace: no connection":            &report.PaceError{Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		"quota":                             fmt.Errorf("quota: %w", feed.ErrElsewhere),
		"redirect would wait":               ErrRedirectWait,
		"redirect loop":                     fmt.Errorf("%w: %w", ErrRedirectLoop, &colly.AlreadyVisitedError{Destination: &url.URL{}}),
		"closed":                            ErrClosed,
		"lease":                             ErrLeaseEnded,
		"dropped":                           errors.New("dropped"),
		"returned":                          gate.ErrReturned,
		"fresh":                             gate.ErrFresh,
		"not sent":                          ErrNotSent,
		"no name":                           &net.DNSError{Err: "no such host", Name: "a.test"},
		"dial":                              &net.OpError{Op: "dial", Err: errors.New("no route")},
		"refused":                           syscall.ECONNREFUSED,
		"read":                              &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		"reset":                             syscall.ECONNRESET,
		"canceled":                          context.Canceled,
		"deadline":                          context.DeadlineExceeded,
		"another error":                     errors.New("Not Found"),
		"Colly: visited":                    &colly.AlreadyVisitedError{Destination: &url.URL{}},
		"Colly: aborted before the request": colly.ErrAbortedBeforeRequest,
		"Colly: aborted after the headers":  colly.ErrAbortedAfterHeaders,
		"Colly: forbidden domain":           colly.ErrForbiddenDomain,
		"Colly: forbidden URL":              colly.ErrForbiddenURL,
		"Colly: no filter matches":          colly.ErrNoURLFiltersMatch,
		"Colly: depth":                      colly.ErrMaxDepth,
		"Colly: requests":                   colly.ErrMaxRequests,
	}
}

// TestOutcome checks what each error means. Facts are the names of the fields of an outcome that are
// true, and the methods that return true; a page has this result if there was no response.
func TestOutcome(t *testing.T) {
	table := map[string]struct {
		facts   string
		page    feed.Result // that a sitemap lists
		attempt feed.Result // that is in a urlstore.Store
	}{
		"Colly: aborted after the headers":  {facts: "aborted", page: feed.Failed, attempt: feed.Done},
		"Colly: aborted before the request": {facts: "aborted", page: feed.Failed, attempt: feed.Done},
		"Colly: depth":                      {facts: "filtered", page: feed.Failed, attempt: feed.Skipped},
		"Colly: forbidden URL":              {facts: "filtered", page: feed.Failed, attempt: feed.Skipped},
		"Colly: forbidden domain":           {facts: "forbidden laterDenial", page: feed.Failed, attempt: feed.Skipped},
		"Colly: no filter matches":          {facts: "filtered", page: feed.Failed, attempt: feed.Skipped},
		"Colly: requests":                   {facts: "maximum", page: feed.Failed, attempt: feed.Failed},
		"Colly: visited":                    {facts: "visited", page: feed.Failed, attempt: feed.Done},
		"MaxPagesPerHost":                   {facts: "refusal denied limited", page: feed.Skipped, attempt: feed.Unsent},
		"SkipCrawlDelayAbove":               {facts: "refusal denied versionedDenial", page: feed.Skipped, attempt: feed.Skipped},
		"StopAfterRefusals":                 {facts: "refusal denied limited versionedDenial", page: feed.Skipped, attempt: feed.Unsent},
		"WhenForbidden":                     {facts: "refusal denied versionedDenial", page: feed.Skipped, attempt: feed.Skipped},
		"a rule":                            {facts: "refusal denied versionedDenial", page: feed.Skipped, attempt: feed.Skipped},
		"a rule, after a redirect":          {facts: "refusal denied laterDenial versionedDenial", page: feed.Failed, attempt: feed.Skipped},
		"another error":                     {facts: "", page: feed.Failed, attempt: feed.Failed},
		"canceled":                          {facts: "canceled", page: feed.Failed, attempt: feed.Failed},
		"closed":                            {facts: "refusal closed", page: feed.Unfinished, attempt: feed.Unfinished},
		"deadline":                          {facts: "", page: feed.Failed, attempt: feed.Failed},
		"dial":                              {facts: "unsent", page: feed.Failed, attempt: feed.Failed},
		"dropped":                           {facts: "", page: feed.Failed, attempt: feed.Failed},
		"fresh":                             {facts: "", page: feed.Failed, attempt: feed.Failed},
		"lease":                             {facts: "", page: feed.Failed, attempt: feed.Failed},
		"no name":                           {facts: "unsent", page: feed.Failed, attempt: feed.Failed},
		"no pace":                           {facts: "refusal unpaced temporary", page: feed.Failed, attempt: feed.Failed},
		"no pace: canceled":                 {facts: "refusal unpaced canceled temporary", page: feed.Failed, attempt: feed.Failed},
		"no pace: no connection":            {facts: "refusal unpaced unsent temporary", page: feed.Failed, attempt: feed.Failed},
		"no robots.txt: canceled":           {facts: "refusal denied unread silent canceled temporary", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: closed":             {facts: "refusal denied closed unread temporary versionedDenial", page: feed.Unfinished, attempt: feed.Unfinished},
		"no robots.txt: forbidden domain":   {facts: "refusal denied forbidden unread temporary versionedDenial", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: no pace":            {facts: "refusal denied unpaced unread temporary versionedDenial", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: no response":        {facts: "refusal denied unread silent unsent temporary", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: panic":              {facts: "refusal denied unread temporary versionedDenial", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: private":            {facts: "refusal denied private forbidden unread silent temporary", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: site down":          {facts: "refusal denied unread silent unsent temporary", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: status":             {facts: "refusal denied unread temporary versionedDenial", page: feed.Skipped, attempt: feed.Failed},
		"no robots.txt: status of a proxy":  {facts: "refusal denied unread silent temporary", page: feed.Skipped, attempt: feed.Failed},
		"nofollow":                          {facts: "refusal denied versionedDenial", page: feed.Skipped, attempt: feed.Skipped},
		"not sent":                          {facts: "unsent", page: feed.Failed, attempt: feed.Failed},
		"private":                           {facts: "refusal private forbidden laterDenial", page: feed.Failed, attempt: feed.Skipped},
		"quota":                             {facts: "forbidden laterDenial", page: feed.Failed, attempt: feed.Skipped},
		"read":                              {facts: "reset", page: feed.Failed, attempt: feed.Failed},
		"redirect loop":                     {facts: "visited looped", page: feed.Failed, attempt: feed.Done},
		"redirect would wait":               {facts: "late laterDenial", page: feed.Failed, attempt: feed.Failed},
		"refused":                           {facts: "unsent", page: feed.Failed, attempt: feed.Failed},
		"reset":                             {facts: "reset", page: feed.Failed, attempt: feed.Failed},
		"returned":                          {facts: "", page: feed.Failed, attempt: feed.Failed},
		"shard":                             {facts: "refusal foreign", page: feed.Failed, attempt: feed.Skipped},
		"usage":                             {facts: "refusal denied versionedDenial", page: feed.Skipped, attempt: feed.Skipped},
	}
	errs := errorsOfRequests()
	if len(errs) != len(table) {
		t.Errorf("%d errors, %d rows", len(errs), len(table))
	}
	for name, err := range errs {
		want := table[name]
		for _, wrapped := range []error{err, &url.Error{Op: "Get", URL: "http://a.test/", Err: err}, errors.Join(errors.New("another"), fmt.Errorf("an error: %w", err))} {
			o := outcomeOf(wrapped)
			if facts := factsOf(o); facts != want.facts {
				t.Errorf("%s: %q, want %q", name, facts, want.facts)
			}
			if page, attempt := o.ofPage(t.Context(), 0), o.ofAttempt(t.Context(), 0); page != want.page || attempt != want.attempt {
				t.Errorf("%s: results %v and %v, want %v and %v", name, page, attempt, want.page, want.attempt)
			}
		}
		refused := outcomeOf(&url.Error{Op: "Get", URL: "http://a.test/", Err: &refusedError{cause: err}})
		if refused.refusal != err {
			t.Errorf("%s: the refusal of a request is %v", name, refused.refusal)
		}
	}
}

// factsOf returns what is true of an outcome.
func factsOf(o outcome) string {
	names := []string{"refusal", "denied", "private", "forbidden", "foreign", "unpaced", "late", "closed", "unread", "silent", "limited",
		"unsent", "reset", "canceled", "visited", "looped", "aborted", "filtered", "maximum", "temporary", "laterDenial", "versionedDenial"}
	denial := o.denial()
	facts := []bool{o.refusal != nil, o.denied != nil, o.private, o.forbidden, o.foreign, o.unpaced, o.late, o.Closed, o.unread, o.silent, o.limited,
		o.Unsent, o.Reset, o.Canceled, o.visited, o.looped, o.aborted, o.filtered, o.maximum, o.temporary(), denial.Later, !denial.Version.IsZero()}
	var found []string
	for i, is := range facts {
		if is {
			found = append(found, names[i])
		}
	}
	return strings.Join(found, " ")
}

// TestResultsByStatus checks the results of pages whose response has a status, with and without an
// error of Colly for it, and when the crawl has ended.
func TestResultsByStatus(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	failure := errors.New("Colly has failed")
	for status, want := range map[int]feed.Result{
		200: feed.Done, 204: feed.Done, 304: feed.Done, 401: feed.Done, 404: feed.Done, 410: feed.Done,
		407: feed.Failed, 408: feed.Failed, 429: feed.Failed, 500: feed.Failed, 503: feed.Failed,
	} {
		none := outcome{}
		failed := outcomeOf(failure)
		if got := none.ofPage(t.Context(), status); got != want {
			t.Errorf("status %d: %v, want %v", status, got, want)
		}
		if got := none.ofAttempt(t.Context(), status); got != want {
			t.Errorf("status %d of a stored page: %v, want %v", status, got, want)
		}
		if got := failed.ofAttempt(t.Context(), status); got != want {
			t.Errorf("status %d with an error: %v, want %v", status, got, want)
		}
		if got := failed.ofPage(ended, status); got != feed.Unfinished {
			t.Errorf("status %d after the end: %v", status, got)
		}
	}
}

// TestOutcomeOfVisits checks what the errors of Colly mean for a page that was not requested.
func TestOutcomeOfVisits(t *testing.T) {
	for name, want := range map[string][2]feed.Result{
		"Colly: requests":          {feed.Unfinished, feed.Unsent},
		"Colly: visited":           {feed.Done, feed.Failed},
		"Colly: depth":             {feed.Skipped, feed.Skipped},
		"Colly: forbidden domain":  {feed.Skipped, feed.Skipped},
		"Colly: forbidden URL":     {feed.Skipped, feed.Skipped},
		"Colly: no filter matches": {feed.Skipped, feed.Skipped},
		"another error":            {feed.Skipped, feed.Failed},
	} {
		o := outcomeOf(errorsOfRequests()[name])
		if got := [2]feed.Result{o.ofVisit(), o.ofSubmission()}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
