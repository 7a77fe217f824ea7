//go:build unix

package scale

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// BenchmarkOneProcess measures how many pages per second one process fetches over the loopback
// interface, from a hundred hosts without a delay. Each page has 30 kB and fifty links, which a
// callback finds. The server runs in the same process, and its work is included. On a busy machine,
// the processor time per page is more meaningful than the pages per second.
func BenchmarkOneProcess(b *testing.B) {
	for _, with := range []bool{false, true} {
		name := map[bool]string{false: "Colly", true: "collyrobots"}[with]
		b.Run(name, func(b *testing.B) {
			c := colly.NewCollector(colly.Async(true), colly.UserAgent("ExampleBot/1.0"))
			c.WithTransport(pageServer(b))
			if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 64}); err != nil {
				b.Fatal(err)
			}
			if with {
				p, err := collyrobots.WithRobots(c, collyrobots.PrivateNetworks(collyrobots.AllowAll), collyrobots.Logger(slog.New(slog.DiscardHandler)))
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close()
			}
			links := make(chan int, 64)
			c.OnHTML("body", func(e *colly.HTMLElement) { links <- e.DOM.Find("a[href]").Length() })
			before := used(b)
			for n := 0; b.Loop(); n++ {
				c.Visit(fmt.Sprintf("http://host-%d.example/page/%d", n%100, n))
				if n >= cap(links) {
					<-links // limits the pages in flight to the capacity of links
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
			b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N), "cpu-µs/page")
			go func() {
				c.Wait()
				close(links)
			}()
			for n := range links {
				if n != 50 {
					b.Errorf("%d links", n)
				}
			}
		})
	}
}

// pageServer returns a transport that connects all hosts to one server, which has one page.
func pageServer(b *testing.B) *http.Transport {
	var page strings.Builder
	for i := range 50 {
		fmt.Fprintf(&page, "<p>%s<a href=/page/%d>more</a></p>\n", strings.Repeat("a word or two ", 40), i)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>x</title><body>%s", page.String())
	}))
	b.Cleanup(server.Close)
	transport := &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	b.Cleanup(transport.CloseIdleConnections)
	return transport
}

// used returns the processor time that this process has used, in user and system mode.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
