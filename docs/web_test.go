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

	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/robotstest"
)

// answers are the sites that the guides speak of, as in robotstest.
var answers = robotstest.Sites{
	// A shop: a cart that is closed, pages that its sitemap lists, and a query that the built-in
	// check cannot match.
	"example.com": {
		"/robots.txt":  "User-agent: *\nDisallow: /cart\nDisallow: /list?sort=price&page=\n\nSitemap: https://example.com/sitemap.xml\n",
		"/":            robotstest.Page("/tea", "/cups", "/cart", "/list?sort=price&page=2"),
		"/sitemap.xml": robotstest.Sitemap("2026-11-01 https://example.com/tea", "2019-01-01 https://example.com/old", "2026-11-20 https://example.com/new"),
		"*":            robotstest.Page(),
	},
	// One that asks for a delay.
	"slow.example.com": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 0.5\n",
		"/":           robotstest.Page("/1", "/2"),
		"*":           robotstest.Page(),
	},
	// One that cannot say what it allows, and one that closes everything.
	"down.example.com":   {"/robots.txt": http.StatusServiceUnavailable},
	"closed.example.com": {"/robots.txt": "User-agent: *\nDisallow: /\n"},
	// One that is asked too much: every second page.
	"busy.example.com": {"/robots.txt": http.StatusNotFound, "/": busy()},
}

// busy answers 429 to the first request of each crawler's run.
func busy() http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		io.WriteString(w, robotstest.Page())
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A web is the sites on the loopback interface, behind a proxy that connects to them whatever their
// port.
type web struct {
	proxy       string // its URL
	certificate string // a file
	trusted     *http.Transport
}

func newWeb(t *testing.T) *web {
	t.Helper()
	sites := robotstest.New(t, answers)
	server := httptest.NewTLSServer(forward(sites))
	proxy := httptest.NewServer(connect(server.Listener.Addr().String(), forward(sites)))
	t.Cleanup(func() { proxy.Close(); server.Close() })
	file := filepath.Join(t.TempDir(), "certificate.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := server.Client().Transport.(*http.Transport).Clone()
	trusted.DialContext = nil
	trusted.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	t.Cleanup(trusted.CloseIdleConnections)
	return &web{proxy.URL, file, trusted}
}

// environment makes a Go program ask these sites alone.
func (w *web) environment() []string {
	return []string{"HTTP_PROXY=" + w.proxy, "HTTPS_PROXY=" + w.proxy, "NO_PROXY=", "http_proxy=", "https_proxy=", "no_proxy=",
		"SSL_CERT_FILE=" + w.certificate, "SSL_CERT_DIR=" + filepath.Dir(w.certificate)}
}

// forward hands a request on to the host that it names.
func forward(sites *robotstest.Web) http.Handler {
	transport := sites.Transport()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", strings.TrimSuffix(r.Host, ":443")
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

// connect is a proxy: whatever a client wants to connect to, it gets the server at address.
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

// TestWeb asks a site as a program of a guide would.
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
		t.Error("there is another host")
	}
}
