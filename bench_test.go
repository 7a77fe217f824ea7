package collyrobots

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"
	"github.com/temoto/robotstxt"
)

// A canned transport answers every request from memory, so that only the crawler is measured.
type canned struct{ robots string }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body := c.robots
	if r.URL.Path != "/robots.txt" {
		body = "<!doctype html><title>x</title>"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/html"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// robotsOf returns a robots.txt with n rules. None of them matches, and every tenth has a wildcard.
func robotsOf(n int) string {
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

func quiet() Option { return Logger(slog.New(slog.DiscardHandler)) }

// warm returns the hooks of a collector that has already visited the site.
func warm(tb testing.TB, rules int, url string) (*hooks, *colly.Request) {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.AllowURLRevisit())
	c.WithTransport(canned{robotsOf(rules)})
	p, err := WithRobots(c, quiet())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Close() })
	var r *colly.Request
	c.OnResponse(func(resp *colly.Response) { r = resp.Request })
	if err := c.Visit(url); err != nil {
		tb.Fatal(err)
	}
	return p.first(), r
}

func TestOnRequestDoesNotAllocate(t *testing.T) {
	if underRace {
		t.Skip("the race detector also allocates")
	}
	for _, url := range []string{"http://example.test/some/page.html", "http://example.test/some/page.html?id=1"} {
		l, r := warm(t, 9, url)
		for _, async := range []bool{false, true} {
			l.c.Async = async
			if n := testing.AllocsPerRun(100, func() { l.onRequest(r) }); n != 0 {
				t.Errorf("%s: OnRequest allocates %v times, async %t", url, n, async)
			}
		}
	}
}

// TestStoppedListenerCostsNothing checks that events cost no allocation without a listener, also
// after a listener was stopped. With a listener, they cost a known number of allocations.
func TestStoppedListenerCostsNothing(t *testing.T) {
	if underRace {
		t.Skip("the race detector also allocates")
	}
	c := colly.NewCollector(colly.AllowURLRevisit())
	c.WithTransport(canned{robotsOf(9)})
	p, err := WithRobots(c, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	visit := func() { c.Visit("http://example.test/") }
	before := testing.AllocsPerRun(50, visit)
	stop := p.Listen(func(Event) {})
	during := testing.AllocsPerRun(50, visit)
	stop()
	after := testing.AllocsPerRun(50, visit)
	if after > before+1 || during < before+2 {
		t.Errorf("got %v allocations before, %v with a listener, %v after", before, during, after)
	}
}

// BenchmarkOnRequest measures the hook of the plugin in OnRequest.
func BenchmarkOnRequest(b *testing.B) {
	for _, rules := range []int{9, 1000} {
		b.Run(fmt.Sprint(rules, " rules"), func(b *testing.B) {
			l, r := warm(b, rules, "http://example.test/some/page.html?id=1")
			b.ReportAllocs()
			for b.Loop() {
				l.onRequest(r)
			}
		})
	}
}

// BenchmarkBuiltIn measures Colly's built-in check of a request whose robots.txt is known.
func BenchmarkBuiltIn(b *testing.B) {
	for _, rules := range []int{9, 1000} {
		b.Run(fmt.Sprint(rules, " rules"), func(b *testing.B) {
			file, err := robotstxt.FromString(robotsOf(rules))
			if err != nil {
				b.Fatal(err)
			}
			u, _ := url.Parse("http://example.test/some/page.html?id=1")
			b.ReportAllocs()
			for b.Loop() {
				file.FindGroup("ExampleBot/1.0").Test(u.EscapedPath() + "?" + u.Query().Encode())
			}
		})
	}
}
