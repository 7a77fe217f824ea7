// Package signals tests what sites say besides robots.txt, and the signatures of requests.
package signals

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
