package exchange

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
)

// robotsOf returns the fetch of the robots.txt of a.test.
func (w *world) robotsOf(f Fetcher) policy.Fetch {
	f.Wire = w.Wire
	if f.Client == nil {
		f.Client = SeamClient{}
	}
	return f.PolicyFetch(dialect.Authority{Scheme: "http", Host: "a.test"}, "Bot")
}

// request returns a request for a URL that response, which may be nil, has led to.
func (w *world) request(rawURL string, response *http.Response) *http.Request {
	req := &http.Request{Method: http.MethodGet, URL: mustParse(rawURL), Response: response}
	return req.WithContext(w.t.Context())
}

// TestRobotsRequests checks that the redirects of a robots.txt keep the pace of each host, and that
// the exchange before a redirect ends before the next one waits for the same host.
func TestRobotsRequests(t *testing.T) {
	inBubble(t, time.Second, func(w *world) {
		w.answer = func(*http.Request) *http.Response { return respond(http.StatusFound, nil) }
		fetch := w.robotsOf(Fetcher{})
		var last *http.Response
		for _, next := range []string{"http://a.test/robots.txt", "http://a.test/r", "http://b.test/r", "http://a.test/r2"} {
			resp, err := fetch.Do(w.request(next, last))
			w.must(err)
			last = resp
		}
		last.Body.Close()
		w.wantRequests("0s GET a.test/robots.txt", "1s GET a.test/r", "1s GET b.test/r", "2s GET a.test/r2")
		w.wantIdle("a.test", 3)
		w.wantIdle("b.test", 1)
	})
}

// TestSharedRobotsRequests checks that a lease is kept during a redirect to a host with another pace,
// so that no other process fetches the same file.
func TestSharedRobotsRequests(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		w.answer = func(*http.Request) *http.Response { return respond(http.StatusFound, nil) }
		all := &leases{length: time.Minute}
		w.Share(all)
		fetch := w.robotsOf(Fetcher{})
		first, err := fetch.Do(w.request("http://a.test/robots.txt", nil))
		w.must(err)
		second, err := fetch.Do(w.request("http://b.test/", first))
		w.must(err)
		if all.acquired != 2 || all.released != 0 {
			t.Errorf("acquired %d, released %d; want 2, 0", all.acquired, all.released)
		}
		first.Body.Close()
		second.Body.Close()
		if all.released != 2 {
			t.Errorf("released %d; want 2", all.released)
		}
	})
}

// TestRobotsErrors checks what the errors of a request mean to package policy.
func TestRobotsErrors(t *testing.T) {
	unpaced := &report.PaceError{Host: "a.test", Err: errRefused}
	private := &report.PrivateNetworkError{}
	excess := &netguard.QuotaError{}
	tests := []struct {
		name        string
		err         error
		payer, from string
		access      netguard.Access
		want        error // nil if the error says something about the site
	}{
		{name: "broken", err: errRefused},
		{name: "no lease", err: unpaced, want: policy.ErrUnsent},
		{name: "quota of a sitemap's site", err: excess, payer: "b.test", want: policy.ErrUnsent},
		{name: "quota of its redirects", err: excess, from: "a.test", want: policy.ErrForbidden},
		{name: "private", err: private},
		{name: "private after a redirect", err: private, from: "a.test", want: policy.ErrForbidden},
		{name: "private and denied everywhere", err: private, access: netguard.DenyAll, want: policy.ErrForbidden},
	}
	for _, test := range tests {
		inBubble(t, 0, func(w *world) {
			w.allow(test.access)
			r := &robotsRequests{
				wire:  w.Wire,
				first: Lead{Origin: Origin{Payer: test.payer}},
				next:  Lead{Origin: Origin{Host: test.from}},
			}
			err := r.forPolicy(test.err)
			for _, kind := range []error{policy.ErrUnsent, policy.ErrForbidden} {
				if errors.Is(err, kind) != (kind == test.want) {
					t.Errorf("%s: %v is %v: %v", test.name, err, kind, errors.Is(err, kind))
				}
			}
			if err.Error() != test.err.Error() || !errors.Is(err, test.err) {
				t.Errorf("%s: the error became %v", test.name, err)
			}
		})
	}
}

