package collyrobots

import (
	"bytes"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// numbered returns an event that can be told from others.
func numbered(n int) Event { return Event{Kind: EventSitemap, Count: n} }

// A hearing is what a listener has heard.
type hearing struct {
	mu     sync.Mutex
	events []Event
}

func (h *hearing) hear(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// counts returns what was heard: the number of each event, and less than 0 for those missed.
func (h *hearing) counts() (all []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == EventMissed {
			e.Count = -e.Count
		}
		all = append(all, e.Count)
	}
	return all
}

func noLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestListenersHearEverythingInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls listeners
		var one, two hearing
		if ls.any() {
			t.Error("somebody listens")
		}
		ls.add(one.hear, noLog())
		ls.tell(numbered(1))
		stop := ls.add(two.hear, noLog())
		for n := 2; n <= 100; n++ {
			ls.tell(numbered(n))
		}
		time.Sleep(2 * pause)
		stop()
		stop()
		ls.tell(numbered(101))
		ls.close()
		ls.close()
		ls.tell(numbered(102))
		ls.add(two.hear, noLog())
		synctest.Wait()
		if got := one.counts(); len(got) != 101 || !slices.IsSorted(got) {
			t.Errorf("the first heard %v", got)
		}
		if got := two.counts(); len(got) != 99 || got[0] != 2 || !slices.IsSorted(got) {
			t.Errorf("the second heard %v", got)
		}
		if ls.any() {
			t.Error("somebody listens after close")
		}
	})
}

func TestASlowListenerIsToldWhatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls listeners
		var all, slow hearing
		more := make(chan bool)
		ls.add(all.hear, noLog())
		ls.add(func(e Event) { <-more; slow.hear(e) }, noLog())
		for n := range maxEvents + 11 {
			ls.tell(numbered(n))
			if n == 0 {
				synctest.Wait() // it is with the listener
			}
			if n%1000 == 0 {
				time.Sleep(pause) // the other one keeps up
			}
		}
		more <- true
		synctest.Wait()
		ls.tell(numbered(5000))
		close(more)
		time.Sleep(2 * pause)
		got := slow.counts()
		if n := len(got); n != maxEvents+3 || got[n-3] != maxEvents || got[n-2] != -10 || got[n-1] != 5000 {
			t.Errorf("%d events, at the end %v", len(got), got[max(0, len(got)-4):])
		}
		if got := all.counts(); len(got) != maxEvents+12 {
			t.Errorf("the other listener heard %d events", len(got))
		}
		// With nothing more to come it is told at the end.
		ls.close()
	})
}

func TestMissedIsToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls listeners
		var slow hearing
		more := make(chan bool)
		ls.add(func(e Event) { <-more; slow.hear(e) }, noLog())
		for n := range 3 {
			ls.tell(Event{Kind: EventRobots, Count: n, Body: make([]byte, maxEventBodies/2)})
			synctest.Wait()
		}
		ls.tell(Event{Kind: EventRobots, Count: 3, Body: make([]byte, 10)})
		close(more)
		synctest.Wait()
		if got := slow.counts(); !slices.Equal(got, []int{0, 1, 2, -1}) {
			t.Errorf("%v", got)
		}
		ls.close()
	})
}

func TestAListenerThatPanicsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls listeners
		var heard hearing
		var logged bytes.Buffer
		ls.add(func(e Event) {
			heard.hear(e)
			switch e.Count {
			case 1, 2:
				panic("too much")
			case 3:
				runtime.Goexit()
			}
		}, slog.New(slog.NewTextHandler(&logged, nil)))
		for n := range 5 {
			ls.tell(numbered(n))
		}
		ls.close()
		if got := heard.counts(); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
			t.Errorf("%v", got)
		}
		if strings.Count(logged.String(), "too much") != 1 {
			t.Errorf("log: %s", &logged)
		}
	})
}

func TestCloseDoesNotWaitForABlockedListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls listeners
		var heard, blocked hearing
		var logged bytes.Buffer
		more := make(chan bool)
		log := slog.New(slog.NewTextHandler(&logged, nil))
		ls.add(func(e Event) { <-more; blocked.hear(e) }, log)
		ls.add(func(e Event) { time.Sleep(time.Second); heard.hear(e) }, log)
		for n := range 3 {
			ls.tell(numbered(n))
		}
		start := time.Now()
		ls.close()
		if took := time.Since(start); took != lastWords {
			t.Errorf("it took %v", took)
		}
		if got := heard.counts(); len(got) != 3 {
			t.Errorf("the other one heard %v", got)
		}
		if !strings.Contains(logged.String(), "count=2") {
			t.Errorf("log: %s", &logged)
		}
		close(more)
		synctest.Wait()
		if got := blocked.counts(); !slices.Equal(got, []int{0}) {
			t.Errorf("after close it heard %v", got)
		}
	})
}

// Whoever has stopped hears of nothing that had happened before, but for the event it is at.
func TestStopDropsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls listeners
		var heard hearing
		stop := func() {}
		stop = ls.add(func(e Event) { heard.hear(e); stop() }, noLog())
		for n := range 3 {
			ls.tell(numbered(n))
		}
		synctest.Wait()
		if got := heard.counts(); !slices.Equal(got, []int{0}) {
			t.Errorf("%v", got)
		}
	})
}

func TestManyListenersComeAndGo(t *testing.T) {
	var ls listeners
	var told sync.WaitGroup
	for range 4 {
		told.Go(func() {
			for n := range 1000 {
				ls.tell(numbered(n))
			}
		})
	}
	for range 4 {
		told.Go(func() {
			for range 100 {
				var heard hearing
				stop := ls.add(heard.hear, noLog())
				ls.tell(numbered(1))
				stop()
			}
		})
	}
	told.Wait()
	if ls.any() {
		t.Error("somebody has stayed")
	}
	ls.close()
}

func TestNobodyListensAtNoCost(t *testing.T) {
	var ls listeners
	if n := testing.AllocsPerRun(100, func() {
		if ls.any() {
			ls.tell(numbered(1))
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
