// Package frontierprograms runs the programs of internal/e2e/frontiertest with a frontier on disk.
package frontierprograms

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/internal/e2e/frontiertest"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onDisk is a frontier that survives the runs of a crawl.
type onDisk struct {
	dir string
	f   *frontier.Frontier
}

func (d *onDisk) Open(t *testing.T) urlstore.Store {
	f, err := frontier.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	d.f = f
	return f
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
