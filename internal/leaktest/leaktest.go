// Package leaktest finds goroutines that tests leave behind. It has no dependencies, because go mod tidy
// of a user's program also reads the tests of the packages that the program imports.
package leaktest

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// Main is the TestMain of a package. It runs the tests, and fails if they leave a goroutine behind.
func Main(m *testing.M) {
	before := Count()
	status := m.Run()
	if status == 0 && Leaks(before) {
		status = 1
	}
	os.Exit(status)
}

// Count returns the number of goroutines. One of them receives the signals of the process: package
// os/signal starts it when it is first needed, and never ends it.
func Count() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	return runtime.NumGoroutine()
}

// Leaks waits until there are at most n goroutines. If there are still more after some seconds, it prints
// all of them and reports true.
func Leaks(n int) bool {
	for wait := time.Millisecond; runtime.NumGoroutine() > n; wait *= 2 {
		if wait > 4*time.Second {
			os.Stderr.WriteString("goroutines are left behind:\n")
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return true
		}
		time.Sleep(wait)
	}
	return false
}
