package robotsprom

import (
	"testing"

	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { robotstest.Main(m) }
