package pace

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/collyrobots/collyrobots/report"
)

// nightly is open from 22:00 to 06:00.
var nightly = &daily{{closed: false}, {from: 6 * time.Hour, closed: true}, {from: 22 * time.Hour}}

// TestHoursAndVisitTime checks that requests start only when both the rules and a robots.txt allow.
func TestHoursAndVisitTime(t *testing.T) {
	underRules(t, Rules{Hours: nightly}, func(t *testing.T, w *world) {
		w.plans(period{closed: true}, period{from: 23 * time.Hour})
		w.pages(1)
		if s := w.Stats(time.Now()); s.Source != report.SourceVisitTime || s.NextStart.Sub(w.start) != 23*time.Hour {
			t.Errorf("at first: %q until %v", s.Source, s.NextStart)
		}
		time.Sleep(7 * time.Hour)
		if s := w.Stats(time.Now()); s.NextStart.Sub(w.start) != 23*time.Hour || s.Opens.Sub(w.start) != 23*time.Hour {
			t.Errorf("at 7:00: %q until %v, opens at %v", s.Source, s.NextStart, s.Opens)
		}
		time.Sleep(24 * time.Hour)
		w.check("23h0m0s page 0")
	})
}

// TestRobotsTxtAtClosingTime checks that a robots.txt is read although a redirect waits before it
// that came when the host was open, and that cannot start before the host has closed.
func TestRobotsTxtAtClosingTime(t *testing.T) {
	underRules(t, Rules{Hours: nightly, MinDelay: time.Minute}, func(t *testing.T, w *world) {
		time.Sleep(6*time.Hour - 30*time.Second)
		w.once()
		w.note("page")
		go func() {
			w.once()
			w.note("redirect")
		}()
		synctest.Wait()
		var ticket Ticket
		ticket.Renew()
		if err := w.send(t.Context(), &ticket, true); err != nil {
			t.Error(err)
		}
		w.note("robots.txt")
		time.Sleep(24 * time.Hour)
		w.check(`
5h59m30s page
6h0m30s robots.txt
22h0m0s redirect`)
	})
}

// TestClosedBeforeTheWire checks that a request that has started does not go on the wire after the
// host has closed, for example because its connection took long, and that a robots.txt does.
func TestClosedBeforeTheWire(t *testing.T) {
	for _, test := range []struct {
		name   string
		robots bool
		free   bool
	}{{"page", false, false}, {"robots.txt", true, false}, {"dry run", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			underRules(t, Rules{Hours: nightly, Free: test.free}, func(t *testing.T, w *world) {
				time.Sleep(6*time.Hour - 500*time.Millisecond)
				var started, sent Ticket
				for _, ticket := range []*Ticket{&started, &sent} {
					if test.robots {
						ticket.Renew()
					}
					if err := w.Start(t.Context(), ticket, ticket == &sent); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(500 * time.Millisecond)
				goes := test.robots || test.free
				if got := started.OnWire(); got != goes {
					t.Errorf("OnWire returned %t, want %t", got, goes)
				}
				if got := !sent.Late(); got != goes {
					t.Errorf("Late returned %t, want %t", !got, !goes)
				}
				if got, want := w.Stats(time.Now()).Requests, 2; goes && got != want || !goes && got != 0 {
					t.Errorf("%d requests were counted", got)
				}
				started.End()
				sent.End()
			})
		})
	}
}

// TestClosedHostIsForgotten checks that a host that only the rules close can be forgotten, and that
// one whose robots.txt closes it cannot.
func TestClosedHostIsForgotten(t *testing.T) {
	for _, test := range []struct {
		name   string
		robots bool
		want   bool
	}{{"rules", false, true}, {"robots.txt", true, false}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := New(func(string) *Rules { return &Rules{Hours: nightly} })
				h := hosts.At(time.Now(), "a.test")
				if test.robots {
					h.SetSchedule(time.Now(), Source{Scheme: "http"}, &daily{{closed: true}}, time.Time{})
				}
				time.Sleep(7 * time.Hour)
				s := hosts.shardOf("a.test")
				s.mu.Lock()
				s.examine(hosts.now())
				s.mu.Unlock()
				if h.own.isForgotten != test.want {
					t.Errorf("forgotten: %t, want %t", h.own.isForgotten, test.want)
				}
				if next := hosts.At(time.Now(), "a.test"); !next.BusyFor(time.Now(), time.Hour) {
					t.Error("the host is open afterwards")
				}
			})
		})
	}
}

