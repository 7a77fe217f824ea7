package backend_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gocolly/colly/v2"
)

// A program reads local files, sets a proxy and removes it again, with a transport that has its own
// protocols and TLS settings. All of it works as without a seam.
func TestSetProxyKeepsTheTransport(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "page.html"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { fmt.Fprint(out, text, " ", r.Host) })
	}
	secure, proxy := httptest.NewTLSServer(answer("server")), httptest.NewServer(answer("proxy"))
	defer secure.Close()
	defer proxy.Close()
	other := httptest.NewServer(answer("other proxy"))
	defer other.Close()
	to := func(s *httptest.Server) func(*http.Request) (*url.URL, error) {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return http.ProxyURL(u)
	}
	steps := []func(c *colly.Collector){
		func(c *colly.Collector) {},
		func(c *colly.Collector) { c.SetProxyFunc(to(proxy)) },
		func(c *colly.Collector) { c.SetProxyFunc(to(other)) },
		func(c *colly.Collector) { c.SetProxyFunc(nil) },
		func(c *colly.Collector) { c.SetProxyFunc(to(proxy)) },
	}
	crawl := func(c *colly.Collector) (got []string) {
		own := secure.Client().Transport.(*http.Transport).Clone()
		dial := new(net.Dialer).DialContext
		own.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "site.invalid:80" {
				return nil, errors.New("no such host")
			}
			return dial(ctx, network, address)
		}
		own.RegisterProtocol("file", http.NewFileTransport(http.Dir(folder)))
		defer own.CloseIdleConnections()
		c.WithTransport(own)
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
	want := crawl(colly.NewCollector(colly.AllowURLRevisit()))
	got := crawl(governed(t, colly.NewCollector(colly.AllowURLRevisit()), new(watcher)))
	if !slices.Equal(got, want) || len(want) != 15 || want[5] != "proxy site.invalid" || want[9] != "a file" || want[10][:6] != "server" {
		t.Errorf("%q\nwithout a seam %q", got, want)
	}
}
