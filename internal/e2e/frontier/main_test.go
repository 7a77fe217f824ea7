// Package frontier tests crawls that are stopped and continued, and conditional requests.
package frontier

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
