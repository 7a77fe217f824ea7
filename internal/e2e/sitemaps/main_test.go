// Package sitemaps tests crawls that read sitemaps.
package sitemaps

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
