package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

func TestMakespan(t *testing.T) {
	const h = time.Hour
	for _, test := range []struct {
		tasks []time.Duration
		n     int
		want  time.Duration
	}{
		{nil, 3, 0},
		{[]time.Duration{3 * h, 2 * h, h}, 1, 6 * h},
		{[]time.Duration{h, h, 2 * h, 4 * h}, 2, 5 * h}, // the last begins when the first two have ended
		{[]time.Duration{4 * h, 2 * h, h, h}, 2, 4 * h},
		{[]time.Duration{3 * h, 2 * h, h}, 3, 3 * h},
		{[]time.Duration{3 * h, 2 * h, h}, 99, 3 * h},
		{[]time.Duration{math.MaxInt64, h, math.MaxInt64}, 2, math.MaxInt64},
	} {
		if got := makespan(test.tasks, test.n); got != test.want {
			t.Errorf("%v, %d in parallel: %v, want %v", test.tasks, test.n, got, test.want)
		}
	}
	// The result is at most the sum of all tasks, and at least the longest task and the n-th part
	// of the sum.
	for range 200 {
		tasks := make([]time.Duration, 1+rand.IntN(40))
		var sum time.Duration
		for i := range tasks {
			tasks[i] = time.Duration(rand.IntN(1000))
			sum += tasks[i]
		}
		for n := 1; n <= 50; n++ {
			got := makespan(tasks, n)
			if got > sum || got < slices.Max(tasks) || got < sum/time.Duration(n) || n == 1 && got != sum {
				t.Fatalf("%v, %d in parallel: %v", tasks, n, got)
			}
		}
	}
}

// TestSchedules checks that changes are listed only if they make the crawl shorter.
func TestSchedules(t *testing.T) {
	j := &job{pace: input.Pace{Delay: 100 * time.Millisecond}}
	hosts := []*host{
		{Host: "a", allowed: 600, Delay: term.Seconds(time.Second)},
		{Host: "b", allowed: 600, Delay: term.Seconds(time.Second)},
		{Host: "c", allowed: 1200, Delay: term.Seconds(time.Second)},
		{Host: "d", Error: "no answer"},
	}
	format := func() string {
		var lines []string
		for _, s := range j.schedules(hosts) {
			line := s.What + ":"
			for _, total := range s.Totals {
				line += fmt.Sprintf(" %d %v", total.SideBySide, time.Duration(total.Time))
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	computeTimes := func() {
		for _, h := range hosts {
			h.Pages = h.allowed
			h.Time = term.Seconds(times(h.Pages, time.Duration(h.Delay)))
		}
	}
	computeTimes()
	want := `as planned: 1 40m0s 2 30m0s 4 20m0s
longest hosts first: 1 40m0s 2 20m0s 4 20m0s
at most 100 pages per host (MaxPagesPerHost): 1 5m0s 2 3m20s 4 1m40s`
	if got := format(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	hosts[2].Delay = term.Seconds(10 * time.Second)
	hosts[2].Old = 1070
	computeTimes()
	want = `as planned: 1 3h40m0s 2 3h30m0s 4 3h20m0s
only pages changed in the last 7 days (Feed.Since): 1 41m40s 2 31m40s 4 21m40s
at most 100 pages per host (MaxPagesPerHost): 1 20m0s 2 18m20s 4 16m40s
delays of at most 1s (ask the owners): 1 40m0s 2 30m0s 4 20m0s`
	if got := format(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSchedulesWithJitterAndRate checks that the gaps are longer by half of the jitter, and that all pages
// together take as long as the rate allows.
func TestSchedulesWithJitterAndRate(t *testing.T) {
	hosts := []*host{
		{Host: "a", allowed: 600, Pages: 600, Delay: term.Seconds(time.Second)},
		{Host: "b", allowed: 600, Pages: 600, Delay: term.Seconds(time.Second)},
	}
	for _, test := range []struct {
		job  job
		one  time.Duration // the time for a
		side []time.Duration
	}{
		{job{}, 10 * time.Minute, []time.Duration{20 * time.Minute, 10 * time.Minute}},
		{job{pace: input.Pace{Jitter: 0.5}}, 750 * time.Second, []time.Duration{25 * time.Minute, 750 * time.Second}},
		{job{pace: input.Pace{MaxRate: 10}}, 10 * time.Minute, []time.Duration{20 * time.Minute, 10 * time.Minute}},
		{job{pace: input.Pace{MaxRate: 1.5}}, 10 * time.Minute, []time.Duration{20 * time.Minute, 800 * time.Second}},
		{job{pace: input.Pace{MaxRate: 0.1}}, 10 * time.Minute, []time.Duration{200 * time.Minute, 200 * time.Minute}},
	} {
		hosts[0].setTime(&test.job)
		if got := time.Duration(hosts[0].Time); got != test.one {
			t.Errorf("-jitter %v: a takes %v, want %v", test.job.pace.Jitter, got, test.one)
		}
		plan := test.job.schedules(hosts)[0]
		for i, want := range test.side {
			if got := time.Duration(plan.Totals[i].Time); got != want {
				t.Errorf("-jitter %v -max-rate %v: %d in parallel take %v, want %v", test.job.pace.Jitter, test.job.pace.MaxRate, i+1, got, want)
			}
		}
	}
}

func TestParseSite(t *testing.T) {
	for text, want := range map[string]string{
		"example.com":                   "example.com https://example.com/ http://example.com/",
		"https://example.com:443/a?b#c": "example.com https://example.com:443/a?b",
		"http://bücher.example":         "xn--bcher-kva.example http://b%C3%BCcher.example/",
		"localhost:8080":                "localhost:8080 https://localhost:8080/ http://localhost:8080/",
		"[::1]:80/x":                    "[::1]:80 https://[::1]:80/x http://[::1]:80/x",
		"127.0.0.1":                     "127.0.0.1 https://127.0.0.1/ http://127.0.0.1/",
		"":                              "", "hello world": "", "http://": "", "https:///x": "", "ftp://a.test": "", "a,b": "", "?": "", "a.test:x": "",
		"mailto:joe@a.test": "", "<html>": "", "a\x1b.test": "", "http://a b/": "",
	} {
		s, err := parseSite(text)
		got := s.host
		for _, u := range s.urls {
			got += " " + u.String()
		}
		if (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %v, %s, want %s", text, err, got, want)
		}
	}
}

// TestTimes checks that sums and products of durations do not overflow.
func TestTimes(t *testing.T) {
	if got := times(1_000_000, 292*365*24*time.Hour); got != math.MaxInt64 {
		t.Error(got)
	}
	if got := times(3, time.Second); got != 3*time.Second || times(0, time.Hour) != 0 {
		t.Error(got)
	}
	if got := plus(math.MaxInt64, 1); got != math.MaxInt64 {
		t.Error(got)
	}
}
