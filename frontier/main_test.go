package frontier_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests. The processes of TestKill also begin here, because they are the test
// binary itself.
func TestMain(m *testing.M) {
	if job := os.Getenv(crawlerVariable); job != "" {
		if err := crawl(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The engine leaves this goroutine behind if it cannot be opened.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}