// TestCauseOfHours checks what Stats name as the cause of a wait.
func TestCauseOfHours(t *testing.T) {
	underRules(t, Rules{Hours: nightly}, func(t *testing.T, w *world) {
		check := func(source report.DelaySource, next, opens, closes time.Duration) {
			t.Helper()
			s := w.Stats(time.Now())
			since := func(at time.Time) time.Duration {
				if at.IsZero() {
					return 0
				}
				return at.Sub(w.start)
			}
			if s.Source != source || since(s.NextStart) != next || since(s.Opens) != opens || since(s.Closes) != closes {
				t.Errorf("%v: %q, next %v, opens %v, closes %v, want %q, %v, %v, %v", time.Since(w.start),
					s.Source, since(s.NextStart), since(s.Opens), since(s.Closes), source, next, opens, closes)
			}
		}
		check("", 0, 0, 6*time.Hour)
		time.Sleep(5*time.Hour + 50*time.Minute)
		w.SlowDown(time.Now(), nil, 5*time.Minute)
		check(report.SourceRetryAfter, 5*time.Hour+55*time.Minute, 0, 6*time.Hour)
		w.SlowDown(time.Now(), nil, 20*time.Minute) // until 6:10, when the host is closed
		check(report.SourceHours, 22*time.Hour, 0, 6*time.Hour)
		time.Sleep(15 * time.Minute)
		check(report.SourceHours, 22*time.Hour, 22*time.Hour, 0)
		time.Sleep(15*time.Hour + 45*time.Minute)
		w.SlowDown(time.Now(), nil, 30*time.Minute) // until 22:20
		check(report.SourceRetryAfter, 22*time.Hour+20*time.Minute, 22*time.Hour, 0)
	})
}

// TestLastStart checks the estimate of the last start with the time at which the last of some pages
// starts, for random schedules.
func TestLastStart(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			rules := Rules{MinDelay: time.Duration(1+random.IntN(40)) * time.Minute}
			if seed%2 == 0 {
				rules.Hours = nightly
			}
			underRules(t, rules, func(t *testing.T, w *world) {
				w.plans(randomPeriods(random)...)
				time.Sleep(time.Duration(random.IntN(86400)) * time.Second)
				if random.IntN(2) == 0 {
					w.once()
				}
				n := 1 + random.IntN(100)
				want := w.LastStart(time.Now(), n, 1)
				w.pages(n)
				time.Sleep(time.Until(want) - time.Nanosecond)
				if n := w.Stats(time.Now()).Waiting; n == 0 {
					t.Errorf("no page waits before %v", want)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if n := w.Stats(time.Now()).Waiting; n != 0 {
					t.Errorf("%d pages still wait at %v", n, want)
				}
			})
		})
	}
}

// randomPeriods returns up to four periods of a day. At least one is open around midnight, when
// nightly is open.
func randomPeriods(random *rand.Rand) []period {
	periods := []period{{delay: time.Duration(random.IntN(90)) * time.Minute}}
	for i := range random.IntN(4) {
		from := time.Duration(3+i*6)*time.Hour + time.Duration(random.IntN(300))*time.Minute
		delay := time.Duration(random.IntN(90)) * time.Minute
		periods = append(periods, period{from: from, delay: delay, closed: random.IntN(2) == 0})
	}
	return periods
}

// TestLastStartOfManyPages checks the estimate where it exceeds the number of slots that are
// examined, and that it does not overflow.
func TestLastStartOfManyPages(t *testing.T) {
	underRules(t, Rules{Hours: nightly, MinDelay: time.Minute}, func(t *testing.T, w *world) {
		days := 1000.0
		got := w.LastStart(time.Now(), int(days*8*60), 1).Sub(w.start).Hours() / 24
		if got < days*0.98 || got > days*1.02 {
			t.Errorf("got %.1f days, want %.1f", got, days)
		}
		if got := w.LastStart(time.Now(), 1<<60, 1); got.Before(w.start.Add(200 * 365 * 24 * time.Hour)) {
			t.Errorf("got %v", got)
		}
	})
}

