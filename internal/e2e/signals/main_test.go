// Package signals tests what sites say besides robots.txt, and the signatures of requests.
package signals

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
