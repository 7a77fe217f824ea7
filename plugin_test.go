package collyrobots_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

var (
	async   = []colly.CollectorOption{colly.Async()}
	noDenys = "User-agent: *\nDisallow:\n"
)

func TestADisallowedPageIsNeverRequested(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": async} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t, map[string]site{
				"a.test": {
					"/robots.txt": "User-agent: *\nDisallow: /private\nAllow: /private/open\n",
					"/":           page("/private/1", "/private/open", "/away", "http://b.test/", "/hop"),
					"/private/1":  page(), "/private/open": page(),
					"/away": redirect("http://b.test/closed"),
					"/hop":  redirect("/private/2"), "/private/2": page(),
				},
				"b.test": {"/robots.txt": "User-agent: examplebot\nDisallow: /closed", "/": page(), "/closed": page()},
			})
			c := w.start(t, options).follow()
			c.Visit("http://a.test/")
			c.Wait()
			if got, want := w.sortedURIs("a.test"), "/ /away /hop /private/open /robots.txt"; got != want {
				t.Errorf("a.test was asked for %s, want %s", got, want)
			}
			if got, want := w.sortedURIs("b.test"), "/ /robots.txt"; got != want {
				t.Errorf("b.test was asked for %s, want %s", got, want)
			}
			wantDenied(t, c, "http://a.test/private/1", collyrobots.ReasonRule, 2)
			wantDenied(t, c, "http://a.test/hop", collyrobots.ReasonRule, 2) // Colly knows the request by its first URL
			wantDenied(t, c, "http://a.test/away", collyrobots.ReasonRule, 2)
			if len(c.denied) != 3 {
				t.Errorf("OnDenied was told of %v, want 3", c.denied)
			}
			for _, u := range []string{"http://a.test/hop", "http://a.test/away"} {
				if !errors.Is(c.errs[u], colly.ErrRobotsTxtBlocked) {
					t.Errorf("OnError of %s: %v, want ErrRobotsTxtBlocked", u, c.errs[u])
				}
			}
		})
	}
}

// wantDenied checks what OnDenied was told of a URL.
func wantDenied(t *testing.T, c *crawl, url string, reason collyrobots.Reason, line int) {
	t.Helper()
	err := c.denied[url]
	var byPointer *collyrobots.DisallowedError
	var byValue collyrobots.DisallowedError
	if !errors.As(err, &byPointer) || !errors.As(err, &byValue) || !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("%s: OnDenied was told %v, want a DisallowedError", url, err)
		return
	}
	d := byPointer.Decision
	if d.Reason != reason || d.Rule.Line != line || d.Allowed || d != byValue.Decision {
		t.Errorf("%s: %v, want reason %q, line %d", url, d, reason, line)
	}
}

func TestASyncVisitReturnsTheDenialOfARedirect(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /x", "/": redirect("/x"), "/x": page(),
	}})
	c := w.start(t, nil)
	if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("Visit: %v, want ErrRobotsTxtBlocked", err)
	}
}

// Exact instants: each mode in a bubble.
func TestNoGapIsUnderTheCrawlDelay(t *testing.T) {
	modes := map[string]struct {
		options []colly.CollectorOption
		limit   *colly.LimitRule
	}{
		"sync":                   {},
		"async":                  {options: async},
		"async, parallelism 1":   {async, &colly.LimitRule{DomainGlob: "*", Parallelism: 1}},
		"async, parallelism 2":   {async, &colly.LimitRule{DomainGlob: "*", Parallelism: 2}},
		"async, LimitRule.Delay": {async, &colly.LimitRule{DomainGlob: "*", Delay: 10 * time.Millisecond}},
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{"slow.test": slowSite(), "fast.test": pages(20, noDenys)}, func(t *testing.T, w *wire) {
				keepsTheDelay(t, w.web, 200*time.Millisecond, mode.options, mode.limit)
			})
		})
	}
}

