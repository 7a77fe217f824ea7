// Package frontier tests crawls that are stopped and continued, and conditional requests.
package frontier

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
