package robotstest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// onBoth runs f with a web in a bubble and with one on the loopback interface.
func onBoth(t *testing.T, sites robotstest.Sites, f func(t *testing.T, web *robotstest.Web)) {
	t.Helper()
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, robotstest.New(t, sites)) })
	})
	t.Run("loopback", func(t *testing.T) { f(t, robotstest.New(t, sites)) })
}

// get returns the status, content type and body of a response, or the error.
func get(transport http.RoundTripper, url string) string {
	client := http.Client{Transport: transport}
	resp, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return strings.TrimSpace(fmt.Sprintln(resp.StatusCode, resp.Header.Get("Content-Type"), string(body), err))
}

func TestAnswers(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Method, r.URL.Query()) }
	site := robotstest.Site{
		"/robots.txt": "User-agent: *", "/": "<p>", "/xml": "<?xml version='1.0'?>", "/map": robotstest.Sitemap("a"), "/png": []byte("\x89PNG\x0D\x0A\x1A\x0A"),
		"/empty": "", "/gone": 410, "/func?x=1": echo, "/handler?x=2": http.HandlerFunc(echo), "/redirect": robotstest.Redirect("/gone"), "/nil": nil,
	}
	onBoth(t, robotstest.Sites{"a.test": site, "all.test": {"*": "all", "/one": "one"}}, func(t *testing.T, web *robotstest.Web) {
		transport := web.Transport()
		for url, want := range map[string]string{
			"http://a.test/robots.txt":   "200 text/plain; charset=utf-8 User-agent: * <nil>",
			"http://a.test":              "200 text/html; charset=utf-8 <p> <nil>",
			"http://a.test/xml":          "200 application/xml; charset=utf-8 <?xml version='1.0'?> <nil>",
			"http://a.test/map":          `200 application/xml; charset=utf-8 <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>a</loc></url></urlset> <nil>`,
			"http://a.test/png":          "200 image/png \x89PNG\x0D\x0A\x1A\x0A <nil>",
			"http://a.test/empty":        "200 text/plain; charset=utf-8  <nil>",
			"http://a.test/gone":         "410   <nil>",
			"http://a.test/func?x=1":     "200 text/plain; charset=utf-8 GETmap[x:[1]] <nil>",
			"http://a.test/handler?x=2":  "200 text/plain; charset=utf-8 GETmap[x:[2]] <nil>",
			"http://a.test/redirect":     "410   <nil>",
			"http://a.test/nil":          "404 text/plain; charset=utf-8 404 page not found\n <nil>",
			"http://a.test/xml?":         "404 text/plain; charset=utf-8 404 page not found\n <nil>",
			"http://all.test/one":        "200 text/plain; charset=utf-8 one <nil>",
			"https://all.test/two?three": "200 text/plain; charset=utf-8 all <nil>",
		} {
			if got := get(transport, url); got != want {
				t.Errorf("%s: %q, want %q", url, got, want)
			}
		}
	})
}

