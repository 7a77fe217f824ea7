// Package collectors tests collectors of Colly, their callbacks and their contexts.
package collectors

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
