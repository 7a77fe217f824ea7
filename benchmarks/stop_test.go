//go:build unix

package benchmarks

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// TestStop: the longest stop of a page while very many hosts come, and while idle ones are
// forgotten. Ever new hosts are visited, and in turn with them a host that is known and, for what
// the machine and the garbage collector do, a page with bare Colly. Whatever holds up one of the first
// two for longer is the plugin. A new host's robots.txt is fetched on another goroutine, which may
// not get a processor at once while the collector is at work, so a new host is held against a page
// of bare Colly's Async. The clock that makes hosts idle is the bubble's, the stopwatch is not.
//
// Idle hosts are looked for when there are very many. Use -hosts 1000000, which takes some minutes
// and checks the goal.
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
			if *hosts == 0 {
				return
			}
			news.compare(t, what+": a new host", handed)
			known.compare(t, what+": a known host", noise)
		}
		measure(fmt.Sprintf("%d hosts come", n), 0, n)
		time.Sleep(time.Hour)
		measure(fmt.Sprintf("%d more come, all others are idle", n/2), n, n+n/2)

		stats := p.Stats()
		all := n + n/2 // new hosts, and as many pages of the known one
		t.Logf("%d hosts were forgotten, %d are left", all+1-len(stats.Hosts), len(stats.Hosts))
		if n >= 1_000_000 && len(stats.Hosts) > all {
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

// stops are how long visits took.
type stops struct {
	visits, over1, over10 int // all of them, and those over 1 and over 10 ms
	longest               time.Duration
}

// visit visits a page. What counts is the time that passed, but no more than this process was at
// work in it: another one may have had the processor.
func (s *stops) visit(t *testing.T, c *colly.Collector, url string) {
	wall, work := stopwatch()
	if err := c.Visit(url); err != nil {
		t.Fatal(url, err)
	}
	c.Wait()
	wall2, work2 := stopwatch()
	took := min(wall2-wall, work2-work)
	s.visits++
	s.longest = max(s.longest, took)
	if took > time.Millisecond {
		s.over1++
	}
	if took > 10*time.Millisecond {
		s.over10++
	}
}

func (s stops) String() string {
	return fmt.Sprintf("longest %v, %d over 10 ms, %d over 1 ms, of %d", s.longest.Round(10*time.Microsecond), s.over10, s.over1, s.visits)
}

// goal is how long the plugin may hold up a page, whatever the machine and Go do besides.
const goal = 10 * time.Millisecond

// compare fails the test if there were longer stops, or clearly more long ones, than a bare page has.
func (s *stops) compare(t *testing.T, what string, bare stops) {
	t.Helper()
	if s.longest > max(goal, 2*bare.longest) || s.over10 > 10+2*bare.over10 {
		t.Errorf("%s: %v, want at most %v, or what bare Colly has: %v", what, s, goal, bare)
	}
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
