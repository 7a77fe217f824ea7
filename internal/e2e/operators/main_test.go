// Package operators tests the options for operators of crawlers, such as MaxPagesPerHost and
// CrawlHours.
package operators

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
