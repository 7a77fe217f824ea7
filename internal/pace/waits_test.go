package pace

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitWhile checks that requests that wait in Enter end their wait when their function says so,
// that the others keep the order and the pace, and that a later request does not wait at all.
func TestWaitWhile(t *testing.T) {
	inBubble(t, time.Minute, func(t *testing.T, w *world) {
		w.once()
		began := time.Now()
		over := errors.New("over")
		var closed atomic.Bool
		results := make([]string, 6)
		enter := func(i int, limited bool) {
			ticket := new(Ticket)
			defer ticket.End()
			if limited {
				ticket.WaitWhile(func() error {
					if closed.Load() {
						return over
					}
					return nil
				})
			}
			err := w.Enter(t.Context(), ticket)
			if err == nil {
				err = w.Start(t.Context(), ticket, true)
			}
			results[i] = fmt.Sprint(time.Since(began), " ", err)
		}
		for i := range 5 {
			go enter(i, i%2 == 0)
			synctest.Wait()
		}
		s := w.Stats(time.Now())
		if !s.Busy || s.Waiting != 5 {
			t.Errorf("%d wait, busy: %v", s.Waiting, s.Busy)
		}
		time.Sleep(70 * time.Second)
		closed.Store(true)
		enter(5, true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for i, want := range []string{"1m0s <nil>", "2m0s <nil>", " over", "3m0s <nil>", " over", "1m10s over"} {
			if !strings.HasSuffix(results[i], want) { // when a request ends, others look in any order
				t.Errorf("request %d: %s, want %s", i, results[i], want)
			}
		}
		if s := w.Stats(time.Now()); s.Busy || s.Waiting != 0 {
			t.Errorf("%d wait, busy: %v", s.Waiting, s.Busy)
		}
	})
}

// TestRefusalsSurvive checks that the count of refusals is kept when a host is forgotten.
func TestRefusalsSurvive(t *testing.T) {
	var sum Stats
	h := New(func(string) *Rules { return new(Rules) }).At(time.Now(), "a.test")
	h.CountRefusal()
	h.CountRefusal()
	sum.add(h.Stats(time.Now()))
	sum.add(h.Stats(time.Now()))
	if sum.Refusals != 4 {
		t.Errorf("%d refusals, want 4", sum.Refusals)
	}
}
