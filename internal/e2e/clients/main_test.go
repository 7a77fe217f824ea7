// Package clients tests http.Client and other programs that use a Plugin without a collector.
package clients

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
