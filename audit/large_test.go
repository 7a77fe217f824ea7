package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

var (
	largeSize  = flag.Int("mb", 8, "TestVerifyLargeLog: size of the log in MB")
	largeHosts = flag.Int("hosts", 1000, "TestVerifyLargeLog: number of hosts")
)

// writeLarge writes a log of polite requests to many hosts. It returns the number of requests.
func writeLarge(t testing.TB, dir string, size, hosts int) (requests int) {
	t.Helper()
	l := mustOpen(t, dir)
	body := []byte("User-agent: *\nDisallow: /private\nCrawl-delay: 1\n")
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])[:32]
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	for n := range hosts {
		l.Event(&report.Event{Kind: report.EventRobots, Time: now, Host: largeHost(n), URL: "http://" + largeHost(n) + "/robots.txt", Status: http.StatusOK,
			RobotsStatus: report.RobotsRules, Fetched: now, Hash: hash, Body: body})
	}
	const perRequest = 1000 // bytes, about
	for n := range size / perRequest {
		host := largeHost(n % hosts)
		now = now.Add(2 * time.Second / time.Duration(hosts))
		u := fmt.Sprintf("http://%s/page/%d", host, n)
		d := report.Decision{URL: u, Authority: "http://" + host, RobotsURL: "http://" + host + "/robots.txt", Allowed: true, Reason: report.ReasonNoRule,
			Dialect: dialect.RFC9309(), Token: "ExampleBot", Group: "*", CrawlDelay: time.Second, Hash: hash, Status: http.StatusOK, Fetched: start, Expires: start.Add(24 * time.Hour), Delay: time.Second}
		l.Event(&report.Event{Kind: report.EventStarted, Time: now, Host: host, URL: u, RequestKind: report.RequestPage, Collector: 1, Request: uint32(n),
			Delay: time.Second, Source: report.SourceCrawlDelay, Line: 3, Decision: &d})
		l.Event(&report.Event{Kind: report.EventAnswered, Time: now, Host: host, URL: u, RequestKind: report.RequestPage, Collector: 1, Request: uint32(n),
			Status: http.StatusOK, Bytes: 10_000, Took: 150 * time.Millisecond, Date: now.Truncate(time.Second), Remote: "192.0.2.7:80"})
		requests++
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return requests
}

func largeHost(n int) string { return fmt.Sprintf("www.host%d.example", n) }

// endHeap runs f and returns by how much the memory in use has grown near its end: the smallest value
// that the garbage collector has measured in the last quarter of the time. A larger value says only
// that the collector had to wait for a processor.
func endHeap(f func()) uint64 {
	runtime.GC()
	before := liveHeap()
	var samples []uint64
	end := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			samples = append(samples, liveHeap())
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(end)
	<-done
	least := slices.Min(samples[len(samples)*3/4:])
	return least - min(before, least)
}

func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// rss returns the largest resident set of this process so far, as Linux reports it, or "".
func rss() string {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if value, ok := strings.CutPrefix(string(line), "VmHWM:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// heapNow returns the bytes of all objects that can be reached. It collects garbage twice, because a
// sync.Pool keeps its objects for one collection.
func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	return liveHeap()
}

// TestVerifyLargeLog checks that the memory of Verify does not depend on the size of the log: an
// object that stays in memory for each entry, even the smallest one, makes it fail. Use -mb 1000 for a
// log of 1 GB.
func TestVerifyLargeLog(t *testing.T) {
	if raceEnabled {
		t.Skip("the memory is not that of a normal program")
	}
	dir := t.TempDir()
	requests := writeLarge(t, dir, *largeSize<<20, *largeHosts)
	entries := 2*requests + *largeHosts + 2
	const bundle = 256 // the entries of a bundle are in memory together, so measure at the ends of bundles
	quarter := entries / 4 / bundle * bundle
	end := entries / bundle * bundle
	before := heapNow()
	n := 0
	heaps := make(map[int]uint64)
	began := time.Now()
	r, err := audit.VerifyEach(dir, func() {
		n++
		if n == quarter || n == end {
			heaps[n] = heapNow()
		}
	})
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || r.Logs[0].Starts != requests || n != entries+1 {
		t.Errorf("%d entries, %+v and the findings %v", n, r.Logs[0], r.Findings[:min(3, len(r.Findings))])
	}
	t.Logf("%d entries in %v; the heap has %d bytes before, %d after a quarter, %d at the end; largest resident set with writing %s",
		entries, took, before, heaps[quarter], heaps[end], rss())
	if most := heaps[quarter] + uint64(end-quarter)*4; heaps[end] > most {
		t.Errorf("the heap grows from %d to %d bytes, want at most %d", heaps[quarter], heaps[end], most)
	}
	if most := before + uint64(4<<20+400**largeHosts); heaps[end] > most {
		t.Errorf("the heap has %d bytes at the end, want at most %d", heaps[end], most)
	}
}

// A countingWriter counts what is written.
type countingWriter struct{ bytes, records int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes += len(p)
	w.records += bytes.Count(p, []byte("WARC/1.1\r\n"))
	return len(p), nil
}

// TestExportWARCLargeLog checks that the memory of an export does not depend on the size of the log.
// Use -mb 50 for 100,000 entries.
func TestExportWARCLargeLog(t *testing.T) {
	if raceEnabled {
		t.Skip("the memory is not that of a normal program")
	}
	dir := t.TempDir()
	requests := writeLarge(t, dir, *largeSize<<20, *largeHosts)
	var w countingWriter
	began := time.Now()
	grown := endHeap(func() {
		if err := audit.ExportWARC(&w, dir); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d requests: %v, %d records, %.1f MB written, %.1f MB in use, largest resident set %s", requests, time.Since(began), w.records, float64(w.bytes)/1e6, float64(grown)/1e6, rss())
	if want := 2*requests + 2**largeHosts + 3; w.records > want || w.records < want-want/100 { // one may be cut by the buffer
		t.Errorf("%d records, want %d", w.records, want)
	}
	if most := uint64(8<<20 + 1000**largeHosts); grown > most {
		t.Errorf("ExportWARC used %d bytes, want at most %d", grown, most)
	}
}
