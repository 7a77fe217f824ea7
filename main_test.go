package collyrobots

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// underRace tells that the race detector is at work.
var underRace bool
