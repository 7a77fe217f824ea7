package fanout

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

// An event has a number, or counts missed events.
type event struct {
	number int
	missed int
	body   []byte
}

// discarding returns a Broadcaster of events that does not log.
func discarding() *Broadcaster[event] { return logging(slog.New(slog.DiscardHandler)) }

// logging returns a Broadcaster of events that logs to log.
func logging(log *slog.Logger) *Broadcaster[event] {
	missed := func(count int) event { return event{missed: count} }
	size := func(e event) int { return len(e.body) }
	return New(missed, size, log)
}

// A recorder is a listener that records its events.
type recorder struct {
	mu     sync.Mutex
	events []event
}

func (r *recorder) listen(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// numbers returns the number of each event. For missed events it returns their negative count.
func (r *recorder) numbers() (all []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.missed > 0 {
			e.number = -e.missed
		}
		all = append(all, e.number)
	}
	return all
}

func TestEventsArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var one, two recorder
		if b.Active() {
			t.Error("active without listeners")
		}
		b.Listen(one.listen)
		b.Send(event{number: 1})
		stop := b.Listen(two.listen)
		for n := 2; n <= 100; n++ {
			b.Send(event{number: n})
		}
		time.Sleep(2 * pause)
		stop()
		stop()
		b.Send(event{number: 101})
		b.Close()
		b.Close()
		b.Send(event{number: 102})
		b.Listen(two.listen)
		synctest.Wait()
		if got := one.numbers(); len(got) != 101 || !slices.IsSorted(got) {
			t.Errorf("the first listener got %v", got)
		}
		if got := two.numbers(); len(got) != 99 || got[0] != 2 || !slices.IsSorted(got) {
			t.Errorf("the second listener got %v", got)
		}
		if b.Active() {
			t.Error("active after Close")
		}
	})
}

func TestSlowListenerMissesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var all, slow recorder
		proceed := make(chan bool)
		b.Listen(all.listen)
		b.Listen(func(e event) { <-proceed; slow.listen(e) })
		for n := range maxEvents + 11 {
			b.Send(event{number: n})
			if n == 0 {
				synctest.Wait() // the slow listener has the first event
			}
			if n%1000 == 0 {
				time.Sleep(pause) // the other listener keeps up
			}
		}
		proceed <- true
		synctest.Wait()
		b.Send(event{number: 5000})
		close(proceed)
		time.Sleep(2 * pause)
		got := slow.numbers()
		if n := len(got); n != maxEvents+3 || got[n-3] != maxEvents || got[n-2] != -10 || got[n-1] != 5000 {
			t.Errorf("%d events, at the end %v", len(got), got[max(0, len(got)-4):])
		}
		if got := all.numbers(); len(got) != maxEvents+12 {
			t.Errorf("the other listener got %d events", len(got))
		}
		b.Close()
	})
}

// If no event follows, the missed events are reported when the queue is empty.
func TestMissedIsReportedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var slow recorder
		proceed := make(chan bool)
		b.Listen(func(e event) { <-proceed; slow.listen(e) })
		for n := range 3 {
			b.Send(event{number: n, body: make([]byte, maxBytes/2)})
			synctest.Wait()
		}
		b.Send(event{number: 3, body: make([]byte, 10)})
		close(proceed)
		synctest.Wait()
		if got := slow.numbers(); !slices.Equal(got, []int{0, 1, 2, -1}) {
			t.Errorf("%v", got)
		}
		b.Close()
	})
}

func TestListenerThatPanicsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		b := logging(slog.New(slog.NewTextHandler(&logged, nil)))
		var r recorder
		b.Listen(func(e event) {
			r.listen(e)
			switch e.number {
			case 1, 2:
				panic("too much")
			case 3:
				runtime.Goexit()
			}
		})
		for n := range 5 {
			b.Send(event{number: n})
		}
		b.Close()
		if got := r.numbers(); !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
			t.Errorf("%v", got)
		}
		if strings.Count(logged.String(), "too much") != 1 {
			t.Errorf("log: %s", &logged)
		}
	})
}

func TestCloseDoesNotWaitForABlockedListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		b := logging(slog.New(slog.NewTextHandler(&logged, nil)))
		var other, blocked recorder
		proceed := make(chan bool)
		b.Listen(func(e event) { <-proceed; blocked.listen(e) })
		b.Listen(func(e event) { time.Sleep(time.Second); other.listen(e) })
		for n := range 3 {
			b.Send(event{number: n})
		}
		start := time.Now()
		b.Close()
		if took := time.Since(start); took != closeWait {
			t.Errorf("Close took %v", took)
		}
		if got := other.numbers(); len(got) != 3 {
			t.Errorf("the other listener got %v", got)
		}
		if !strings.Contains(logged.String(), "count=2") {
			t.Errorf("log: %s", &logged)
		}
		close(proceed)
		synctest.Wait()
		if got := blocked.numbers(); !slices.Equal(got, []int{0}) {
			t.Errorf("after Close the blocked listener got %v", got)
		}
	})
}

// TestCloseWaitsForListenToAll checks that Close waits for a slow listener that must have all events,
// but not for one that has stopped working.
func TestCloseWaitsForListenToAll(t *testing.T) {
	for _, blocksAt := range []int{-1, 10} {
		synctest.Test(t, func(t *testing.T) {
			b := logging(slog.New(slog.DiscardHandler))
			var slow recorder
			proceed := make(chan bool)
			b.ListenToAll(func(e event) {
				time.Sleep(time.Second)
				if e.number == blocksAt {
					<-proceed
				}
				slow.listen(e)
			})
			for n := range 60 {
				b.Send(event{number: n})
			}
			start := time.Now()
			b.Close()
			want, wantTook := 60, time.Minute
			if blocksAt >= 0 {
				want, wantTook = blocksAt, 20*time.Second
			}
			took := time.Since(start)
			if got := len(slow.numbers()); got != want || took > wantTook {
				t.Errorf("the listener got %d events, want %d; Close took %v", got, want, took)
			}
			close(proceed)
		})
	}
}

func TestStopDropsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var r recorder
		stop := func() {}
		stop = b.Listen(func(e event) { r.listen(e); stop() })
		for n := range 3 {
			b.Send(event{number: n})
		}
		synctest.Wait()
		if got := r.numbers(); !slices.Equal(got, []int{0}) {
			t.Errorf("%v", got)
		}
	})
}

func TestListenOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var r recorder
		var l *Listener[event]
		l = b.ListenOnDemand(func(e event) {
			r.listen(e)
			l.Deliver() // does nothing, because a call is running
			if e.number == 1 {
				runtime.Goexit()
			}
		})
		for n := range 4 {
			b.Send(event{number: n})
		}
		time.Sleep(2 * pause)
		if got := r.numbers(); got != nil {
			t.Errorf("%v before Deliver", got)
		}
		go l.Deliver() // the listener ends this goroutine
		synctest.Wait()
		if got := r.numbers(); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("%v after the first Deliver", got)
		}
		b.Close()
		l.Deliver()
		if got := r.numbers(); !slices.Equal(got, []int{0, 1, 2, 3}) {
			t.Errorf("%v after Close and the second Deliver", got)
		}
	})
}

func TestManyListenersComeAndGo(t *testing.T) {
	b := discarding()
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for n := range 1000 {
				b.Send(event{number: n})
			}
		})
	}
	for range 4 {
		senders.Go(func() {
			for range 100 {
				var r recorder
				stop := b.Listen(r.listen)
				b.Send(event{number: 1})
				stop()
			}
		})
	}
	senders.Wait()
	if b.Active() {
		t.Error("a listener has stayed")
	}
	b.Close()
}

func TestSendWithoutListenersAllocatesNothing(t *testing.T) {
	b := discarding()
	if n := testing.AllocsPerRun(100, func() {
		if b.Active() {
			b.Send(event{number: 1})
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestListenToAllMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var slow recorder
		b.ListenToAll(func(e event) { time.Sleep(time.Millisecond); slow.listen(e) })
		began := time.Now()
		const events = 3 * maxEvents
		for n := range events {
			b.Send(event{number: n})
		}
		// The sender waited until all events had been taken, except those that fit into the queue
		// and those of the last pause.
		if took := time.Since(began); took < (events-maxEvents-2)*time.Millisecond {
			t.Errorf("sending took %v, so the sender did not wait", took)
		}
		b.Send(event{number: events, body: make([]byte, maxBytes+1)})
		b.Close()
		got := slow.numbers()
		if len(got) != events+1 || !slices.IsSorted(got) || got[0] != 0 || got[events] != events {
			t.Errorf("%d of %d events arrived, sorted: %v", len(got), events+1, slices.IsSorted(got))
		}
	})
}

// TestStopReleasesSender checks that neither stop nor Close leaves a sender waiting for a function
// that never returns.
func TestStopReleasesSender(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := discarding()
			end := make(chan bool)
			stop := b.ListenToAll(func(event) { <-end })
			sent := 0
			go func() {
				for range 2 * maxEvents {
					b.Send(event{})
					sent++
				}
			}()
			synctest.Wait()
			if sent > maxEvents+1 {
				t.Errorf("%d events were sent to a queue of %d", sent, maxEvents)
			}
			if closes {
				b.Close()
			} else {
				stop()
			}
			synctest.Wait()
			if sent != 2*maxEvents {
				t.Errorf("the sender still waits after %d events", sent)
			}
			close(end)
		})
	}
}

func TestPanicOfListenToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		count := 0
		b.ListenToAll(func(event) { count++; panic("listener") })
		for range 2 * maxEvents {
			b.Send(event{})
		}
		b.Close()
		if count != 2*maxEvents {
			t.Errorf("called %d times, want %d", count, 2*maxEvents)
		}
	})
}

// TestSlowListenerDoesNotDelayOthers has a complete listener that is blocked. Each event still reaches
// all listeners that are registered after it, before its sender waits.
func TestSlowListenerDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var slow, complete, lossy recorder
		proceed := make(chan bool)
		b.ListenToAll(func(e event) {
			<-proceed
			slow.listen(e)
		})
		b.ListenToAll(complete.listen)
		b.Listen(lossy.listen)
		const senders = 3
		for s := range senders {
			go func() {
				for n := s; n < 2*maxEvents; n += senders {
					b.Send(event{number: n})
				}
			}()
		}
		time.Sleep(time.Second)
		// The blocked listener holds one event, has a full queue, and at most one event of each sender.
		// The lossy listener loses the last ones if it begins only after its own queue is full.
		for name, tc := range map[string]struct {
			r     *recorder
			least int
		}{"complete": {&complete, 2 + maxEvents}, "lossy": {&lossy, maxEvents}} {
			if got := len(tc.r.numbers()); got < tc.least || got > 1+maxEvents+senders {
				t.Errorf("the %s listener got %d events, want %d to %d", name, got, tc.least, 1+maxEvents+senders)
			}
		}
		close(proceed)
		time.Sleep(time.Second)
		if got, want := slow.numbers(), complete.numbers(); len(got) != 2*maxEvents || len(want) != 2*maxEvents {
			t.Errorf("the listeners got %d and %d events, want %d", len(got), len(want), 2*maxEvents)
		}
		b.Close()
	})
}

// TestSenderThatWaitsKeepsOrder has a listener whose queue is overfull. The events of a sender that
// waits must arrive before those that are sent later.
func TestSenderThatWaitsKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var slow recorder
		b.ListenToAll(func(e event) {
			time.Sleep(time.Millisecond)
			slow.listen(e)
		})
		const senders = 50
		for s := range senders {
			time.AfterFunc(time.Duration(s+1)*time.Microsecond, func() { b.Send(event{number: maxEvents + 1 + s}) })
		}
		for n := range maxEvents + 1 {
			b.Send(event{number: n})
		}
		time.Sleep(10 * time.Second)
		b.Close()
		if got := slow.numbers(); len(got) != maxEvents+1+senders || !slices.IsSorted(got) {
			t.Errorf("%d events arrived, sorted: %t", len(got), slices.IsSorted(got))
		}
	})
}

// TestCloseDrainsEachListenToAll closes a Broadcaster with a complete listener that is blocked and
// one that is slow, which must get all of its events, and those of senders that wait.
func TestCloseDrainsEachListenToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discarding()
		var slow recorder
		proceed := make(chan bool)
		b.ListenToAll(func(event) { <-proceed })
		b.ListenToAll(func(e event) {
			time.Sleep(time.Second)
			slow.listen(e)
		})
		for n := range 60 {
			b.Send(event{number: n})
		}
		go b.Send(event{number: 60, body: make([]byte, maxBytes+1)}) // waits for both
		synctest.Wait()
		began := time.Now()
		b.Close()
		if got := slow.numbers(); len(got) != 61 || time.Since(began) != 61*time.Second {
			t.Errorf("the slow listener got %d events in %v", len(got), time.Since(began))
		}
		close(proceed)
	})
}
