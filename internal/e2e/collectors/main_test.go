// Package collectors tests collectors of Colly, their callbacks and their contexts.
package collectors

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
