package pace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots/report"
)

// underRate runs a test in a bubble with hosts that share a total rate.
func underRate(t *testing.T, r rate.Limit, burst int, rules Rules, test func(t *testing.T, w *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		hosts := New(func(string) *Rules { return &rules })
		hosts.LimitRate(r, burst)
		w := &town{world: &world{t: t, start: time.Now()}, hosts: hosts}
		test(t, w)
		synctest.Wait()
		hosts.total.mu.Lock()
		defer hosts.total.mu.Unlock()
		if hosts.total.line.Len() != 0 || len(hosts.total.places) != 0 || hosts.total.next != nil {
			t.Errorf("%d requests wait, %d have a place, the next reservation is %v", hosts.total.line.Len(), len(hosts.total.places), hosts.total.next)
		}
	})
}

// request lets a request pass both stages at a host, and notes its start.
func (w *town) request(ctx context.Context, host string) error {
	var ticket Ticket
	defer ticket.End()
	h := w.hosts.At(time.Now(), host)
	err := h.Enter(ctx, &ticket)
	if err == nil {
		err = h.Start(ctx, &ticket, true)
	}
	if err != nil {
		w.note("%s: %v", host, err)
		return err
	}
	w.note("%s", host)
	return nil
}

// goRequest calls request in a goroutine and waits until it has started or waits.
func (w *town) goRequest(ctx context.Context, host string) {
	go w.request(ctx, host)
	synctest.Wait()
}

func TestTotalRate(t *testing.T) {
	const s = time.Second
	underRate(t, 1, 2, Rules{}, func(t *testing.T, w *town) {
		for i := range 4 {
			w.goRequest(t.Context(), fmt.Sprintf("%d.test", i))
		}
		time.Sleep(10 * s)
		for i := range 4 { // the burst is full again
			w.goRequest(t.Context(), fmt.Sprintf("%d.test", i))
		}
		time.Sleep(10 * s)
		w.check(`
0s 0.test
0s 1.test
1s 2.test
2s 3.test
10s 0.test
10s 1.test
11s 2.test
12s 3.test`)
		if waits, ok := w.hosts.RateWaits(time.Now()); !ok || waits != (RateWaits{Waited: 6 * s}) {
			t.Errorf("waits %+v", waits)
		}
	})
}

// TestTotalRateIsFair checks that hosts take turns, however many requests they have.
func TestTotalRateIsFair(t *testing.T) {
	underRate(t, 2, 1, Rules{}, func(t *testing.T, w *town) {
		for range 4 {
			w.goRequest(t.Context(), "many.test")
		}
		w.goRequest(t.Context(), "few.test")
		w.goRequest(t.Context(), "few.test")
		time.Sleep(10 * time.Second)
		w.check(`
0s many.test
500ms many.test
1s few.test
1.5s many.test
2s few.test
2.5s many.test`)
	})
}

// TestTotalRateAndDelay checks that no gap becomes shorter because of the rate, and that a host that has
// to wait for its delay does not hold up others.
func TestTotalRateAndDelay(t *testing.T) {
	share := &sameNumber{value: 0.5}
	rules := Rules{MinDelay: 4 * time.Second, Jitter: 0.5, numbers: share}
	underRate(t, 1, 1, rules, func(t *testing.T, w *town) {
		for range 2 {
			for _, host := range []string{"a.test", "b.test", "c.test"} {
				w.goRequest(t.Context(), host)
			}
		}
		time.Sleep(time.Minute)
		w.check(`
0s a.test
1s b.test
2s c.test
5s a.test
6s b.test
7s c.test`)
	})
}

