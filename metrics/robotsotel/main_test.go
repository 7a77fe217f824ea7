package robotsotel

import (
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests and returns the status. It is not 0 if the tests leave a goroutine behind.
func run(m *testing.M) int {
	before := runtime.NumGoroutine()
	status := m.Run()
	for wait := time.Millisecond; status == 0 && runtime.NumGoroutine() > before; wait *= 2 {
		if wait > 4*time.Second {
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			status = 1
		}
		time.Sleep(wait)
	}
	return status
}
