package robotstest

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

// Main may be called by the TestMain of a package. It runs the tests and exits. The tests fail if they leave
// a goroutine behind, for example because a plugin was not closed.
func Main(m *testing.M) { leaktest.Main(m) }