// TestTotalRateOfCanceledRequests checks that a request that is canceled gives its token to the next.
func TestTotalRateOfCanceledRequests(t *testing.T) {
	underRate(t, 1, 1, Rules{}, func(t *testing.T, w *town) {
		w.goRequest(t.Context(), "0.test")
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		for i := range 100 {
			w.goRequest(short, fmt.Sprintf("short%d.test", i))
		}
		w.goRequest(t.Context(), "1.test")
		time.Sleep(2 * time.Second)
		only, cancel := context.WithTimeout(t.Context(), 125*time.Millisecond)
		defer cancel()
		w.goRequest(t.Context(), "2.test")
		w.goRequest(only, "3.test")
		time.Sleep(875 * time.Millisecond) // the canceled request took no token
		w.goRequest(t.Context(), "4.test")
		time.Sleep(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		var starts []string
		for _, line := range w.lines {
			var at, host, more string
			if n, _ := fmt.Sscan(line, &at, &host, &more); n == 2 {
				starts = append(starts, at+" "+host)
			}
		}
		if got := fmt.Sprint(starts); got != "[0s 0.test 1s 1.test 2s 2.test 3s 4.test]" {
			t.Errorf("got %v", got)
		}
	})
}

// TestTotalRateAndClose checks that Close ends the waits at once.
func TestTotalRateAndClose(t *testing.T) {
	underRate(t, 0.001, 1, Rules{}, func(t *testing.T, w *town) {
		for i := range 3 {
			w.goRequest(t.Context(), fmt.Sprintf("%d.test", i))
		}
		time.Sleep(time.Second)
		want := RateWaits{Waiting: 2, Waited: 2 * time.Second}
		if waits, ok := w.hosts.RateWaits(time.Now()); !ok || waits != want {
			t.Errorf("waits %+v", waits)
		}
		w.hosts.Close(errors.New("over"))
		w.check(`
0s 0.test
1s 1.test: over
1s 2.test: over`)
	})
}

// TestTotalRateStats checks what hosts and the registry say about the waits.
func TestTotalRateStats(t *testing.T) {
	const s = time.Second
	underRate(t, 0.5, 1, Rules{MinDelay: s}, func(t *testing.T, w *town) {
		w.goRequest(t.Context(), "a.test")
		w.goRequest(t.Context(), "b.test")
		w.goRequest(t.Context(), "c.test")
		for _, test := range []struct {
			host   string
			source report.DelaySource
			next   time.Duration
		}{
			{"a.test", report.SourceMinDelay, s},
			{"b.test", report.SourceMaxRate, 2 * s},
			{"c.test", report.SourceMaxRate, 2 * s}, // not before the one at the front
			{"d.test", report.SourceMinDelay, 0},
		} {
			stats := w.hosts.At(time.Now(), test.host).Stats(time.Now())
			next := time.Duration(0)
			if !stats.NextStart.IsZero() {
				next = stats.NextStart.Sub(w.start)
			}
			if stats.Source != test.source || next != test.next || stats.RateWait != 6*s {
				t.Errorf("%s: next start %v because of %s, a new request waits %v", test.host, next, stats.Source, stats.RateWait)
			}
		}
		time.Sleep(time.Minute)
		w.check(`
0s a.test
2s b.test
4s c.test`)
		if waited := w.hosts.At(time.Now(), "c.test").Stats(time.Now()).Waited; waited != 4*s {
			t.Errorf("c.test has waited %v", waited)
		}
	})
}

// TestTotalRateKeepsPagesInEnter checks that one request of a host waits in Start, where it may hold what
// other hosts need, and that the others are counted and wait in Enter.
func TestTotalRateKeepsPagesInEnter(t *testing.T) {
	const s = time.Second
	underRate(t, 1, 2, Rules{}, func(t *testing.T, w *town) {
		h := w.hosts.At(time.Now(), "a.test")
		for i := range 6 {
			go func() {
				var ticket Ticket
				defer ticket.End()
				h.Enter(t.Context(), &ticket)
				w.note("enters %d", i)
				h.Start(t.Context(), &ticket, true)
				w.note("starts %d", i)
			}()
			synctest.Wait()
		}
		if stats := h.Stats(time.Now()); stats.Waiting != 3 || stats.Source != report.SourceMaxRate {
			t.Errorf("%d requests wait because of %s", stats.Waiting, stats.Source)
		}
		if last := h.LastStart(time.Now(), 2, 4).Sub(w.start); last != 5*s {
			t.Errorf("LastStart = %v", last)
		}
		time.Sleep(time.Minute)
		w.check(`
0s enters 0
0s starts 0
0s enters 1
0s starts 1
0s enters 2
1s starts 2
1s enters 3
2s starts 3
2s enters 4
3s starts 4
3s enters 5
4s starts 5`)
	})
}

// TestMayEnterUnderTotalRate checks that Enter is not omitted while requests wait for the rate.
func TestMayEnterUnderTotalRate(t *testing.T) {
	underRate(t, 1, 1, Rules{}, func(t *testing.T, w *town) {
		h := w.hosts.At(time.Now(), "new.test")
		for _, want := range []bool{true, false} {
			if got := h.MayEnter(new(Ticket)); got != want {
				t.Errorf("MayEnter = %t, want %t", got, want)
			}
			w.goRequest(t.Context(), "a.test")
		}
		time.Sleep(time.Minute)
	})
}

// TestTotalRateAndPacer checks that a request that waits for the rate holds no lease, and that it then
// needs one more lease and no more waiting.
func TestTotalRateAndPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := New(func(string) *Rules { return &Rules{MinDelay: time.Second} })
		p := &countingPacer{}
		hosts.UsePacer(p)
		hosts.LimitRate(0.1, 1)
		w := &town{world: &world{t: t, start: time.Now()}, hosts: hosts}
		for i := range 3 {
			w.goRequest(t.Context(), fmt.Sprintf("%d.test", i))
		}
		if p.held() != 0 {
			t.Errorf("%d leases are held while requests wait", p.held())
		}
		time.Sleep(time.Minute)
		w.check(`
0s 0.test
10s 1.test
20s 2.test`)
		if p.granted != 5 || p.held() != 0 {
			t.Errorf("%d leases granted, %d held; want 5, which are one for the first request and two for each other", p.granted, p.held())
		}
	})
}