// The same on real sockets and the real clock.
func TestNoGapIsUnderTheCrawlDelayOnLoopback(t *testing.T) {
	slow := slowSite()
	slow["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.5\n"
	w := newWeb(t, map[string]site{"slow.test": slow, "fast.test": pages(20, noDenys)})
	keepsTheDelay(t, w, 500*time.Millisecond, async, &colly.LimitRule{DomainGlob: "*", Parallelism: 2})
}

// slowSite asks for a delay of 200 ms, and redirects one page to another: hops count too.
func slowSite() site {
	slow := pages(6, "User-agent: *\nCrawl-delay: 0.2\n")
	slow["/0"] = redirect("/hop")
	slow["/hop"] = page()
	return slow
}

func keepsTheDelay(t *testing.T, w *web, delay time.Duration, options []colly.CollectorOption, limit *colly.LimitRule) {
	t.Helper()
	c := w.start(t, options).follow()
	if limit != nil {
		if err := c.Limit(limit); err != nil {
			t.Fatal(err)
		}
	}
	c.Visit("http://slow.test/")
	c.Visit("http://fast.test/")
	c.Wait()
	w.keepsGap(t, "slow.test", delay, 9)
	if got := len(w.hits("fast.test")); got != 22 {
		t.Errorf("fast.test was asked %d times, want 22", got)
	}
	if s := c.robots.Stats().Hosts; len(s) != 2 || s[1].Host != "slow.test" || s[1].Requests != 9 || s[1].Pages != 7 ||
		s[1].MinGap < delay*99/100 || s[1].CrawlDelay != delay || s[1].Delay != delay {
		t.Errorf("Stats: %+v", s)
	}
}

// A slow host's pages must not fill the slots of a LimitRule while they wait.
func TestASlowHostDoesNotHoldUpAFastOne(t *testing.T) {
	sites := map[string]site{"slow.test": pages(6, "User-agent: *\nCrawl-delay: 30\n"), "fast.test": pages(20, noDenys)}
	onWire(t, sites, func(t *testing.T, w *wire) {
		c := w.start(t, async).follow()
		if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2}); err != nil {
			t.Fatal(err)
		}
		c.Visit("http://slow.test/")
		c.Visit("http://fast.test/")
		c.Wait()
		fast := w.hits("fast.test")
		if last := fast[len(fast)-1].at.Sub(w.began); len(fast) != 22 || last != 0 {
			t.Errorf("fast.test was done after %v, want at once", last)
		}
		w.keepsGap(t, "slow.test", 30*time.Second, 8)
	})
}

func TestARobotsTxtThatCannotBeReadIsNeverSilent(t *testing.T) {
	reset := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	cases := []struct {
		name    string
		dialect dialect.Dialect
		answer  any
		reason  collyrobots.Reason // of a denial; empty: allowed
	}{
		{"RFC9309/503", dialect.RFC9309(), 503, collyrobots.ReasonUnreachable},
		{"RFC9309/404", dialect.RFC9309(), 404, ""},
		{"RFC9309/429", dialect.RFC9309(), 429, ""},
		{"RFC9309/reset", dialect.RFC9309(), reset, collyrobots.ReasonUnreachable},
		{"RFC9309/loop", dialect.RFC9309(), redirect("/robots.txt"), ""},
		{"Google/429", dialect.Google(), 429, collyrobots.ReasonUnreachable},
		{"Google/503", dialect.Google(), 503, collyrobots.ReasonUnreachable},
		{"Google/403", dialect.Google(), 403, ""},
		{"CocCoc/503", dialect.CocCoc(), 503, ""},
		{"CocCoc/reset", dialect.CocCoc(), reset, collyrobots.ReasonSiteDown},
		{"Original1994/500", dialect.Original1994(), 500, collyrobots.ReasonUnreachable},
		{"Temoto/503", dialect.Temoto(), 503, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWeb(t, map[string]site{"a.test": {"/robots.txt": tc.answer, "/": page()}})
			c := w.start(t, nil, collyrobots.Dialect(tc.dialect))
			c.Visit("http://a.test/")
			asked := strings.HasSuffix(w.uris("a.test"), " /")
			if asked != (tc.reason == "") {
				t.Errorf("a.test was asked for %s", w.uris("a.test"))
			}
			if tc.reason != "" {
				wantDenied(t, c, "http://a.test/", tc.reason, 0)
				if !strings.Contains(c.logged.String(), "a.test/robots.txt") {
					t.Errorf("the log says %q, want why", c.logged.String())
				}
			}
		})
	}
}

func TestAnyBytesAsRobotsTxtAreNoPanic(t *testing.T) {
	bodies := []any{"\x00\xff\xfe\r\r\n", strings.Repeat("User-agent:*\nDisallow:/", 1<<16), "<html><body>not found", []byte{0x1f, 0x8b, 8}, ""}
	for i, body := range bodies {
		w := newWeb(t, map[string]site{"a.test": {"/robots.txt": body, "/": page()}})
		c := w.start(t, nil)
		if err := c.Visit("http://a.test/"); err != nil || len(w.hits("a.test")) == 0 {
			t.Errorf("body %d: %v", i, err)
		}
	}
}

