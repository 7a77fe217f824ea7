package audit_test

import (
	"os"
	"testing"

	"github.com/collyrobots/collyrobots/robotstest"
)

// TestMain runs the tests. The spiders that tests start also begin here, because they are this test
// binary.
func TestMain(m *testing.M) {
	if order := os.Getenv(spiderVariable); order != "" {
		os.Exit(obey(order))
	}
	robotstest.Main(m)
}
