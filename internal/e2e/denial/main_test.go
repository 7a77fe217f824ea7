// Package denial tests what happens to pages that robots.txt does not allow.
package denial

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
