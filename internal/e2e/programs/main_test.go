// Package programs tests whole programs, which must behave with the plugin as without it.
package programs

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
