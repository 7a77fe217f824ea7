package audit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

// BenchmarkPage measures the two events of a page.
func BenchmarkPage(b *testing.B) {
	l, err := audit.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	const u, host = "http://www.example.com/some/page.html", "www.example.com"
	d := report.Decision{URL: u, Authority: "http://" + host, RobotsURL: "http://" + host + "/robots.txt", Allowed: true, Reason: report.ReasonNoRule,
		Dialect: dialect.RFC9309(), Token: "ExampleBot", Group: "*", CrawlDelay: time.Second, Hash: "dd6138e6b20099a49d5adbdd33722388", Status: http.StatusOK, Fetched: now, Expires: now.Add(24 * time.Hour), Delay: time.Second}
	started := &report.Event{Kind: report.EventStarted, Time: now, Host: host, URL: u, RequestKind: report.RequestPage, Collector: 1, Request: 1,
		Delay: time.Second, Source: report.SourceCrawlDelay, Line: 3, Gap: 1234567 * time.Microsecond, Decision: &d}
	answered := &report.Event{Kind: report.EventAnswered, Time: now, Host: host, URL: u, RequestKind: report.RequestPage, Collector: 1, Request: 1,
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

// BenchmarkVerify measures the verification of a log of 4 MB.
func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	writeLarge(b, dir, 4<<20, 100)
	b.ReportAllocs()
	for b.Loop() {
		r, err := audit.Verify(dir)
		if err != nil || !r.OK() {
			b.Fatal(err, r)
		}
	}
}
