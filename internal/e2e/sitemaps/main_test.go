// Package sitemaps tests crawls that read sitemaps.
package sitemaps

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
