package prom

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/metrics/figures"
	"github.com/collyrobots/collyrobots/report"
)

// everywhere is a transport that responds for every host.
type everywhere struct{}

func (everywhere) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// BenchmarkGather measures a scrape of the metrics of a crawl with many hosts. With fresh=true each
// scrape reads Stats; with fresh=false it uses the last sample.
func BenchmarkGather(b *testing.B) {
	for _, hosts := range []int{100, 100_000} {
		c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.StdlibContext(b.Context()))
		c.WithTransport(everywhere{})
		robots, err := collyrobots.WithRobots(c, collyrobots.IgnoreRobotsWithPermission())
		if err != nil {
			b.Fatal(err)
		}
		for i := range hosts {
			c.Visit(fmt.Sprintf("http://host-%d.test/", i))
		}
		metrics := NewCollector(robots)
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics)
		for _, fresh := range []bool{true, false} {
			b.Run(fmt.Sprintf("hosts=%d/fresh=%v", hosts, fresh), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if fresh {
						metrics.sampler = figures.NewSampler(robots)
					}
					if _, err := registry.Gather(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		metrics.Close()
		robots.Close()
	}
}

// BenchmarkHear measures the counting of the two events of one page.
func BenchmarkHear(b *testing.B) {
	metrics := NewCollector(nil)
	b.ReportAllocs()
	for b.Loop() {
		metrics.hear(report.Event{Kind: report.EventStarted, RequestKind: report.RequestPage, Gap: time.Second, Delay: time.Second, Source: report.SourceCrawlDelay})
		metrics.hear(report.Event{Kind: report.EventAnswered, RequestKind: report.RequestPage, Status: 200, Bytes: 9, Took: time.Second})
	}
}
