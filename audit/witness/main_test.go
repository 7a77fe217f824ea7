package witness_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests. The crawls that TestTwoProcesses starts also begin here.
func TestMain(m *testing.M) {
	if os.Getenv(crawlVariable) != "" {
		os.Exit(crawlOnce())
	}
	goleak.VerifyTestMain(m)
}
