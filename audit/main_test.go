package audit_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests. The spiders that tests start also begin here, because they are this test
// binary.
func TestMain(m *testing.M) {
	if order := os.Getenv(spiderVariable); order != "" {
		os.Exit(obey(order))
	}
	goleak.VerifyTestMain(m)
}
