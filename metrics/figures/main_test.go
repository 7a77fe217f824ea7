package figures

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
