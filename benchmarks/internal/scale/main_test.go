package scale

import (
	"flag"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

// TestMain keeps the garbage collector from taking half of the time, within 8 GB, and makes less of
// everything for the race detector.
func TestMain(m *testing.M) {
	flag.Parse()
	if underRace {
		*hosts = min(*hosts, 2000)
	}
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(7 << 30)
	goleak.VerifyTestMain(m)
}