// TestRobotsByProxy checks that the proxy of a request is known, and that its demand for
// authentication is not taken for a response of the site.
func TestRobotsByProxy(t *testing.T) {
	status := http.StatusOK
	inBubble(t, 0, func(w *world) {
		w.peer = address("192.88.0.1")
		w.answer = func(*http.Request) *http.Response { return respond(status, nil) }
		fetch := w.robotsOf(Fetcher{})
		for _, test := range []struct {
			url    string
			status int
			proxy  string
			err    error
		}{
			{url: "http://a.test/proxied", status: 200, proxy: "proxy.test:3128"},
			{url: "http://a.test/proxied", status: 407, proxy: "proxy.test:3128", err: errProxyAuth},
			{url: "http://a.test/direct", status: 407},
		} {
			status = test.status
			resp, err := fetch.Do(w.request(test.url, nil))
			if err != test.err || fetch.Proxy() != test.proxy {
				t.Errorf("%s, status %d: error %v, proxy %q", test.url, test.status, err, fetch.Proxy())
			}
			if err == nil {
				resp.Body.Close()
			}
		}
	})
}

// TestWays checks in which cases an unanswered robots.txt is requested once more: if the header for a
// proxy, the proxy, or the header of the same page is another one.
func TestWays(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		w.Client = nil
		proxied := &http.Transport{Proxy: http.ProxyURL(mustParse("http://user:pass@proxy.test:3128"))}
		other := &http.Transport{Proxy: http.ProxyURL(mustParse("http://user2:pass@proxy.test:3128"))}
		seam := backend.NewSeam(new(http.Transport), nil)
		way := func(s *backend.Seam, header http.Header, changed bool) policy.Way {
			return w.robotsOf(Fetcher{Client: SeamClient{Through: s}, Header: header, Changed: changed}).Way
		}
		plain := way(seam, nil, false)
		tests := []struct {
			name string
			way  policy.Way
			same bool
		}{
			{name: "the same", way: way(seam, nil, false), same: true},
			{name: "a header of the site", way: way(seam, http.Header{"Cookie": {"a=b"}}, false), same: true},
			{name: "a header for a proxy", way: way(seam, http.Header{"X-Proxy-Country": {"de"}}, false)},
			{name: "a changed page", way: way(seam, nil, true)},
			{name: "another seam", way: way(backend.NewSeam(new(http.Transport), nil), nil, false)},
		}
		for _, test := range tests {
			if same := test.way == plain; same != test.same {
				t.Errorf("%s: the same way %v, want %v", test.name, same, test.same)
			}
		}
		a := dialect.Authority{Scheme: "http", Host: "a.test"}
		first := fixedProxy(proxied, a)
		if !strings.HasPrefix(first, "proxy.test:3128/") || strings.Contains(first, "pass") || first == fixedProxy(other, a) {
			t.Errorf("proxies %q and %q", first, fixedProxy(other, a))
		}
		if got := fixedProxy(http.DefaultTransport, a); got != "" {
			t.Errorf("a proxy without a proxy: %q", got)
		}
	})
}

// TestOwnTransport checks which transport sends the plugin's own requests.
func TestOwnTransport(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		rt := new(http.Transport)
		seam := backend.NewSeam(rt, nil)
		if got := w.transport(seam); got != http.RoundTripper(w) {
			t.Errorf("with a client: %T", got)
		}
		w.Client = nil
		if w.transport(seam) != http.RoundTripper(rt) || w.transport(nil) != http.DefaultTransport {
			t.Error("without a client, the seam or the default transport is not used")
		}
		c := SeamClient{Through: seam}
		if err := c.Forbids(mustParse("http://a.test/")); err != nil {
			t.Error(err)
		}
		if c.UserAgent() != nil || c.Caller() != nil || GuardedBy(nil, "p") != (Origin{Payer: "p"}) {
			t.Error("a SeamClient has a name or a caller")
		}
		guard := &report.PrivateNetworkError{From: "b.test"}
		if got := GuardedBy(guard, "p"); got != (Origin{Host: "b.test", Payer: "p"}) {
			t.Errorf("GuardedBy: %+v", got)
		}
	})
}