func TestRobotsTxtIsFetchedOnceAndWithTheUserAgentAlone(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": pages(30, noDenys)})
	c := w.start(t, async)
	c.Headers = &http.Header{"Authorization": {"Bearer secret"}, "X-Mine": {"1"}}
	c.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: "secret"}})
	for i := range 30 {
		c.Visit(fmt.Sprintf("http://a.test/%d", i))
	}
	c.Wait()
	if n := strings.Count(w.uris("a.test"), "/robots.txt"); n != 1 || len(w.hits("a.test")) != 31 {
		t.Fatalf("%d fetches of robots.txt in %d requests, want 1 in 31", n, len(w.hits("a.test")))
	}
	for _, h := range w.hits("a.test") {
		private := h.header.Get("Authorization") + h.header.Get("X-Mine") + h.header.Get("Cookie")
		if h.uri == "/robots.txt" && (private != "" || h.header.Get("User-Agent") != "ExampleBot/1.0") {
			t.Errorf("robots.txt was asked for with %v", h.header)
		}
		if h.uri != "/robots.txt" && private == "" {
			t.Errorf("%s was asked for without the collector's headers", h.uri)
		}
	}
}

func TestRobotsTxtIsNotSubjectToFiltersAboutPages(t *testing.T) {
	w := newWeb(t, map[string]site{
		"a.test":   {"/robots.txt": redirect("http://cdn.test/robots.txt"), "/": page("/x", "/y"), "/x": page(), "/y": page()},
		"cdn.test": {"/robots.txt": "User-agent: *\nDisallow: /x"},
	})
	c := w.start(t, []colly.CollectorOption{colly.AllowedDomains("a.test"), colly.MaxRequests(3)}).follow()
	c.Visit("http://a.test/")
	if got, want := w.uris("a.test"), "/robots.txt / /y"; got != want {
		t.Errorf("a.test was asked for %s, want %s", got, want)
	}
}

func TestLaterCallbacks(t *testing.T) {
	w := newWeb(t, map[string]site{
		"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 0.1", "/": page(), "/x": page(), "/y": page(), "/z": page()},
	})
	c := w.start(t, nil)
	c.OnRequest(func(r *colly.Request) {
		switch r.URL.Path {
		case "/abort":
			r.Abort()
		case "/rewrite":
			r.URL.Path = "/x"
		}
	})
	c.Visit("http://a.test/abort")
	err := c.Visit("http://a.test/rewrite")
	c.Visit("http://a.test/y")
	c.Visit("http://a.test/z")
	if !errors.Is(err, colly.ErrAbortedBeforeRequest) {
		t.Errorf("a URL rewritten to a disallowed one: %v, want ErrAbortedBeforeRequest", err)
	}
	wantDenied(t, c, "http://a.test/x", collyrobots.ReasonRule, 2)
	if got, want := w.uris("a.test"), "/robots.txt /y /z"; got != want {
		t.Errorf("a.test was asked for %s, want %s", got, want)
	}
}

func TestAnEndedContextEndsTheCrawl(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": pages(300, "User-agent: *\nCrawl-delay: 3600")})
	c := w.start(t, async).follow()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Context = ctx
	c.OnScraped(func(*colly.Response) { time.AfterFunc(200*time.Millisecond, cancel) })
	for i := range 300 {
		c.Visit(fmt.Sprintf("http://a.test/%d", i))
	}
	time.AfterFunc(200*time.Millisecond, cancel)
	c.Wait()
	if got := w.uris("a.test"); got != "/robots.txt" {
		t.Errorf("a.test was asked for %s, want robots.txt alone", got)
	}
	if len(c.denied) != 300 || !errors.Is(c.denied["http://a.test/7"], context.Canceled) {
		t.Errorf("OnDenied was told of %d requests, want 300", len(c.denied))
	}
}

