package view

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// newCrawl returns a collector for a web, its plugin, and the handler of the plugin's page.
func newCrawl(t testing.TB, sites robotstest.Sites, options ...collyrobots.Option) (*collyrobots.Collector, *collyrobots.Plugin, *Page) {
	t.Helper()
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(robotstest.New(t, sites).Transport())
	p, err := c.WithRobots(append([]collyrobots.Option{collyrobots.Logger(slog.New(slog.DiscardHandler))}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return c, p, New(p, Options{})
}

// get sends a GET request to a handler. The headers are names and values in turn.
func get(h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	return ask(h, http.MethodGet, target, headers...)
}

func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:8090"
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// stateOf returns the state that the handler serves.
func stateOf(t *testing.T, h http.Handler, parameters string) (st struct {
	Closed   bool
	Totals   report.HostStats
	TimeLeft *struct {
		Duration, Delay float64
		Host            string
	} `json:"time_left"`
	Known    int
	Matching int
	Hosts    []struct {
		Stats    report.HostStats
		TimeLeft float64 `json:"time_left"`
		Starts   [][]any
	}
	Denials  []denial
	DeniedBy map[string]int `json:"denied_by"`
	Sitemaps struct{ Files []sitemapFile }
	Missed   int
}) {
	t.Helper()
	w := get(h, "/state.json?"+parameters)
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return st
}

func TestRefusals(t *testing.T) {
	h := New(nil, Options{})
	for _, test := range []struct {
		name, method, target string
		headers              []string
		want                 int
	}{
		{"the page", "GET", "/", nil, 200},
		{"HEAD", "HEAD", "/", nil, 200},
		{"POST", "POST", "/", nil, 405},
		{"OPTIONS", "OPTIONS", "/state.json", nil, 405},
		{"localhost", "GET", "/", []string{"Host", "localhost:8090"}, 200},
		{"a name below localhost", "GET", "/", []string{"Host", "crawl.localhost"}, 200},
		{"IPv6", "GET", "/", []string{"Host", "[::1]:8090"}, 200},
		{"an address of a network", "GET", "/", []string{"Host", "192.168.1.4"}, 200},
		{"DNS rebinding", "GET", "/state.json", []string{"Host", "evil.example"}, 421},
		{"a name that ends like it", "GET", "/", []string{"Host", "evillocalhost"}, 421},
		{"user information", "GET", "/", []string{"Host", "127.0.0.1@evil.example"}, 421},
		{"no host", "GET", "/", []string{"Host", ""}, 421},
		{"our own script", "GET", "/state.json", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		{"typed in", "GET", "/state.json", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
		{"another site's script", "GET", "/state.json", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"another port's script", "GET", "/state.json", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"another site's stream", "GET", "/events", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"another site's link", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"another site's frame", "GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"another site's link to data", "GET", "/state.json", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"an old browser, another site", "GET", "/state.json", []string{"Origin", "https://evil.example"}, 403},
		{"an old browser, a sandbox", "GET", "/state.json", []string{"Origin", "null"}, 403},
		{"an old browser, our page", "GET", "/state.json", []string{"Origin", "http://127.0.0.1:8090"}, 200},
		{"an asset", "GET", "/view.js", nil, 200},
		{"the template", "GET", "/page.html", nil, 404},
		{"nothing", "GET", "/passwd", nil, 404},
		{"out of the assets", "GET", "/..%2fview.go", nil, 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := ask(h, test.method, test.target, test.headers...)
			if w.Code != test.want {
				t.Errorf("status %d, want %d: %s", w.Code, test.want, w.Body)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; ", "X-Content-Type-Options": "nosniff",
				"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			} {
				if got := w.Header().Get(name); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %q", name, got)
				}
			}
			if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("other origins may read the response: %s", got)
			}
		})
	}
}

// TestPrefixes checks that the page and its assets are found below any prefix.
func TestPrefixes(t *testing.T) {
	h := New(nil, Options{})
	mux := http.NewServeMux()
	mux.Handle("/plain/", h)
	mux.Handle("/a/stripped/", http.StripPrefix("/a/stripped", h))
	mux.Handle("/bare", http.StripPrefix("/bare", h))
	for target, want := range map[string]string{
		"/plain/": "text/html; charset=utf-8", "/plain/style.css": "text/css; charset=utf-8", "/a/stripped/": "text/html; charset=utf-8",
		"/a/stripped/chart.js": "text/javascript; charset=utf-8", "/a/stripped/state.json": "application/json", "/a/stripped/reasons.js": "text/javascript; charset=utf-8", "/plain/icon.svg": "image/svg+xml",
	} {
		if w := get(mux, target); w.Code != http.StatusOK || w.Header().Get("Content-Type") != want {
			t.Errorf("%s: status %d, %s, want %s", target, w.Code, w.Header().Get("Content-Type"), want)
		}
	}
	if w := get(mux, "/bare?q=1"); w.Code != http.StatusFound || w.Header().Get("Location") != "./bare/" {
		t.Errorf("/bare: status %d to %q", w.Code, w.Header().Get("Location"))
	}
}

// TestNoPlugin checks the page of a plugin that is nil or zero.
func TestNoPlugin(t *testing.T) {
	for name, p := range map[string]*collyrobots.Plugin{"nil": nil, "zero": new(collyrobots.Plugin)} {
		h := New(p, Options{})
		if st := stateOf(t, h, ""); st.Known != 0 || len(st.Hosts) != 0 {
			t.Errorf("%s: %+v", name, st)
		}
		if w := get(h, "/robots.json?url=http://a.test/"); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", name, w.Code)
		}
		if w := get(h, "/"); !strings.Contains(w.Body.String(), "No page is waiting.") {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
}

// TestClosedPlugin checks that the page of a closed plugin shows how the crawl ended.
func TestClosedPlugin(t *testing.T) {
	c, p, h := newCrawl(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nDisallow: /2\n")})
	c.Visit("http://a.test/1")
	c.Visit("http://a.test/2")
	before := New(p, Options{}) // if h were asked now, it would show this state for a moment after Close
	if st, w := stateOf(t, before, ""), get(before, "/"); st.Closed || strings.Contains(w.Body.String(), "is closed") {
		t.Errorf("closed before Close: %+v, %s", st, w.Body)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if st := stateOf(t, h, ""); !st.Closed || st.Totals.Pages != 1 || len(st.Denials) != 1 || st.TimeLeft != nil {
		t.Errorf("%+v", st)
	}
	if w := get(h, "/"); !strings.Contains(w.Body.String(), "The plugin is closed; it sends no more requests.") {
		t.Errorf("the page does not say that the plugin is closed: %s", w.Body)
	}
	if _, err := p.Check(context.Background(), "http://a.test/2"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Error(err)
	}
	tried := triedFor(t, h, "robots=http://a.test/robots.txt&url=/2")
	if !tried.Kept || tried.Decision != nil || tried.Error != "the crawl has ended; these are the readings of its last robots.txt" || len(tried.Readings) != len(dialect.All()) || tried.Readings[0].Allowed {
		t.Errorf("%+v", tried)
	}
}

// TestMaxRate checks that the page says why a host waits that no robots.txt and no option slows
// down.
func TestMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites := robotstest.Sites{"a.test": robotstest.Pages(1, ""), "b.test": robotstest.Pages(1, "")}
		c, _, h := newCrawl(t, sites, collyrobots.MaxRate(0.1, 2))
		c.Async = true
		c.Visit("http://a.test/0")
		synctest.Wait()
		c.Visit("http://b.test/0")
		synctest.Wait()
		text := get(h, "/").Body.String()
		if n := strings.Count(text, "MaxRate of this crawl, for all hosts together"); n != 1 {
			t.Errorf("%d hosts wait for the rate, want 1:\n%s", n, text)
		}
		c.Wait()
	})
}