// TestCredentials checks which headers of a page are sent with the request for its robots.txt: at
// first only those for the proxy, and if the site refuses that, also the others and the cookies.
func TestCredentials(t *testing.T) {
	u := mustParse("http://a.test/robots.txt")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(u, []*http.Cookie{{Name: "a", Value: "jar"}, {Name: "b", Value: "jar"}})
	proxied := http.Header{"X-Proxy-Session": {"1"}}
	tests := []struct {
		name   string
		page   http.Header
		jar    http.CookieJar
		first  http.Header
		second http.Header // nil if there is no second request
	}{
		{name: "nothing", first: http.Header{}},
		{
			name: "only for other requests", first: http.Header{},
			page: http.Header{"Accept": {"*/*"}, "Referer": {"r"}, "If-None-Match": {"e"}, "Content-Type": {"t"}, "User-Agent": {"u"}, "Range": {"x"}},
		},
		{
			name: "of the site", page: http.Header{"Authorization": {"s"}, "accept": {"text/html"}, "Referer": {"r"}},
			first: http.Header{}, second: http.Header{"Authorization": {"s"}, "accept": {"text/html"}},
		},
		{
			name: "of the proxy and the site", page: http.Header{"X-Proxy-Session": {"1"}, "Authorization": {"s"}},
			first: proxied, second: http.Header{"X-Proxy-Session": {"1"}, "Authorization": {"s"}},
		},
		{name: "of the proxy alone", page: http.Header{"X-Proxy-Session": {"1"}}, first: proxied}, // the second would be the first once more
		{name: "cookies", page: http.Header{"Cookie": {"a=page"}}, jar: jar, first: http.Header{}, second: http.Header{"Cookie": {"a=page; b=jar"}}},
	}
	for _, test := range tests {
		var f policy.Fetch
		addHeaders(&f, test.page, test.jar)
		clear(test.page) // the program may use it for another request
		second := f.AsPage(u)
		if fmt.Sprint(f.Header) != fmt.Sprint(test.first) || fmt.Sprint(second) != fmt.Sprint(test.second) {
			t.Errorf("%s: got %v and %v, want %v and %v", test.name, f.Header, second, test.first, test.second)
		}
	}
}

// TestFailures checks what errors mean.
func TestFailures(t *testing.T) {
	for _, test := range failures {
		if got := FailureOf(test.err); got != test.want {
			t.Errorf("%v: got %+v, want %+v", test.err, got, test.want)
		}
	}
}

// TestBoth checks that Both calls what there is.
func TestBoth(t *testing.T) {
	calls := ""
	f := func() { calls += "f" }
	g := func() { calls += "g" }
	for _, both := range []func(){Both(f, nil), Both(nil, g), Both(f, g)} {
		both()
	}
	if calls != "fgfg" || Both(nil, nil) != nil {
		t.Errorf("got %q", calls)
	}
}

// TestInvalidURL checks that a request for a URL without a host is not sent.
func TestInvalidURL(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		x := &Exchange{Wire: w.Wire}
		_, began, err := x.Send(&http.Request{URL: new(url.URL)}, nil, 0, Lead{})
		if err == nil || !began.IsZero() {
			t.Errorf("began %v, error %v", began, err)
		}
	})
}

// TestLimitOfRobotsTxt checks that the Timeout of the client of RobotsClient limits a fetch of
// robots.txt.
func TestLimitOfRobotsTxt(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		w.Wire.Client = &http.Client{Timeout: 7 * time.Second}
		if got := w.robotsOf(Fetcher{}).Limit; got != 7*time.Second {
			t.Errorf("the limit of the fetch is %v, want 7s", got)
		}
	})
}
