// Package benchmarks compares collyrobots with what a crawler would use in its place, and measures
// whole crawls. Only ratios within one run mean something, and exact figures: allocations, bytes.
// Nothing is used but what users can use.
//
//	go test -run PageRatio -v -rounds 300 -instructions   the cost of a page with the plugin, the built-in check, and bare Colly
//	go test -run Memory -v -hosts 100000             bytes a host, policy, pace and feed together
//	go test -run Stop -v -hosts 200000               what a page allocates, and its longest stop, while very many hosts come and go
//	go test -run Feed -v -urls 10000000              what a URL of a sitemap costs, memory included, when it goes to a Sink
//	go test -run View -v -rounds 300                what the page of package view costs a crawl while it is open
//	go test -run '^$' -bench Sitemap                 sitemaps beside encoding/xml and xmlquery
//
// Package scale, in the folder of that name, simulates crawls by many processes.
//
// Without flags the tests take some seconds, and check that what is measured still works.
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

// A web answers every request from memory, so that what is measured is the crawler.
type web struct {
	robots func(host string) string
	page   string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	body, contentType := w.page, "text/html; charset=utf-8"
	if r.URL.Path == "/robots.txt" {
		body, contentType = w.robots(r.URL.Host), "text/plain"
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// rulesFor returns a robots.txt of n rules for everybody, none of which matches the pages here.
// Every tenth has a wildcard.
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

// underRace reports whether the race detector is at work.
var underRace bool

// pageURL is a page that robots.txt allows.
const pageURL = "http://www.example.com/some/page.html?id=1"

const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// crawl returns a collector on w that may ask for a page twice.
func crawl(w http.RoundTripper) *colly.Collector {
	c := colly.NewCollector(colly.UserAgent(userAgent), colly.AllowURLRevisit())
	c.WithTransport(w)
	return c
}

// obedient returns a collector on w with the plugin.
func obedient(tb testing.TB, w http.RoundTripper, options ...collyrobots.Option) (*colly.Collector, *collyrobots.Plugin) {
	tb.Helper()
	c := crawl(w)
	p, err := collyrobots.WithRobots(c, append(options, collyrobots.Logger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		tb.Fatal(err)
	}
	return c, p
}
