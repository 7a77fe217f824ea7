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

// atOnce returns how many bytes a visit may allocate when there are n hosts. All tables are in 64
// parts or more, and a part is copied when it is full: 68 kB were measured at a hundred thousand
// hosts, 147 kB at three hundred thousand. A table in one piece would take ten times as much.
func atOnce(n int) uint64 { return uint64(48<<10 + n) }

// TestStop crawls ever new hosts, then waits until all are idle and crawls more, so that the idle
// ones are forgotten. No visit may copy a table of all hosts, which would stop it for long: the test
// counts the bytes that each visit allocates. (Package pace tests how many hosts it looks at when a
// new one comes.)
//
// The test also prints how long visits take, which depends on the machine. Each visit of a new host
// is followed by one of a known host, and by one with bare Colly and one with its Async, which show
// what the machine and the garbage collector contribute: a new host's robots.txt is fetched on
// another goroutine, as Async visits a page on one. The clock that makes hosts idle is the bubble's,
// the stopwatch is not.
//
// Idle hosts are forgotten only if there are very many. Use -hosts 200000, which takes some minutes.
func TestStop(t *testing.T) {
	n := numHosts(5000)
	synctest.Test(t, func(t *testing.T) {
		w := &web{robots: func(string) string { return usual }, page: "<!doctype html><title>x</title>"}
		c, p := obedient(t, w, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		defer p.Close()
		bare, async := crawl(w), crawl(w)
		async.Async = true

		measure := func(what string, from, to int) {
			var news, known, noise, handed stops
			for i := from; i < to; i++ {
				news.visit(t, c, fmt.Sprintf("http://www.host-%07d.example/some/page.html", i))
				known.visit(t, c, pageURL)
				noise.visit(t, bare, pageURL)
				handed.visit(t, async, pageURL)
			}
			t.Logf("%s\n  new hosts    %v\n  a known host %v\n  bare Colly   %v\n  its Async    %v", what, news, known, noise, handed)
			if most := max(news.bytes, known.bytes); most > atOnce(to) {
				t.Errorf("%s: a visit allocates %d bytes, want at most %d", what, most, atOnce(to))
			}
		}
		measure(fmt.Sprintf("%d hosts come", n), 0, n)
		time.Sleep(time.Hour)
		measure(fmt.Sprintf("%d more come, all others are idle", n/2), n, n+n/2)

		stats := p.Stats()
		all := n + n/2 // new hosts, and as many pages of the known one
		t.Logf("%d hosts were forgotten, %d are left", all+1-len(stats.Hosts), len(stats.Hosts))
		if n >= 200_000 && len(stats.Hosts) > all {
			t.Error("no host was forgotten")
		}
		requests := stats.Forgotten.Requests
		for _, host := range stats.Hosts {
			requests += host.Requests
		}
		if want := 2*all + all + 1; requests != want {
			t.Errorf("%d requests, robots.txt files included, want %d", requests, want)
		}
	})
}

// stops are what visits took.
type stops struct {
	visits, over1, over10 int // all of them, and those over 1 and over 10 ms
	longest               time.Duration
	bytes                 uint64 // the most that one of them allocated
}

// visit visits a page. The time of a visit is the time that passed, but at most the processor time of
// this process: another process may have had the processor.
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
	return fmt.Sprintf("longest %v, %d over 10 ms, %d over 1 ms, of %d; at most %d bytes",
		s.longest.Round(10*time.Microsecond), s.over10, s.over1, s.visits, s.bytes)
}

// allocated returns how many bytes this process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// stopwatch returns real time, in a bubble too, and the processor time that this process has used.
func stopwatch() (wall, work time.Duration) {
	var now syscall.Timeval
	var used syscall.Rusage
	if err := errors.Join(syscall.Gettimeofday(&now), syscall.Getrusage(syscall.RUSAGE_SELF, &used)); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano()), time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
