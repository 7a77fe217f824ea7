package benchmarks

import (
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

var hosts = flag.Int("hosts", 0, "TestMemory, TestStop: number of hosts; if 0, a few thousand")

// numHosts returns the number of hosts that a test crawls.
func numHosts(few int) int {
	switch {
	case *hosts != 0:
		return *hosts
	case underRace:
		return few / 20
	}
	return few
}

// usual is like the median robots.txt: it has about 560 bytes, 9 rules for all crawlers, comments,
// and groups of other crawlers.
var usual = strings.Repeat("# This file tells crawlers what to leave alone.\n", 5) +
	"User-agent: OtherBot\nUser-agent: AnotherBot\nDisallow: /forum/\nDisallow: /search\nDisallow: /cgi-bin/\n\n" + rulesFor(9)

// TestMemory measures the memory that the plugin needs for a host, with its policy, pace and feed.
// This is the heap after a crawl of one page of each host, minus the heap after the same crawl with
// bare Colly.
func TestMemory(t *testing.T) {
	n := numHosts(10_000)
	for _, test := range []struct {
		name   string
		robots func(host string) string
		most   int // bytes per host
	}{
		{"same robots.txt", func(string) string { return usual }, 500},
		{"own robots.txt", func(host string) string { return usual + "Disallow: /" + host + "\n" }, 900},
		{"same robots.txt, with a delay", func(string) string { return usual + "Crawl-delay: 0.0001\n" }, 700},
	} {
		t.Run(test.name, inBubble(func(t *testing.T) {
			w := &counting{web: web{robots: test.robots, page: "<!doctype html><title>x</title>"}}
			bare, _ := retained(t, w, n)
			all, fetches := retained(t, w, n, collyrobots.FollowSitemaps(collyrobots.Feed{}))
			if fetches != int64(n) {
				t.Errorf("%d fetches of robots.txt of %d hosts: some hosts were forgotten and are missing in the result", fetches, n)
			}
			t.Logf("%d bytes per host (bare Colly: %d), %d hosts", all-bare, bare, n)
			if all-bare > test.most && !underRace {
				t.Errorf("%d bytes per host, want at most %d", all-bare, test.most)
			}
		}))
	}
}

// inBubble returns a test that runs f in a bubble of synctest, where delays take no time.
func inBubble(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// counting is a web that counts the fetches of robots.txt.
type counting struct {
	web
	fetches atomic.Int64
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/robots.txt" {
		c.fetches.Add(1)
	}
	return c.web.RoundTrip(r)
}

// retained returns the bytes of heap that a crawl keeps for each of n hosts. It then visits some of
// the hosts again and returns how often robots.txt was fetched in total. Without options, the crawl
// uses bare Colly.
func retained(t *testing.T, w *counting, n int, options ...collyrobots.Option) (bytes int, fetches int64) {
	t.Helper()
	c := crawl(w)
	var p *collyrobots.Plugin
	if options != nil {
		c, p = obedient(t, w, options...)
		defer func() { p.Close() }()
	}
	visitHosts(t, c, 0, 1) // allocates what all hosts share
	w.fetches.Store(1)
	before := heap()
	visitHosts(t, c, 1, n)
	bytes = (heap() - before) / (n - 1)
	for i := 0; i < n; i += max(1, n/1000) {
		visitHosts(t, c, i, i+1)
	}
	runtime.KeepAlive(c)
	return bytes, w.fetches.Load()
}

// visitHosts visits a page of each host with a number in [from, to).
func visitHosts(t *testing.T, c *colly.Collector, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := c.Visit(fmt.Sprintf("http://www.host-%07d.example/some/page.html?id=%d", i, i)); err != nil {
			t.Fatal(i, err)
		}
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
