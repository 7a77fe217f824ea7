package leaktest

import (
	"runtime"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// TestLeaks checks that a goroutine that stays is found, and that one that ends is waited for.
func TestLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	stay := make(chan bool)
	go func() { <-stay }()
	if !Leaks(before) {
		t.Error("the goroutine is not found")
	}
	time.AfterFunc(10*time.Millisecond, func() { close(stay) })
	if Leaks(before) {
		t.Error("a goroutine that has ended is found")
	}
}
