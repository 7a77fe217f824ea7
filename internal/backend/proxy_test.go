package backend_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"
)

// echo returns a handler that writes a name and the host of the request.
func echo(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.Host) })
}

// proxyAt returns a proxy function for s.
func proxyAt(t *testing.T, s *httptest.Server) func(*http.Request) (*url.URL, error) {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return http.ProxyURL(u)
}

// A program has a transport with protocols and TLS settings. It sets a proxy, changes it, removes
// it, and sets it again. All of it works as without the plugin.
func TestSetProxyKeepsTheTransport(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "page.html"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewTLSServer(echo("server"))
	defer secure.Close()
	first := httptest.NewServer(echo("proxy"))
	defer first.Close()
	other := httptest.NewServer(echo("other proxy"))
	defer other.Close()
	steps := []func(c *colly.Collector){
		func(c *colly.Collector) {},
		func(c *colly.Collector) { c.SetProxyFunc(proxyAt(t, first)) },
		func(c *colly.Collector) { c.SetProxyFunc(proxyAt(t, other)) },
		func(c *colly.Collector) { c.SetProxyFunc(nil) },
		func(c *colly.Collector) { c.SetProxyFunc(proxyAt(t, first)) },
	}
	crawl := func(c *colly.Collector) []string {
		rt := secure.Client().Transport.(*http.Transport).Clone()
		dial := new(net.Dialer).DialContext
		rt.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "site.invalid:80" {
				return nil, errors.New("no such host")
			}
			return dial(ctx, network, address)
		}
		rt.RegisterProtocol("file", http.NewFileTransport(http.Dir(folder)))
		defer rt.CloseIdleConnections()
		c.WithTransport(rt)
		var got []string
		c.OnResponse(func(r *colly.Response) { got = append(got, string(r.Body)) })
		c.OnError(func(_ *colly.Response, err error) { got = append(got, err.Error()) })
		for _, step := range steps {
			step(c)
			for _, at := range []string{"file:///page.html", secure.URL, "http://site.invalid/"} {
				c.Visit(at)
			}
		}
		return got
	}
	want := crawl(colly.NewCollector(colly.AllowURLRevisit(), colly.IgnoreRobotsTxt()))
	if len(want) != 15 || want[5] != "proxy site.invalid" || want[9] != "a file" || !strings.HasPrefix(want[10], "server") {
		t.Fatalf("without the plugin: %q", want)
	}
	got := crawl(install(t, colly.NewCollector(colly.AllowURLRevisit()), new(recorder)))
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwithout the plugin %q", got, want)
	}
}

func TestSetProxyFuncKeepsTLSSettings(t *testing.T) {
	server := httptest.NewTLSServer(http.RedirectHandler("/", http.StatusNotFound))
	defer server.Close()
	pool := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	c := withRedirects(t, nil)
	c.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}})
	c.ParseHTTPErrorResponse = true
	calls := 0
	for i := range 2 {
		if i == 1 { // the Seam is in place
			c.SetProxyFunc(func(*http.Request) (*url.URL, error) {
				calls++
				return nil, nil
			})
		}
		if err := c.Visit(server.URL); err != nil {
			t.Fatalf("visit %d: %v", i, err)
		}
	}
	if calls != 1 {
		t.Errorf("the proxy function was called %d times, want once", calls)
	}
}

func TestProxyURLOfAResponse(t *testing.T) {
	server := redirecting(t)
	c := withRedirects(t, nil)
	switcher, err := proxy.RoundRobinProxySwitcher(server.URL) // the server answers requests to a proxy itself
	if err != nil {
		t.Fatal(err)
	}
	c.SetProxyFunc(switcher)
	var got string
	c.OnResponse(func(r *colly.Response) { got = r.Request.ProxyURL })
	if err := c.Visit("http://site.test/end"); err != nil {
		t.Fatal(err)
	}
	if got != server.URL {
		t.Errorf("ProxyURL %q, want %q", got, server.URL)
	}
}
