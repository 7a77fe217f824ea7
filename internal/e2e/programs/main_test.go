// Package programs tests whole programs, which must behave with the plugin as without it.
package programs

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
