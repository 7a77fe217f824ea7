// Package politeness tests that crawls keep the delays of hosts.
package politeness

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