// A countingPacer grants leases of a second and counts them.
type countingPacer struct {
	mu       sync.Mutex
	granted  int
	released int
}

func (p *countingPacer) held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.granted - p.released
}

func (p *countingPacer) Acquire(ctx context.Context, host string, delay time.Duration) (Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted++
	return &countedLease{pacer: p, until: time.Now().Add(time.Second)}, nil
}

type countedLease struct {
	pacer *countingPacer
	until time.Time
}

func (l *countedLease) Deadline() time.Time { return l.until }

func (l *countedLease) Valid() bool { return time.Now().Before(l.until) }

func (l *countedLease) Release(bool, time.Duration, time.Time) {
	l.pacer.mu.Lock()
	defer l.pacer.mu.Unlock()
	l.pacer.released++
}

// TestTotalRateOfDryRun checks that a dry run neither waits nor takes tokens.
func TestTotalRateOfDryRun(t *testing.T) {
	underRate(t, 1, 1, Rules{Free: true}, func(t *testing.T, w *town) {
		for range 3 {
			w.goRequest(t.Context(), "a.test")
		}
		w.check(`
0s a.test
0s a.test
0s a.test`)
		if s := w.hosts.At(time.Now(), "a.test").Stats(time.Now()); s.RateWait != 0 || s.Source != "" {
			t.Errorf("a request waits %v because of %s", s.RateWait, s.Source)
		}
	})
}

// TestTotalRateAndHours checks a host that closes while its request waits for the rate.
func TestTotalRateAndHours(t *testing.T) {
	underRate(t, 0.5, 1, Rules{}, func(t *testing.T, w *town) {
		day := closedBetween{w.start.Add(time.Second), w.start.Add(time.Hour)}
		w.hosts.At(time.Now(), "a.test").SetSchedule(time.Now(), Source{Scheme: "http"}, day, time.Time{})
		w.goRequest(t.Context(), "c.test")
		w.goRequest(t.Context(), "a.test")
		w.goRequest(t.Context(), "b.test")
		time.Sleep(2 * time.Hour)
		w.check(`
0s c.test
2s b.test
1h0m0s a.test`)
	})
}

// A closedBetween is a schedule that closes a host between two times.
type closedBetween struct{ from, to time.Time }

func (s closedBetween) At(t time.Time) Slot {
	switch {
	case t.Before(s.from):
		return Slot{Until: s.from}
	case t.Before(s.to):
		return Slot{Closed: true, Until: s.to}
	}
	return Slot{}
}

// TestTotalRateAndRetryAfter checks that a host that may no longer be asked leaves the queue, and
// the next request takes its token.
func TestTotalRateAndRetryAfter(t *testing.T) {
	underRate(t, 1, 1, Rules{}, func(t *testing.T, w *town) {
		a := w.hosts.At(time.Now(), "a.test")
		var first Ticket
		if err := a.Start(t.Context(), &first, true); err != nil {
			t.Fatal(err)
		}
		w.goRequest(t.Context(), "a.test")
		w.goRequest(t.Context(), "b.test")
		a.SlowDown(time.Now(), &first, 30*time.Second)
		first.End()
		time.Sleep(time.Minute)
		w.check(`
1s b.test
30s a.test`)
	})
}

// TestStartNowUnderTotalRate checks that StartNow takes a token or leaves nothing behind.
func TestStartNowUnderTotalRate(t *testing.T) {
	underRate(t, 1, 1, Rules{}, func(t *testing.T, w *town) {
		var a, b Ticket
		start := func(ticket *Ticket, host string) (time.Duration, bool) {
			return w.hosts.At(time.Now(), host).StartNow(time.Now(), ticket, true)
		}
		if wait, ok := start(&a, "a.test"); wait != 0 || !ok {
			t.Errorf("got %v, %t", wait, ok)
		}
		for range 3 {
			if wait, ok := start(&b, "b.test"); wait != time.Second || ok {
				t.Errorf("got %v, %t", wait, ok)
			}
		}
		time.Sleep(time.Second)
		if wait, ok := start(&b, "b.test"); wait != 0 || !ok {
			t.Errorf("got %v, %t", wait, ok)
		}
		a.End()
		b.End()
	})
}
