// Package clients tests http.Client and other programs that use a Plugin without a collector.
package clients

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
