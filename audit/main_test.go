package audit_test

import (
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain runs the tests. The spiders that tests start also begin here, because they are this test
// binary.
func TestMain(m *testing.M) {
	if order := os.Getenv(spiderVariable); order != "" {
		os.Exit(obey(order))
	}
	os.Exit(run(m))
}

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
