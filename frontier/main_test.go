package frontier_test

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests and returns the status. It is not 0 if the tests leave a goroutine behind.
func run(m *testing.M) int {
	before, _ := goroutines()
	status := m.Run()
	for wait := time.Millisecond; status == 0; wait *= 2 {
		n, stacks := goroutines()
		if n <= before {
			break
		}
		if wait > 4*time.Second {
			os.Stderr.Write(stacks)
			status = 1
		}
		time.Sleep(wait)
	}
	return status
}

// goroutines returns the number of goroutines and their stacks, except for those that the engine leaves
// behind if it cannot be opened.
func goroutines() (n int, stacks []byte) {
	stacks = make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte("\n\ngoroutine ")) - bytes.Count(stacks, []byte(".periodicGranter(")), stacks
}
