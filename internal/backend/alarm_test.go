package backend

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// awake is the Trip of an exchange in the world's time.
type awake struct{ nobody }

func (awake) Bubbled() bool { return false }

// Exchanges come and go, and some are ended more than once. Those whose time is up are ended by
// their alarm, and no others, whatever the alarm was for before.
func TestAlarmsAreUsedAgain(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				long, short := begin(t.Context(), time.Hour, awake{}), begin(t.Context(), time.Millisecond, awake{})
				early := rand.N(2) == 0
				if early {
					short.end(errTest)
				}
				select {
				case <-short.Done():
				case <-time.After(10 * time.Second):
					t.Error("its time is up, and it has not ended")
					return
				}
				short.end(nil)
				if want := context.DeadlineExceeded; !early && short.endedBy() != want {
					t.Errorf("ended by %v, want %v", short.endedBy(), want)
				}
				if long.Err() != nil {
					t.Errorf("ended by %v an hour too early", long.endedBy())
				}
				long.end(nil)
				long.end(nil)
			}
		})
	}
	all.Wait()
}
