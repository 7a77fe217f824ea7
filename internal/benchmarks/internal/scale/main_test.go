package scale

import (
	"flag"
	"runtime/debug"
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

// TestMain lets the heap grow more than usual, up to 7 GB, because the garbage collector would
// otherwise take half of the time. Under the race detector, the simulations have fewer hosts.
func TestMain(m *testing.M) {
	flag.Parse()
	if underRace {
		*hosts = min(*hosts, 2000)
	}
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(7 << 30)
	leaktest.Main(m)
}
