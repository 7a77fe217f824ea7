// Package operators tests the options for operators of crawlers, such as MaxPagesPerHost and
// CrawlHours.
package operators

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