func TestPageBuilders(t *testing.T) {
	for got, want := range map[string]string{
		robotstest.Page("/1", `/?a&"`):                                      "<!doctype html><title>A page</title>\n<a href=\"/1\">a link</a>\n<a href=\"/?a&amp;&#34;\">a link</a>",
		robotstest.SitemapIndex("2026-01-31 http://a.test/?a&b"):            `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>http://a.test/?a&amp;b</loc><lastmod>2026-01-31</lastmod></sitemap></sitemapindex>`,
		fmt.Sprint(robotstest.Pages(2, "robots")):                           fmt.Sprint(robotstest.Site{"/": robotstest.Page("/0", "/1"), "/0": robotstest.Page(), "/1": robotstest.Page(), "/robots.txt": "robots"}),
		fmt.Sprintf("%.2x", robotstest.Gzip("x")[:2]):                       "1f8b",
		http.DetectContentType(robotstest.Gzip(strings.Repeat("x", 10000))): "application/x-gzip",
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	sites := robotstest.Sites{}
	for _, host := range []string{"a.test", "b.test:8080", "B.test:8443", "Bücher.test:80", "deep.shop.example.com:443", "127.0.0.1", "[::1]:8443"} {
		sites[host] = robotstest.Site{"/": host}
	}
	onBoth(t, sites, func(t *testing.T, web *robotstest.Web) {
		transport := web.Transport()
		for url, want := range map[string]string{
			"http://A.TEST:80/": "a.test", "https://a.test/": "a.test", "http://b.test:8080": "b.test:8080", "https://b.test:8443": "B.test:8443",
			"http://xn--bcher-kva.test": "Bücher.test:80", "https://deep.shop.example.com": "deep.shop.example.com:443", "http://127.0.0.1/": "127.0.0.1",
			"https://127.0.0.1/": "127.0.0.1", "https://[::1]:8443/": "[::1]:8443",
		} {
			if got := get(transport, url); got != "200 text/plain; charset=utf-8 "+want+" <nil>" {
				t.Errorf("%s: %q, want %s", url, got, want)
			}
		}
		got := web.Log("")
		want := map[string]string{"a.test": "http https", "b.test:8080": "http", "b.test:8443": "https", "xn--bcher-kva.test": "http", "deep.shop.example.com": "https", "127.0.0.1": "http https", "[::1]:8443": "https"}
		for _, r := range got {
			if !strings.Contains(want[r.Host], r.Scheme) || r.Method != "GET" || r.URI != "/" || r.Proxy != "" {
				t.Errorf("%+v", r)
			}
		}
		if len(got) != 9 || len(web.Log("BÜCHER.test")) != 1 || len(web.Log("127.0.0.1")) != 2 || len(web.Log("else.test")) != 0 || web.Log("in valid") != nil {
			t.Errorf("%d requests: %v", len(got), got)
		}
		for _, url := range []string{"http://c.test/", "http://a.test:81/", "https://b.test/"} {
			if _, err := transport.RoundTrip(request(t, url)); !isNotFound(err) {
				t.Errorf("%s: %v, want a name that is not found", url, err)
			}
		}
	})
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func isNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// Every host acts as a proxy. The log contains the requests at the hosts that they were forwarded
// to.
func TestProxies(t *testing.T) {
	sites := robotstest.Sites{"proxy.test": {"/": "itself"}, "a.test": {"/": "a"}, "b.test:8443": {"/": "b"}}
	onBoth(t, sites, func(t *testing.T, web *robotstest.Web) {
		transport := web.Transport()
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test:80"})
		for _, tc := range []struct{ url, want string }{
			{"http://a.test/", "200 text/plain; charset=utf-8 a <nil>"},
			{"https://a.test/", "200 text/plain; charset=utf-8 a <nil>"},
			{"https://b.test:8443/", "200 text/plain; charset=utf-8 b <nil>"},
			{"http://proxy.test/", "200 text/plain; charset=utf-8 itself <nil>"},
			{"http://c.test/", "502 text/plain; charset=utf-8 the web has no such host\n <nil>"},
			{"https://c.test/", `Get "https://c.test/": Bad Gateway`},
		} {
			if got := get(transport, tc.url); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.url, got, tc.want)
			}
		}
		var log []string
		for _, r := range web.Log("") {
			log = append(log, r.Scheme+" "+r.Host+" by "+r.Proxy)
		}
		want := "http a.test by proxy.test, https a.test by proxy.test, https b.test:8443 by proxy.test, http proxy.test by "
		if got := strings.Join(log, ", "); got != want {
			t.Errorf("log: %s\nwant %s", got, want)
		}
	})
}