func TestClonesAndSeveralCollectorsShareOnePace(t *testing.T) {
	sites := map[string]site{"a.test": pages(6, "User-agent: *\nCrawl-delay: 2\nDisallow: /5")}
	onWire(t, sites, func(t *testing.T, w *wire) {
		c := w.start(t, async)
		clone := c.Clone()
		other := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/2.0"))
		other.WithTransport(w.client)
		for range 2 {
			if err := c.robots.Attach(other); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 6 {
			[]*colly.Collector{c.Collector.Collector, clone.Collector, other}[i%3].Visit(fmt.Sprintf("http://a.test/%d", i))
		}
		c.Wait()
		clone.Wait()
		other.Wait()
		w.keepsGap(t, "a.test", 2*time.Second, 6)
		if _, err := c.WithRobots(); !errors.Is(err, collyrobots.ErrAttached) {
			t.Errorf("a second WithRobots: %v, want ErrAttached", err)
		}
	})
}

func TestCachedPagesCostNoDelay(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": pages(4, "User-agent: *\nCrawl-delay: 1")})
	dir := t.TempDir()
	for i := range 4 { // fill the cache without robots
		c := colly.NewCollector(colly.CacheDir(dir))
		c.WithTransport(w.client)
		c.Visit(fmt.Sprintf("http://a.test/%d", i))
	}
	c := w.start(t, append(async, colly.CacheDir(dir)))
	for i := range 4 {
		c.Visit(fmt.Sprintf("http://a.test/%d", i))
	}
	c.Wait()
	s := c.robots.Stats().Hosts[0]
	if s.Requests != 1 || s.Pages != 4 || len(c.pages) != 4 {
		t.Errorf("%d requests for %d pages, want robots.txt alone for 4", s.Requests, s.Pages)
	}
}

func TestDelayOptions(t *testing.T) {
	const ms = time.Millisecond
	cases := []struct {
		name   string
		robots string
		opts   []collyrobots.Option
		delay  time.Duration
		reason collyrobots.Reason
	}{
		{"none", "", nil, 0, collyrobots.ReasonNoRule},
		{"as written", "Crawl-delay: 1.5", nil, 1500 * ms, collyrobots.ReasonNoRule},
		{"MinDelay", "Crawl-delay: 0.1", []collyrobots.Option{collyrobots.MinDelay(150 * ms)}, 150 * ms, collyrobots.ReasonNoRule},
		{"Clamp", "Crawl-delay: 60", []collyrobots.Option{collyrobots.MaxDelay(100*ms, collyrobots.Clamp)}, 100 * ms, collyrobots.ReasonNoRule},
		{"Skip", "Crawl-delay: 60", []collyrobots.Option{collyrobots.MaxDelay(100*ms, collyrobots.Skip)}, 100 * ms, collyrobots.ReasonDelay},
		{"not over", "Crawl-delay: 0.1", []collyrobots.Option{collyrobots.MaxDelay(100*ms, collyrobots.Skip)}, 100 * ms, collyrobots.ReasonNoRule},
		{"Google", "Crawl-delay: 2", []collyrobots.Option{collyrobots.Dialect(dialect.Google())}, 0, collyrobots.ReasonNoRule},
		{"Google, honoured", "Crawl-delay: 2", []collyrobots.Option{collyrobots.Dialect(dialect.Google()), collyrobots.HonorCrawlDelay()},
			2 * time.Second, collyrobots.ReasonNoRule},
		{"CocCoc", "Crawl-delay: 3600", []collyrobots.Option{collyrobots.Dialect(dialect.CocCoc())}, 10 * time.Second, collyrobots.ReasonNoRule},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWeb(t, map[string]site{"a.test": {"/robots.txt": "User-agent: *\n" + tc.robots + "\nDisallow: /x\n"}})
			c := w.start(t, nil, tc.opts...)
			d, err := c.robots.Check(t.Context(), "http://a.test/")
			if err != nil || d.Delay != tc.delay || d.Reason != tc.reason || d.Allowed != (tc.reason == collyrobots.ReasonNoRule) {
				t.Errorf("%v, delay %v (%v); want delay %v, %s", d, d.Delay, err, tc.delay, tc.reason)
			}
			if said := strings.Contains(c.logged.String(), "MaxDelay"); said != (d.CrawlDelay > d.Delay) {
				t.Errorf("log: %q", c.logged)
			}
		})
	}
}

