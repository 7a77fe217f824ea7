package audit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/dialect"
)

// BenchmarkPage measures the two events of a page.
func BenchmarkPage(b *testing.B) {
	l, err := audit.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	const u, host = "http://www.example.com/some/page.html", "www.example.com"
	d := collyrobots.Decision{URL: u, Authority: "http://" + host, RobotsURL: "http://" + host + "/robots.txt", Allowed: true, Reason: collyrobots.ReasonNoRule,
		Dialect: dialect.RFC9309(), Token: "ExampleBot", Group: "*", CrawlDelay: time.Second, Hash: "dd6138e6b20099a49d5adbdd33722388", Status: http.StatusOK, Fetched: now, Expires: now.Add(24 * time.Hour), Delay: time.Second}
	started := collyrobots.Event{Kind: collyrobots.EventStarted, Time: now, Host: host, URL: u, RequestKind: collyrobots.RequestPage, Collector: 1, Request: 1,
		Delay: time.Second, Source: collyrobots.SourceCrawlDelay, Line: 3, Gap: 1234567 * time.Microsecond, Decision: &d}
	answered := collyrobots.Event{Kind: collyrobots.EventAnswered, Time: now, Host: host, URL: u, RequestKind: collyrobots.RequestPage, Collector: 1, Request: 1,
		Status: http.StatusOK, Bytes: 10_000, Took: 150 * time.Millisecond, Date: now.Truncate(time.Second), Remote: "192.0.2.7:80"}
	b.ReportAllocs()
	for b.Loop() {
		l.Event(started)
		l.Event(answered)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