// A client that does not trust the authority of the web rejects its certificates.
func TestCertificates(t *testing.T) {
	onBoth(t, robotstest.Sites{"a.test": {"/": "a"}}, func(t *testing.T, web *robotstest.Web) {
		transport := web.Transport()
		transport.TLSClientConfig = nil
		if got := get(transport, "https://a.test/"); !strings.Contains(got, "certificate signed by unknown authority") {
			t.Error(got)
		}
		if n := len(web.Log("")); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
}

// TestBubbleAfter2020 makes a web in a bubble whose clock has reached the present.
func TestBubbleAfter2020(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)))
		web := robotstest.New(t, robotstest.Sites{"a.test": {"/": "hello"}})
		transport := web.Transport()
		get(transport, "http://a.test/")
		time.Sleep(time.Hour)
		get(transport, "https://a.test/")
		if got, want := web.Log("a.test").Schedule(), []string{"0s /", "1h0m0s /"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestLogInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		web := robotstest.New(t, robotstest.Sites{"a.test": {"/": 204}, "b.test": {"/": 204}})
		began := time.Now()
		transport := web.Transport()
		if gap := web.Log("").MinGap(); gap != 1<<63-1 {
			t.Errorf("smallest gap of an empty log: %v", gap)
		}
		for _, visit := range []struct {
			at  time.Duration
			url string
		}{
			{0, "http://a.test/"}, {90 * time.Second, "https://a.test/c?d=e%20f"}, {91 * time.Second, "http://b.test/b"}, {91500 * time.Millisecond, "http://a.test/b"},
		} {
			time.Sleep(visit.at - time.Since(began))
			r := request(t, visit.url)
			r.Header.Set("User-Agent", "ExampleBot/1.0")
			if resp, err := transport.RoundTrip(r); err != nil || resp.Body.Close() != nil {
				t.Fatal(err)
			}
		}
		a := web.Log("a.test")
		if got, want := a.Schedule(), []string{"0s /", "1m30s /c?d=e%20f", "1m31.5s /b"}; !slices.Equal(got, want) {
			t.Errorf("Schedule: got %q, want %q", got, want)
		}
		if got, want := a.String(), "0s /\n1m30s /c?d=e%20f\n1m31.5s /b"; got != want {
			t.Errorf("String: got %q, want %q", got, want)
		}
		if got, want := a.URIs(), []string{"/", "/c?d=e%20f", "/b"}; !slices.Equal(got, want) {
			t.Errorf("URIs: got %q, want %q", got, want)
		}
		if got, want := a.SortedURIs(), []string{"/", "/b", "/c?d=e%20f"}; !slices.Equal(got, want) {
			t.Errorf("SortedURIs: got %q, want %q", got, want)
		}
		if a.MinGap() != 1500*time.Millisecond || web.Log("").MinGap() != 500*time.Millisecond {
			t.Errorf("smallest gaps %v and %v", a.MinGap(), web.Log("").MinGap())
		}
		if a[1].Header.Get("User-Agent") != "ExampleBot/1.0" || a[1].Time.Sub(began) != 90*time.Second || a[1].Scheme != "https" {
			t.Errorf("%+v", a[1])
		}
		web.Reset()
		time.Sleep(time.Second)
		get(transport, "http://a.test/")
		if got, want := web.Log("").Schedule(), []string{"1s /"}; !slices.Equal(got, want) || len(a) != 3 {
			t.Errorf("after Reset: got %q, want %q", got, want)
		}
	})
}

func TestSetDuringRequests(t *testing.T) {
	onBoth(t, robotstest.Sites{"a.test": {"/": "old"}}, func(t *testing.T, web *robotstest.Web) {
		transport := web.Transport()
		done := make(chan bool)
		go func() {
			defer close(done)
			for range 100 {
				get(transport, "http://a.test/")
			}
		}()
		for range 100 {
			web.Set("A.test", "/", "new")
			web.Log("a.test").Schedule()
		}
		<-done
		web.Set("b.test", "*", "more")
		for _, url := range []string{"http://a.test/ new", "http://b.test/x more"} {
			url, want, _ := strings.Cut(url, " ")
			if got := get(transport, url); !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %s", url, got, want)
			}
		}
		web.Set("a.test", "/", nil)
		if got := get(transport, "http://a.test/"); !strings.HasPrefix(got, "404") {
			t.Errorf("removed: %q", got)
		}
	})
}

