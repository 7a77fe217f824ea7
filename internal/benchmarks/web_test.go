// Package benchmarks compares collyrobots with the alternatives that a crawler has, and measures
// whole crawls. It uses only the public API. Numbers of allocations and bytes are exact. Times are
// meaningful only as ratios within one run.
//
// The cost of a page with the plugin, compared with bare Colly and with Colly's built-in check:
//
//	go test -run PageRatio -v -rounds 300 -instructions
//
// The memory of a host, with its policy, pace and feed:
//
//	go test -run Memory -v -hosts 100000
//
// The allocations and the longest pause of a page while very many hosts come and go:
//
//	go test -run Stop -v -hosts 200000
//
// The time and memory of a URL of a sitemap that is fed to a Sink:
//
//	go test -run Feed -v -urls 10000000
//
// The time of such a URL with Resume, for each store:
//
//	go test -run Resume -v
//
// The cost of the page of package view while it is open:
//
//	go test -run View -v -rounds 300
//
// Reading sitemaps, compared with encoding/xml and xmlquery:
//
//	go test -run '^$' -bench Sitemap
//
// Package scale, in internal/scale, simulates crawls by many processes.
//
// Without flags, the tests take a few seconds. They then check that the measurements still work.
package benchmarks

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// A web is a transport that answers every request from memory.
type web struct {
	robots func(host string) string
	page   string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	body := w.page
	contentType := "text/html; charset=utf-8"
	if r.URL.Path == "/robots.txt" {
		body = w.robots(r.URL.Host)
		contentType = "text/plain"
	}
	return &http.Response{
		Status:        "200 OK",
		StatusCode:    http.StatusOK,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {contentType}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, nil
}

// rulesFor returns a robots.txt with n rules for all crawlers. No rule matches the pages of the
// tests. Every tenth rule has a wildcard.
func rulesFor(n int) string {
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

// underRace reports whether the tests run under the race detector.
var underRace bool

// pageURL is a page that robots.txt allows.
const pageURL = "http://www.example.com/some/page.html?id=1"

const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// crawl returns a collector that uses w and may visit a page twice.
func crawl(w http.RoundTripper) *colly.Collector {
	c := colly.NewCollector(colly.UserAgent(userAgent), colly.AllowURLRevisit())
	c.WithTransport(w)
	return c
}

// obedient returns a collector that uses w and has the plugin.
func obedient(tb testing.TB, w http.RoundTripper, options ...collyrobots.Option) (*colly.Collector, *collyrobots.Plugin) {
	tb.Helper()
	c := crawl(w)
	p, err := collyrobots.WithRobots(c, append(options, collyrobots.Logger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		tb.Fatal(err)
	}
	return c, p
}