func TestCheckTellsEverything(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": {"/robots.txt": "# hello\nUser-agent: ExampleBot\nDisallow: /x*y$ # no\nCrawl-delay: 2\n"}})
	c := w.start(t, nil)
	before := time.Now()
	d, err := c.robots.Check(t.Context(), "http://A.test:80/x/y")
	if err != nil {
		t.Fatal(err)
	}
	if d.Fetched.Before(before) || !d.Expires.After(d.Fetched.Add(23*time.Hour)) {
		t.Errorf("fetched %v, expires %v", d.Fetched, d.Expires)
	}
	d.Fetched, d.Expires = time.Time{}, time.Time{}
	want := collyrobots.Decision{
		URL: "http://A.test:80/x/y", Authority: "http://a.test", RobotsURL: "http://a.test/robots.txt",
		Reason: collyrobots.ReasonRule, Dialect: "rfc9309", Group: "ExampleBot",
		Rule: dialect.Rule{Pattern: "/x*y$", Line: 3}, Status: 200, CrawlDelay: 2 * time.Second, Delay: 2 * time.Second,
	}
	if d != want {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
	if got, want := d.String(), `http://A.test:80/x/y denied: "Disallow: /x*y$", line 3 of http://a.test/robots.txt, group "ExampleBot" (rfc9309)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, bad := range []string{"", "a.test/x", "mailto:a@a.test", "http://[::1", "http://", "javascript:0"} {
		if _, err := c.robots.Check(t.Context(), bad); err == nil {
			t.Errorf("Check(%q) succeeds", bad)
		}
	}
}

func TestAStoreSparesTheFetch(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": pages(2, "User-agent: *\nDisallow: /1")})
	shared := store.Memory()
	defer shared.Close()
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc()} {
		c := w.start(t, []colly.CollectorOption{colly.AllowURLRevisit()}, collyrobots.Store(shared), collyrobots.Dialect(d)).follow()
		c.Visit("http://a.test/")
		c.robots.Close()
	}
	if got, want := w.uris("a.test"), "/robots.txt / /0 / /0 / /0"; got != want {
		t.Errorf("a.test was asked for %s, want %s", got, want)
	}
}

func TestHTTPClientFetchesRobotsTxt(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": pages(1, "User-agent: *\nDisallow: /0")})
	c := w.start(t, nil, collyrobots.HTTPClient(&http.Client{Transport: w.client})).follow()
	c.WithTransport(roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/robots.txt" {
			t.Error("robots.txt was asked for with the collector's client")
		}
		return w.client.RoundTrip(r)
	}))
	c.Visit("http://a.test/")
	if got, want := w.uris("a.test"), "/robots.txt /"; got != want {
		t.Errorf("a.test was asked for %s, want %s", got, want)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAfterCloseNothingIsSent(t *testing.T) {
	w := newWeb(t, map[string]site{"a.test": pages(1, noDenys)})
	c := w.start(t, nil)
	c.Visit("http://a.test/")
	for range 2 {
		if err := c.robots.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.Visit("http://a.test/0")
	if _, err := c.robots.Check(t.Context(), "http://a.test/"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("Check: %v, want ErrClosed", err)
	}
	if !errors.Is(c.denied["http://a.test/0"], collyrobots.ErrClosed) || w.uris("a.test") != "/robots.txt /" {
		t.Errorf("OnDenied was told %v, a.test was asked for %s", c.denied, w.uris("a.test"))
	}
}

func TestTheBuiltInCheckIsTurnedOff(t *testing.T) {
	t.Setenv("COLLY_IGNORE_ROBOTSTXT", "no")
	w := newWeb(t, map[string]site{"a.test": pages(1, "Disallow: /\nUser-agent: *\nDisallow: /x")}) // temoto refuses this file
	c := w.start(t, nil)
	if err := c.Visit("http://a.test/"); err != nil || w.uris("a.test") != "/robots.txt /" {
		t.Errorf("%v; a.test was asked for %s", err, w.uris("a.test"))
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	cases := map[string]collyrobots.Option{
		"ProductToken":   collyrobots.ProductToken("ExampleBot", "Example Bot/1.0"),
		"MinDelay":       collyrobots.MinDelay(-1),
		"MaxDelay":       collyrobots.MaxDelay(0, collyrobots.Clamp),
		"FollowSitemaps": collyrobots.FollowSitemaps(collyrobots.Feed{Window: -1}),
		"OnDenied":       collyrobots.OnDenied(nil),
		"Store":          collyrobots.Store(nil),
		"Logger":         collyrobots.Logger(nil),
		"HTTPClient":     collyrobots.HTTPClient(nil),
		"Option":         {},
	}
	var all []collyrobots.Option
	for name, o := range cases {
		all = append(all, o)
		_, err := collyrobots.New(o)
		var fault *collyrobots.OptionError
		if !errors.As(err, &fault) || fault.Option != name || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := colly.NewCollector()
	_, err := collyrobots.WithRobots(c, all...)
	for name := range cases {
		if err == nil || !strings.Contains(err.Error(), "collyrobots: "+name+": ") {
			t.Errorf("all at once: %s is missing in %v", name, err)
		}
	}
	for _, o := range []collyrobots.Option{
		collyrobots.ProductToken(), collyrobots.ProductToken(""), collyrobots.ProductToken("*"),
		collyrobots.MaxDelay(time.Second, 0), collyrobots.MaxDelay(-1, collyrobots.Skip), collyrobots.MaxDelay(1, 3),
		collyrobots.FollowSitemaps(collyrobots.Feed{MaxURLs: -1}),
	} {
		if _, err := collyrobots.New(o); err == nil {
			t.Error("a bad option is taken")
		}
	}
	if _, err := collyrobots.WithRobots(nil); err == nil {
		t.Error("WithRobots(nil) succeeds")
	}
}
