package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A daily is a Schedule for the tests: a list of periods of a day in UTC, in their order. The last
// one spans midnight.
type daily []period

// A period lasts until the next one begins.
type period struct {
	from   time.Duration // since midnight
	delay  time.Duration
	closed bool
}

func (d *daily) At(t time.Time) Slot {
	midnight := t.UTC().Truncate(24 * time.Hour)
	current := (*d)[len(*d)-1]
	until := midnight.Add((*d)[0].from)
	for i, p := range *d {
		if t.Sub(midnight) >= p.from {
			current = p
			until = midnight.Add(24*time.Hour + (*d)[0].from)
			if i+1 < len(*d) {
				until = midnight.Add((*d)[i+1].from)
			}
		}
	}
	return Slot{Delay: current.delay, DelayLine: 2, Closed: current.closed, OpenLine: 3, Until: until}
}

// plans sets the schedule of a robots.txt.
func (w *world) plans(periods ...period) {
	d := daily(periods)
	w.SetSchedule(time.Now(), Source{Scheme: "http"}, &d, time.Time{})
}

// pages lets n pages pass at the same time, in their order. A bubble begins at midnight in UTC, so
// the transcript has the time of day.
func (w *world) pages(n int) {
	for i := range n {
		go func() {
			if err := w.pass(w.t.Context()); err != nil {
				w.t.Error(err)
			}
			w.note("page %d", i)
		}()
		synctest.Wait()
	}
}

func TestRateBecomesFasterWhilePagesWait(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		w.plans(period{delay: 10 * time.Second}, period{from: 25 * time.Second, delay: 2 * time.Second})
		w.pages(6)
		time.Sleep(time.Minute)
		w.check(`
0s page 0
10s page 1
20s page 2
25s page 3
27s page 4
29s page 5`)
	})
}

func TestPagesWaitWhileClosed(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		w.plans(period{closed: true}, period{from: time.Hour, delay: time.Minute}, period{from: 2 * time.Hour, closed: true})
		w.pages(3)
		time.Sleep(110 * time.Minute)
		w.pages(1)
		time.Sleep(8 * time.Minute)
		w.pages(12)
		time.Sleep(24 * time.Hour)
		w.check(`
1h0m0s page 0
1h1m0s page 1
1h2m0s page 2
1h50m0s page 0
1h58m0s page 0
1h59m0s page 1
25h0m0s page 2
25h1m0s page 3
25h2m0s page 4
25h3m0s page 5
25h4m0s page 6
25h5m0s page 7
25h6m0s page 8
25h7m0s page 9
25h8m0s page 10
25h9m0s page 11`)
	})
}

// TestScheduleWithOtherDelays checks that the longest delay applies, and that MaxCrawlDelay limits
// the delay of a schedule.
func TestScheduleWithOtherDelays(t *testing.T) {
	for _, test := range []struct {
		rules Rules
		crawl time.Duration
		want  string
	}{
		{Rules{}, 0, "0s page 0\n10s page 1\n20s page 2"},
		{Rules{}, 15 * time.Second, "0s page 0\n15s page 1\n30s page 2"},
		{Rules{MinDelay: 12 * time.Second}, 0, "0s page 0\n12s page 1\n24s page 2"},
		{Rules{MaxCrawlDelay: 4 * time.Second}, 0, "0s page 0\n4s page 1\n8s page 2"},
		{Rules{Free: true}, 0, "0s page 0\n0s page 1\n0s page 2"},
	} {
		underRules(t, test.rules, func(t *testing.T, w *world) {
			w.plans(period{delay: 10 * time.Second})
			w.wants(test.crawl)
			w.pages(3)
			time.Sleep(time.Minute)
			w.check(test.want)
		})
	}
}

// TestScheduleChanges checks that a new schedule applies to pages that already wait, and that the
// same schedule is no change.
func TestScheduleChanges(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		w.plans(period{closed: true})
		w.pages(3)
		time.Sleep(10 * time.Second)
		rate := &daily{{delay: 4 * time.Second}}
		source := Source{Scheme: "http"}
		if !w.SetSchedule(time.Now(), source, rate, time.Time{}) {
			t.Error("a new schedule is no change")
		}
		if w.SetSchedule(time.Now(), source, rate, time.Time{}) {
			t.Error("the same schedule is a change")
		}
		time.Sleep(5 * time.Second)
		if !w.SetSchedule(time.Now(), source, nil, time.Time{}) {
			t.Error("the end of a schedule is no change")
		}
		w.check(`
10s page 0
14s page 1
15s page 2`)
	})
}

