package robotstest

import (
	"sync/atomic"
	"time"
)

// nap is the time between two measurements of a lateness.
const nap = 20 * time.Millisecond

// A lateness measures how late the machine runs the goroutines of the program. A busy machine also
// logs requests late.
type lateness struct {
	longest atomic.Int64 // in nanoseconds
	end     chan struct{}
	ended   chan struct{}
}

// measureLateness starts a measurement. The caller must stop it.
func measureLateness() *lateness {
	l := &lateness{end: make(chan struct{}), ended: make(chan struct{})}
	go l.measure()
	return l
}

func (l *lateness) measure() {
	defer close(l.ended)
	for {
		began := time.Now()
		select {
		case <-l.end:
			return
		case <-time.After(nap):
		}
		late := int64(time.Since(began) - nap)
		l.longest.Store(max(l.longest.Load(), late))
	}
}

// most returns the longest time by which a goroutine was late.
func (l *lateness) most() time.Duration { return time.Duration(l.longest.Load()) }

// stop ends the measurement, and waits for its goroutine.
func (l *lateness) stop() {
	close(l.end)
	<-l.ended
}