// TestSetClockWakes checks that a page that waits notices soon that the clock of the machine was
// set, for example because the machine was suspended.
func TestSetClockWakes(t *testing.T) {
	for _, test := range []struct {
		name string
		step time.Duration
		want string
	}{
		{"forward", 8 * time.Hour, "14h0m0s page 0"},
		{"back", -3 * time.Hour, "25h0m0s page 0"},
		{"forward into the hours", 14 * time.Hour, "9h40m0s page 0"},
		{"back into the hours", -5 * time.Hour, "9h40m0s page 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			hours := &setSchedule{Schedule: nightly}
			underRules(t, Rules{Hours: hours}, func(t *testing.T, w *world) {
				hours.step.Store(0)
				time.Sleep(9 * time.Hour)
				w.pages(1)
				time.Sleep(35 * time.Minute)
				hours.step.Store(int64(test.step))
				time.Sleep(24 * time.Hour)
				w.check(test.want)
			})
		})
	}
}

// A setSchedule is a Schedule that sees a clock that is a step ahead of the one of the bubble.
type setSchedule struct {
	Schedule
	step atomic.Int64
}

func (s *setSchedule) At(t time.Time) Slot {
	step := time.Duration(s.step.Load())
	slot := s.Schedule.At(t.Add(step))
	slot.Until = slot.Until.Add(-step)
	return slot
}

// TestSetClock checks that a Schedule gets the current time of the machine's clock if that was set
// after New, and that the times that follow from it are right. A bubble has no monotonic clock, so
// this test is outside of one.
func TestSetClock(t *testing.T) {
	for _, step := range []time.Duration{0, 8 * time.Hour, -100 * 24 * time.Hour, 400 * time.Millisecond} {
		t.Run(step.String(), func(t *testing.T) {
			hours := new(closedForAnHour)
			hosts := New(func(string) *Rules { return &Rules{Hours: hours} })
			setClock(&hosts.epoch, step)
			before := time.Now().Round(0)
			s := hosts.At(time.Now(), "a.test").Stats(time.Now())
			after := time.Now().Round(0)
			const tolerance = time.Second // the step is rounded
			if at := hours.first.Load(); at.Round(0).Before(before.Add(-tolerance)) || at.Round(0).After(after.Add(tolerance)) {
				t.Errorf("the schedule was asked for %v, want %v to %v", at, before, after)
			}
			if opens := s.NextStart.Round(0); opens.Before(before.Add(time.Hour-tolerance)) || opens.After(after.Add(time.Hour+tolerance)) {
				t.Errorf("the host opens at %v, want an hour after %v", opens, before)
			}
			if step := hosts.clockStep().Hours(); step != 0 && step != 8 && step != -2400 {
				t.Errorf("the clock was set by %v hours", step)
			}
		})
	}
}

// closedForAnHour is closed for an hour after the first call. It records the time of that call.
type closedForAnHour struct{ first atomic.Pointer[time.Time] }

func (c *closedForAnHour) At(t time.Time) Slot {
	c.first.CompareAndSwap(nil, &t)
	opens := c.first.Load().Round(0).Add(time.Hour)
	if t.Before(opens) {
		return Slot{Closed: true, Until: opens}
	}
	return Slot{Until: opens.Add(24 * time.Hour)}
}

// setClock lets the clock of the machine appear to have been set by step after the time t, which
// must have a monotonic reading: it moves only the wall time of t back.
func setClock(t *time.Time, step time.Duration) {
	wall := t.Add(-step)
	// Package time keeps a monotonic reading in the second field, and wall time in the first.
	type layout struct {
		wall uint64
		ext  int64
		loc  *time.Location
	}
	(*layout)(unsafe.Pointer(&wall)).ext = (*layout)(unsafe.Pointer(t)).ext
	*t = wall
}

// TestNeverOpen checks a schedule that does not say when it opens.
func TestNeverOpen(t *testing.T) {
	underRules(t, Rules{Hours: shut{}}, func(t *testing.T, w *world) {
		s := w.Stats(time.Now())
		if !s.Opens.IsZero() || !s.Closes.IsZero() {
			t.Errorf("opens at %v, closes at %v", s.Opens, s.Closes)
		}
		w.LastStart(time.Now(), 3, 1) // must return
	})
}

// shut is always closed.
type shut struct{}

func (shut) At(time.Time) Slot { return Slot{Closed: true} }
