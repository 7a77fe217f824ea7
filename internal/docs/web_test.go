package docs

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/robotstest"
)

// answers are the sites in the guides.
var answers = robotstest.Sites{
	// A shop. It denies the cart, its sitemap lists pages, and it has a query that the built-in
	// check cannot match.
	"example.com": {
		"/robots.txt":  "User-agent: *\nDisallow: /cart\nDisallow: /list?sort=price&page=\n\nSitemap: https://example.com/sitemap.xml\n",
		"/":            robotstest.Page("/tea", "/cups", "/cart", "/list?sort=price&page=2"),
		"/sitemap.xml": robotstest.Sitemap("2026-11-01 https://example.com/tea", "2019-01-01 https://example.com/old", "2026-11-20 https://example.com/new"),
		"*":            robotstest.Page(),
	},
	// A site with a crawl delay.
	"slow.example.com": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 0.5\n",
		"/":           robotstest.Page("/1", "/2"),
		"*":           robotstest.Page(),
	},
	// A site with a very long crawl delay.
	"hourly.example.com": {"/robots.txt": "User-agent: *\nCrawl-delay: 3600\n", "*": robotstest.Page()},
	// A site that answers slowly.
	"loaded.example.com": {
		"/robots.txt": http.StatusNotFound,
		"/":           slowly(robotstest.Page("/1", "/2")),
		"*":           slowly(robotstest.Page()),
	},
	// A site with preferences about the use of its content.
	"press.example.com": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\nContent-Usage: / train-ai=n\nContent-Usage: /open/ train-ai=y\n",
		"/open/2": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Usage", "train-ai=n")
			io.WriteString(w, robotstest.Page())
		},
		"*": robotstest.Page(),
	},
	// A site without a usable robots.txt, and one that denies all pages.
	"down.example.com":   {"/robots.txt": http.StatusServiceUnavailable},
	"closed.example.com": {"/robots.txt": "User-agent: *\nDisallow: /\n"},
	// A site that refuses the request for robots.txt.
	"members.example.com": {"/robots.txt": http.StatusForbidden},
	// A site with rules about its pages.
	"tags.example.com": {
		"/":        `<!DOCTYPE html><title>Tags</title><a href="/login" rel="nofollow">log in</a><a href="/archive">archive</a><a href="/tea">tea</a>`,
		"/archive": archive,
		"*":        robotstest.Page(),
	},
	// A site whose pages have validators, except the first.
	"news.example.com": {
		"/robots.txt":  "Sitemap: https://news.example.com/sitemap.xml\n",
		"/":            robotstest.Page(),
		"/sitemap.xml": robotstest.Sitemap("https://news.example.com/1", "https://news.example.com/2"),
		"*":            http.HandlerFunc(tagged),
	},
	// A site that throttles every second request.
	"busy.example.com": {"/robots.txt": http.StatusNotFound, "/": busy()},
	// A site that refuses every page.
	"refusing.example.com": {"/robots.txt": http.StatusNotFound, "*": http.StatusForbidden},
}

// archive responds with a page that has rules in its headers and in a meta element.
func archive(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("X-Robots-Tag", "noarchive, otherbot: nosnippet")
	io.WriteString(w, `<!DOCTYPE html><title>Archive</title><meta name="robots" content="noindex, nofollow"><a href="/1900">1900</a>`)
}

// tagged serves a page with an ETag.
func tagged(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	io.WriteString(w, robotstest.Page())
}

// busy responds with 429 to every second request, beginning with the first.
func busy() http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		n++
		if n%2 == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, robotstest.Page())
	}
}

// slowly responds after 200 ms.
func slowly(page string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, page)
	}
}

func TestMain(m *testing.M) { leaktest.Main(m) }

// A web serves the sites on the loopback interface, behind a proxy that connects every host and
// port to them.
type web struct {
	proxy       string          // the URL of the proxy
	certificate string          // the name of the file with the certificate of the sites
	trusted     *http.Transport // uses the proxy and trusts the certificate
}

func newWeb(t *testing.T) *web {
	t.Helper()
	sites := robotstest.New(t, answers)
	server := httptest.NewTLSServer(forward(sites))
	proxy := httptest.NewServer(connect(server.Listener.Addr().String(), forward(sites)))
	t.Cleanup(server.Close)
	t.Cleanup(proxy.Close)
	file := filepath.Join(t.TempDir(), "certificate.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := server.Client().Transport.(*http.Transport).Clone()
	trusted.DialContext = nil
	trusted.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	t.Cleanup(trusted.CloseIdleConnections)
	return &web{proxy: proxy.URL, certificate: file, trusted: trusted}
}

// environment returns environment variables that make a Go program access only these sites.
func (w *web) environment() []string {
	return []string{"HTTP_PROXY=" + w.proxy, "HTTPS_PROXY=" + w.proxy, "NO_PROXY=", "http_proxy=", "https_proxy=", "no_proxy=",
		"SSL_CERT_FILE=" + w.certificate, "SSL_CERT_DIR=" + filepath.Dir(w.certificate)}
}

// forward returns a handler that forwards a request to the site with its host.
func forward(sites *robotstest.Web) http.Handler {
	transport := sites.Transport()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI = ""
		out.URL.Scheme = "http"
		out.URL.Host = strings.TrimSuffix(r.Host, ":443")
		if r.TLS != nil {
			out.URL.Scheme = "https"
		}
		resp, err := transport.RoundTrip(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	})
}

// connect returns the handler of a proxy. It connects every client to the server at address and
// passes plain requests to the given handler.
func connect(address string, plain http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			plain.ServeHTTP(w, r)
			return
		}
		if host, _, _ := net.SplitHostPort(r.Host); answers[host] == nil {
			http.Error(w, "there is no such host", http.StatusBadGateway)
			return
		}
		server, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		go io.Copy(server, client) // ends when this function closes both
		io.Copy(client, server)
	})
}

// TestWeb checks the responses of some sites to the programs of the guides.
func TestWeb(t *testing.T) {
	w := newWeb(t)
	client := &http.Client{Transport: w.trusted}
	for url, want := range map[string]string{
		"https://closed.example.com/robots.txt": "200 User-agent: *\nDisallow: /\n",
		"http://closed.example.com/robots.txt":  "200 User-agent: *\nDisallow: /\n",
		"https://down.example.com/robots.txt":   "503 ",
	} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", string(body)); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", url, got, err, want)
		}
	}
	if resp, err := client.Get("https://elsewhere.example.com/"); err == nil {
		resp.Body.Close()
		t.Error("a request to an unknown host succeeds")
	}
}
