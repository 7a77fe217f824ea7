package frontier_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/internal/e2e/frontiertest"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// onDisk is a frontier that survives the runs of a crawl.
type onDisk struct {
	dir string
	f   *frontier.Frontier
}

func (d *onDisk) Open(t *testing.T) urlstore.Store {
	d.f = open(t, d.dir)
	return d.f
}

// Drop closes the frontier before its plugin.
func (d *onDisk) Drop(t *testing.T) {
	if err := d.f.Close(); err != nil {
		t.Error(err)
	}
}

// TestPrograms runs programs that are stopped and continued.
func TestPrograms(t *testing.T) {
	frontiertest.Run(t, func(t *testing.T) frontiertest.Store { return &onDisk{dir: t.TempDir()} })
}
