//go:build unix

package benchmarks

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// atOnce returns how many bytes a visit may allocate when there are n hosts. All tables have at
// least 64 parts, and a part is copied when it is full. 68 kB were measured with 100,000 hosts, and
// 147 kB with 300,000. A table with only one part would need ten times as much.
func atOnce(n int) uint64 { return uint64(48<<10 + n) }

// TestStop crawls new hosts, waits until all of them are idle, and then crawls more new hosts, so
// that the idle hosts are forgotten. No visit may copy a table of all hosts, because this would
// delay it for a long time. So the test counts the bytes that each visit allocates. (Package pace
// tests how many hosts are examined when a host is added.)
//
// The test also prints how long visits take, which depends on the machine. To show the effects of
// the machine and of the garbage collector, each visit of a new host is followed by a visit of a
// known host, by one with bare Colly, and by one with bare Colly in Async mode: the robots.txt of a
// new host is fetched in another goroutine, as Async does with a page. Hosts become idle by the
// clock of the bubble. Visits are measured in real time.
//
// Idle hosts are forgotten only if there are very many hosts. Use -hosts 200000, which takes some
// minutes.
func TestStop(t *testing.T) {
	n := numHosts(5000)
	synctest.Test(t, func(t *testing.T) {
		w := &web{robots: func(string) string { return usual }, page: "<!doctype html><title>x</title>"}
		c, p := obedient(t, w, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		defer p.Close()
		bare, async := crawl(w), crawl(w)
		async.Async = true
		first, firstPlugin := obedient(t, w, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		defer firstPlugin.Close()
		new(stops).visit(t, first, pageURL) // the first visit of a process allocates what all later ones use

		measure := func(what string, from, to int) {
			var news, known, bareVisits, asyncVisits stops
			for i := from; i < to; i++ {
				news.visit(t, c, fmt.Sprintf("http://www.host-%07d.example/some/page.html", i))
				known.visit(t, c, pageURL)
				bareVisits.visit(t, bare, pageURL)
				asyncVisits.visit(t, async, pageURL)
			}
			t.Logf("%s\n  new hosts     %v\n  a known host  %v\n  bare Colly    %v\n  Async         %v", what, news, known, bareVisits, asyncVisits)
			if most := max(news.bytes, known.bytes); most > atOnce(to) {
				t.Errorf("%s: a visit allocates %d bytes, want at most %d", what, most, atOnce(to))
			}
		}
		measure(fmt.Sprintf("%d new hosts", n), 0, n)
		time.Sleep(time.Hour)
		measure(fmt.Sprintf("%d more new hosts, all others are idle", n/2), n, n+n/2)

		stats := p.Stats()
		all := n + n/2 // new hosts, and also pages of the known host
		t.Logf("%d hosts were forgotten, %d remain", all+1-len(stats.Hosts), len(stats.Hosts))
		if n >= 200_000 && len(stats.Hosts) > all {
			t.Error("no host was forgotten")
		}
		requests := stats.Forgotten.Requests
		for _, host := range stats.Hosts {
			requests += host.Requests
		}
		if want := 2*all + all + 1; requests != want {
			t.Errorf("%d requests including those for robots.txt, want %d", requests, want)
		}
	})
}

// stops are the costs of several visits.
type stops struct {
	visits  int
	over1   int // visits that took more than 1 ms
	over10  int // visits that took more than 10 ms
	longest time.Duration
	bytes   uint64 // allocated by the visit that allocated most
}

// visit visits a page. The time of a visit is the smaller of the real time and the processor time
// of this process, because another process may use the processor.
func (s *stops) visit(t *testing.T, c *colly.Collector, url string) {
	before := allocated()
	wall, work := stopwatch()
	if err := c.Visit(url); err != nil {
		t.Fatal(url, err)
	}
	c.Wait()
	wall2, work2 := stopwatch()
	took := min(wall2-wall, work2-work)
	s.visits++
	s.longest = max(s.longest, took)
	s.bytes = max(s.bytes, allocated()-before)
	if took > time.Millisecond {
		s.over1++
	}
	if took > 10*time.Millisecond {
		s.over10++
	}
}

func (s stops) String() string {
	return fmt.Sprintf("longest %v; of %d visits %d over 10 ms, %d over 1 ms; at most %d bytes allocated by one visit",
		s.longest.Round(10*time.Microsecond), s.visits, s.over10, s.over1, s.bytes)
}

// allocated returns the number of bytes that this process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// stopwatch returns the real time, even in a bubble, and the processor time that this process has
// used, in user and system mode.
func stopwatch() (wall, work time.Duration) {
	var now syscall.Timeval
	var used syscall.Rusage
	if err := errors.Join(syscall.Gettimeofday(&now), syscall.Getrusage(syscall.RUSAGE_SELF, &used)); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano()), time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
