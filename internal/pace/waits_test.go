package pace

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/report"
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

// TestCount checks that Stats has each count that was passed to Count.
func TestCount(t *testing.T) {
	h := New(func(string) *Rules { return new(Rules) }).At(time.Now(), "a.test")
	var want report.HostCounts
	counts := reflect.ValueOf(&want).Elem()
	for i := range counts.NumField() {
		if f := counts.Field(i); f.Kind() == reflect.Int {
			f.SetInt(int64(i + 1))
		}
	}
	want.Requests = 0 // the limiter counts the requests
	h.Count(want)
	if got := h.Stats(time.Now()).HostCounts; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	h.Count(report.HostCounts{Throttled: math.MaxUint16, Refusals: math.MaxUint16})
	if s := h.Stats(time.Now()); s.Throttled != math.MaxUint16 || s.Refusals != math.MaxUint16 {
		t.Errorf("throttled %d, refusals %d, want the maximum", s.Throttled, s.Refusals)
	}
}
