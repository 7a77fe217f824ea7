package feed

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlotsAreShared checks that a walk of a slow host leaves its share of the slots to another
// walk.
func TestSlotsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slots Slots
		slow, fast := &share{slots: &slots}, &share{slots: &slots}
		ctx, cancel := context.WithCancel(t.Context())
		held := 0
		go func() {
			for slow.enter(ctx, 8) == nil {
				held++
				time.AfterFunc(time.Hour, slow.leave)
			}
		}()
		synctest.Wait()
		if held != 8 {
			t.Errorf("one walk holds %d of 8 slots", held)
		}
		time.Sleep(time.Hour - time.Minute)
		done := 0
		go func() {
			for fast.enter(ctx, 8) == nil {
				done++
				time.AfterFunc(time.Second, fast.leave)
			}
		}()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if held != 12 {
			t.Errorf("the slow walk took %d slots, want 8 and then 4", held)
		}
		if done < 4*59 || done > 4*61 {
			t.Errorf("the fast walk fed %d pages in a minute at 4 slots", done)
		}
		cancel()
		synctest.Wait()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if slots.held != 0 || slots.shares != 0 || len(slots.waiting) != 0 {
			t.Errorf("left over: %+v", &slots)
		}
	})
}

// TestNoSlotIsLost checks that no slot is lost, whether a slot or the end of the context comes
// first, and that no more slots are held than there are.
func TestNoSlotIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slots Slots
		var mu sync.Mutex
		held, most := 0, 0
		var all sync.WaitGroup
		for g := range 20 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 4))
				s := &share{slots: &slots}
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(10))*time.Millisecond)
					if s.enter(ctx, 5) == nil {
						mu.Lock()
						held++
						most = max(most, held)
						mu.Unlock()
						time.AfterFunc(time.Duration(r.IntN(10))*time.Millisecond, func() {
							mu.Lock()
							held--
							mu.Unlock()
							s.leave()
						})
					}
					cancel()
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if most != 5 || held != 0 || slots.held != 0 || slots.shares != 0 || len(slots.waiting) != 0 {
			t.Errorf("at most %d were held; left over: %d, %+v", most, held, &slots)
		}
	})
}

// TestSlotAtTheEnd checks that a walk gives a slot back that it gets at the moment when its context
// ends.
func TestSlotAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slots Slots
		ctx, cancel := context.WithCancel(t.Context())
		other, s := &share{slots: &slots}, &share{slots: &slots}
		err := other.enter(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- s.enter(ctx, 1) }()
		synctest.Wait()
		slots.mu.Lock()
		cancel()
		other.change(func() { other.held-- })
		slots.grant()
		slots.mu.Unlock()
		if <-ended == nil {
			t.Error("the walk has a slot although its context has ended")
		}
		if slots.held != 0 || slots.shares != 0 || len(slots.waiting) != 0 {
			t.Errorf("left over: %+v", &slots)
		}
	})
}
