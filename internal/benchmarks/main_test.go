//go:build unix

package benchmarks

import (
	"fmt"
	"os"
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

// TestMain runs the tests. In a process that a test has started, it obeys the orders of that test instead.
func TestMain(m *testing.M) {
	if text := os.Getenv(orderVariable); text != "" {
		if err := obeyOrders(text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	leaktest.Main(m)
}
