// Package denial tests what happens to pages that robots.txt does not allow.
package compare

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
