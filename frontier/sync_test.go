package frontier

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A failingDisk is a file system on which one sync fails.
type failingDisk struct {
	vfs.FS
	left   atomic.Int64 // how many syncs succeed before the one that fails
	failed atomic.Bool
}

// sync returns the error of a sync.
func (d *failingDisk) sync() error {
	if d.left.Add(-1) != -1 {
		return nil
	}
	d.failed.Store(true)
	return syscall.EIO
}

func (d *failingDisk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	return &failingFile{File: f, disk: d}, err
}

func (d *failingDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return &failingFile{File: f, disk: d}, err
}

type failingFile struct {
	vfs.File
	disk *failingDisk
}

func (f *failingFile) Sync() error     { return errors.Join(f.disk.sync(), f.File.Sync()) }
func (f *failingFile) SyncData() error { return errors.Join(f.disk.sync(), f.File.SyncData()) }

// TestFailedSync opens a new folder and an old one on a disk on which one sync after the other fails.
func TestFailedSync(t *testing.T) {
	s, err := configure([]Option{Logger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	for i := range int64(60) {
		disk := &failingDisk{FS: vfs.Default}
		disk.left.Store(i)
		if i%20 == 0 {
			path = t.TempDir() // the first sync of a new folder fails, or a later one of an old folder
		}
		f, err := open(path, s, disk)
		if err != nil {
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("sync %d: %v", i, err)
			}
			continue
		}
		_, err = f.Add(&urlstore.Page{URL: "http://a.test/"})
		err = errors.Join(err, f.Close())
		if err != nil && !disk.failed.Load() {
			t.Errorf("sync %d: %v", i, err)
		}
	}
}