// TestScheduleExpires checks that a schedule whose file should have been read again ends as soon as
// no request that obeys it waits.
func TestScheduleExpires(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		closed := &daily{{closed: true}}
		source := Source{Scheme: "http"}
		w.SetSchedule(time.Now(), source, closed, time.Now().Add(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour+5*time.Minute)
		defer cancel()
		var ticket Ticket
		w.Obey(&ticket, source)
		if err := w.Enter(ctx, &ticket); err == nil {
			t.Error("a page has passed a closed host")
		}
		w.note("given up")
		w.pages(1)
		time.Sleep(time.Hour)
		w.check(`
3h5m0s given up
3h5m0s page 0`)
	})
}

// TestScheduleStats checks the statistics of a host with a schedule.
func TestScheduleStats(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		start := time.Now()
		w.plans(period{delay: 10 * time.Second}, period{from: 25 * time.Second, closed: true}, period{from: time.Hour})
		check := func(source report.DelaySource, line int, delay, next time.Duration) {
			t.Helper()
			s := w.Stats(time.Now())
			var got time.Duration
			if !s.NextStart.IsZero() {
				got = s.NextStart.Sub(start)
			}
			if s.Source != source || s.Line != line || s.Delay != delay || got != next {
				t.Errorf("%v: cause %q of line %d, delay %v, next start %v, want %q of %d, %v, %v",
					time.Since(start), s.Source, s.Line, s.Delay, got, source, line, delay, next)
			}
		}
		check(report.SourceRequestRate, 2, 10*time.Second, 0)
		w.pages(1)
		check(report.SourceRequestRate, 2, 10*time.Second, 10*time.Second)
		time.Sleep(12 * time.Second)
		w.pages(1)
		time.Sleep(6 * time.Second)
		check(report.SourceRequestRate, 2, 10*time.Second, 22*time.Second)
		time.Sleep(5 * time.Second)
		w.pages(1)
		check(report.SourceVisitTime, 3, 10*time.Second, time.Hour) // the host closes before the delay has passed
		time.Sleep(3 * time.Second)
		check(report.SourceVisitTime, 3, 0, time.Hour)
		if !w.BusyFor(time.Now(), 59*time.Minute) || w.BusyFor(time.Now(), time.Hour) {
			t.Error("a closed host is not busy until it opens")
		}
		time.Sleep(2 * time.Hour)
		check("", 0, 0, 0)
		var ticket Ticket
		w.Start(t.Context(), &ticket, true)
		if s := ticket.Start(); s.Delay != 0 || s.Source != "" {
			t.Errorf("%+v", s)
		}
		ticket.End()
	})
}

// TestVeryLongRate checks that a delay of years beside a short one is found step by step.
func TestVeryLongRate(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		w.plans(period{delay: 200 * 365 * 24 * time.Hour}, period{from: 12 * time.Hour, closed: true})
		w.once()
		began := time.Now()
		next := w.Stats(began).NextStart
		if next.Sub(began) < 24*time.Hour {
			t.Errorf("the next start is at %v", next)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("took %v", took)
		}
	})
}

// TestSchedulesOfSources checks that the schedules of several sources all apply.
func TestSchedulesOfSources(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		w.plans(period{delay: time.Second}, period{from: 3 * time.Second, closed: true}, period{from: time.Minute, delay: time.Second})
		https := daily{{delay: 2 * time.Second}, {from: 61 * time.Second, delay: 5 * time.Second}}
		w.SetSchedule(time.Now(), Source{Scheme: "https"}, &https, time.Time{})
		w.pages(5)
		time.Sleep(2 * time.Minute)
		w.check(`
0s page 0
2s page 1
1m0s page 2
1m5s page 3
1m10s page 4`)
	})
}

// TestRobotsTxtWhileClosed checks that a robots.txt is read while the host is closed, although a
// page waits in Start, and that it keeps the delay.
func TestRobotsTxtWhileClosed(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		w.plans(period{delay: time.Minute, closed: true}, period{from: time.Hour, delay: time.Minute})
		go func() {
			w.once()
			w.note("redirect")
		}()
		synctest.Wait()
		w.pages(1)
		for range 2 {
			var ticket Ticket
			ticket.Renew()
			if err := w.send(t.Context(), &ticket, true); err != nil {
				t.Error(err)
			}
			w.note("robots.txt")
		}
		time.Sleep(2 * time.Hour)
		w.check(`
0s robots.txt
1m0s robots.txt
1h0m0s redirect
1h1m0s page 0`)
	})
}