// An answer that cannot be served fails the test. Otherwise, it would be served as not found, and
// the test would check something else.
func TestSitesThatCannotBeServed(t *testing.T) {
	for want, sites := range map[string]robotstest.Sites{
		`"no host"`:                 {"no host": nil},
		"/x: a float64 is not":      {"a.test": {"/x": 1.5}},
		`"x" does not begin with a`: {"a.test": {"x": "y"}},
		"99 is not a valid status":  {"a.test": {"/": 99}},
		"a.test is listed twice":    {"a.test": nil, "A.test": nil},
	} {
		var faults failing
		func() {
			defer func() { recover() }()
			robotstest.New(&faults, sites)
		}()
		_, err := robotstest.Open(sites)
		if len(faults.said) != 1 || !strings.Contains(faults.said[0], want) || err == nil || err.Error() != faults.said[0] {
			t.Errorf("%s: New reports %q, Open returns %v", want, faults.said, err)
		}
	}
	var faults failing
	web := robotstest.New(&faults, nil)
	defer web.Close()
	web.Set("a.test", "/", t)
	if len(faults.said) != 1 || !strings.Contains(faults.said[0], "a *testing.T is not a valid answer") {
		t.Errorf("Set: the test got the errors %q", faults.said)
	}
	if panicked := setPanics(t); panicked != faults.said[0] {
		t.Errorf("Set panics with %q in a web without a test, want %q", panicked, faults.said[0])
	}
}

// setPanics returns the panic of Set for an invalid answer in a web that was started by Open.
func setPanics(t *testing.T) (panicked string) {
	web, err := robotstest.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	defer func() { panicked = fmt.Sprint(recover()) }()
	web.Set("a.test", "/", t)
	return ""
}

// failing is a test that records its errors. It does not call cleanup functions.
type failing struct {
	testing.TB
	said []string
}

func (f *failing) Helper()                           {}
func (f *failing) Cleanup(func())                    {}
func (f *failing) Error(args ...any)                 { f.said = append(f.said, fmt.Sprint(args...)) }
func (f *failing) Errorf(format string, args ...any) { f.Error(fmt.Sprintf(format, args...)) }
func (f *failing) Fatal(args ...any)                 { f.Error(args...); panic(f) }

// Close cancels the requests in progress and waits until their handlers have returned.
func TestCloseWhileHandlersRun(t *testing.T) {
	for _, mode := range []string{"bubble", "loopback"} {
		t.Run(mode, func(t *testing.T) {
			run := func(t *testing.T) {
				began, ended := make(chan bool), false
				web, err := robotstest.Open(robotstest.Sites{"a.test": {"/": func(_ http.ResponseWriter, r *http.Request) {
					close(began)
					<-r.Context().Done()
					time.Sleep(10 * time.Millisecond)
					ended = true
				}}})
				if err != nil {
					t.Fatal(err)
				}
				transport, got := web.Transport(), make(chan string)
				go func() { got <- get(transport, "http://a.test/") }()
				<-began
				web.Close()
				if !ended {
					t.Error("Close did not wait for a handler")
				}
				if got := <-got; !strings.Contains(got, "EOF") && !strings.Contains(got, "reset") {
					t.Errorf("got %s", got)
				}
				if got := get(transport, "http://a.test/"); strings.HasPrefix(got, "200 ") {
					t.Errorf("after Close: %s", got)
				}
				web.Close()
			}
			if mode == "loopback" {
				run(t)
			} else {
				synctest.Test(t, run)
			}
		})
	}
}

// The server accepts connections concurrently, each with its own TLS handshake.
func TestManyConnectionsAtOnce(t *testing.T) {
	onBoth(t, robotstest.Sites{"a.test": {"/": "a"}}, func(t *testing.T, web *robotstest.Web) {
		got := make(chan string)
		for range 50 {
			transport := web.Transport()
			transport.DisableKeepAlives = true
			go func() { got <- get(transport, "https://a.test/") }()
		}
		for range 50 {
			if got := <-got; !strings.HasPrefix(got, "200") {
				t.Error(got)
			}
		}
	})
}
