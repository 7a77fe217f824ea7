// Package politeness tests that crawls keep the delays of hosts.
package politeness

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
