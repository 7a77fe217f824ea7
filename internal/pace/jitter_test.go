package pace

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A sameNumber is a source of random numbers that are all equal.
type sameNumber struct{ value float64 }

func (c *sameNumber) Float64() float64 { return c.value }

func TestJitter(t *testing.T) {
	for _, test := range []struct {
		name   string
		rules  Rules
		script string
	}{
		{"MinDelay", Rules{MinDelay: time.Second, Jitter: 0.5}, `
0s    share 0.5
0s    start a        -> yes
0s    end a
0s    start b        -> in 1.25s
1s    share 0.25
1.1s  start b        -> in 150ms
1.25s start b        -> yes
1.25s delay          -> 1s
1.25s end b
1.25s start c        -> in 1.125s
2.375s start c       -> yes
2.375s gap           -> 1.125s`},
		{"no gap is shorter than the delay", Rules{MinDelay: time.Second, Jitter: 1}, `
0s    start a        -> yes
0s    end a
0s    start b        -> in 1s
1s    share 1
1s    start b        -> yes
1s    end b
1s    start c        -> in 2s`},
		{"off", Rules{MinDelay: time.Second}, `
0s    start a        -> yes
0s    end a
0s    start b        -> in 1s`},
		{"no delay", Rules{Jitter: 1}, `
0s    share 0.5
0s    start a        -> yes
0s    start b        -> yes`},
		{"a crawl delay that is read before the second request", Rules{Jitter: 1}, `
0s    share 0.5
0s    start r        -> yes
0s    end r
0s    ask http 2s
0s    start a        -> in 3s
1s    ask http 4s
1s    start a        -> in 5s`},
		{"MaxCrawlDelay limits the delay and not the gap", Rules{Jitter: 1, MaxCrawlDelay: 2 * time.Second}, `
0s    share 0.5
0s    ask http 5s
0s    start a        -> yes
0s    end a
0s    start b        -> in 3s`},
		{"a back-off", Rules{Jitter: 1}, `
0s    share 0.5
0s    start a        -> yes
100ms 429 a          -> slower
100ms end a
100ms delay          -> 400ms
100ms start b        -> in 500ms`},
		{"a Retry-After is not longer", Rules{Jitter: 1, MinDelay: time.Second}, `
0s    share 0.5
0s    start a        -> yes
100ms 429 a 30s      -> slower
100ms end a
100ms start b        -> in 30s`},
		{"the adaptive delay", Rules{Adaptive: 1, Jitter: 1}, `
0s    share 0.5
0s    start a        -> yes
1s    done a 200
1s    start b        -> in 500ms`},
		{"DelayFromEnd", Rules{MinDelay: time.Second, Jitter: 1, FromEnd: true}, `
0s    share 0.5
0s    start a        -> yes
5s    end a
5s    start b        -> in 1.5s`},
		{"a slow connection: the gap counts from the wire", Rules{MinDelay: time.Second, Jitter: 1}, `
0s    share 0.5
0s    start a        -> yes
700ms sent a
700ms end a
700ms start b        -> in 1.5s`},
		{"a dry run", Rules{MinDelay: time.Second, Jitter: 1, Free: true}, `
0s    share 0.5
0s    start a        -> yes
0s    start b        -> yes`},
		{"a delay of centuries", Rules{Jitter: 1, MinDelay: math.MaxInt64}, `
0s    share 1
0s    start a        -> yes
0s    end a
0s    start b        -> in 2562047h47m16.854775807s`},
	} {
		t.Run(test.name, func(t *testing.T) { rehearse(t, test.rules, test.script) })
	}
}

// TestJitterOfSchedules checks the hours and the delays of a schedule.
func TestJitterOfSchedules(t *testing.T) {
	rules := Rules{Jitter: 1, numbers: &sameNumber{value: 0.5}}
	underRules(t, rules, func(t *testing.T, w *world) {
		w.SetSchedule(time.Now(), Source{Scheme: "http"}, rateUntil{w.start.Add(10 * time.Second), 2 * time.Second}, time.Time{})
		for range 4 {
			w.pass(t.Context())
			w.note("page")
		}
		w.check(`
0s page
3s page
6s page
9s page`)
		if last := w.LastStart(time.Now(), 1, 1).Sub(w.start); last != 12*time.Second {
			t.Errorf("LastStart = %v", last)
		}
	})
}

// A rateUntil is a schedule with a delay, which changes to itself at a time.
type rateUntil struct {
	at    time.Time
	delay time.Duration
}

func (s rateUntil) At(t time.Time) Slot {
	if t.Before(s.at) {
		return Slot{Delay: s.delay, Until: s.at}
	}
	return Slot{Delay: s.delay}
}

// TestJoinKeepsTheShare checks that a host that joins a group takes its gap along.
func TestJoinKeepsTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := &sameNumber{value: 1}
		rules := Rules{MinDelay: time.Second, Jitter: 1, Shares: true, numbers: share}
		hosts := New(func(string) *Rules { return &rules })
		w := &world{Host: hosts.At(time.Now(), "a.test"), t: t, start: time.Now()}
		w.once()
		share.value = 0
		w.Join(Assignment{Name: "group"})
		for range 2 {
			w.pass(t.Context())
			w.note("page")
		}
		w.check(`
2s page
3s page`)
	})
}

// TestJitterStats checks that a host tells the next start with the random share, that the share does not
// change while requests wait, and that the smallest gap is compared with the delay.
func TestJitterStats(t *testing.T) {
	share := &sameNumber{value: 0.5}
	rules := Rules{MinDelay: time.Second, Jitter: 0.5, numbers: share}
	underRules(t, rules, func(t *testing.T, w *world) {
		w.once()
		want := w.start.Add(1250 * time.Millisecond)
		share.value = 1
		for range 3 {
			s := w.Stats(time.Now())
			if !s.NextStart.Equal(want) || s.Delay != time.Second || s.Source != report.SourceMinDelay {
				t.Errorf("next start %v, delay %v, %s", s.NextStart.Sub(w.start), s.Delay, s.Source)
			}
			if next, _ := w.NextStart(time.Now()); !next.Equal(want) {
				t.Errorf("NextStart = %v", next.Sub(w.start))
			}
			time.Sleep(300 * time.Millisecond)
		}
		w.pass(t.Context())
		w.note("page")
		var last Ticket
		w.Start(t.Context(), &last, true)
		w.note("redirect")
		if s := last.Start(); s.Gap != 1500*time.Millisecond || s.Delay != time.Second {
			t.Errorf("the start has gap %v and delay %v", s.Gap, s.Delay)
		}
		last.End()
		if s := w.Stats(time.Now()); s.MinGap != 1250*time.Millisecond || s.GapOverDelay != 1.25 {
			t.Errorf("smallest gap %v, over the delay %v", s.MinGap, s.GapOverDelay)
		}
		w.check(`
1.25s page
2.75s redirect`)
		share.value = 0.5
	})
}
