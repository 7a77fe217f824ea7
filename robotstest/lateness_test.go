package robotstest

import (
	"testing"
	"time"
)

// TestTolerated checks which gaps Verify accepts on the loopback interface, without and with a busy
// machine.
func TestTolerated(t *testing.T) {
	v := &verifier{late: new(lateness)}
	for late, want := range map[time.Duration]time.Duration{
		0:                      800 * time.Millisecond,
		100 * time.Millisecond: 400 * time.Millisecond,
		time.Second:            0,
	} {
		v.late.longest.Store(int64(late))
		if got := v.tolerated(time.Second); got != want {
			t.Errorf("%v late: gaps from %v on are accepted, want %v", late, got, want)
		}
	}
}
