package frontier

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A smallDisk is a file system with little space.
type smallDisk struct {
	vfs.FS

	mu    sync.Mutex
	free  int64
	sizes map[string]int64
}

func newSmallDisk(free int64) *smallDisk {
	return &smallDisk{FS: vfs.Default, free: free, sizes: make(map[string]int64)}
}

// take uses space for a file. It returns how many of the bytes there is space for.
func (d *smallDisk) take(name string, bytes int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := max(min(int64(bytes), d.free), 0)
	d.free -= n
	d.sizes[name] += n
	return int(n)
}

func (d *smallDisk) grow(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free += bytes
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return vfs.DiskUsage{AvailBytes: uint64(max(d.free, 0))}, nil
}

func (d *smallDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return &smallFile{File: f, disk: d, name: name}, err
}

func (d *smallDisk) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(old, name, category)
	return &smallFile{File: f, disk: d, name: name}, err
}

func (d *smallDisk) Remove(name string) error {
	err := d.FS.Remove(name)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.free += d.sizes[name]
		delete(d.sizes, name)
	}
	return err
}

type smallFile struct {
	vfs.File
	disk *smallDisk
	name string
}

func (f *smallFile) Write(p []byte) (int, error) {
	granted := f.disk.take(f.name, len(p))
	n, err := f.File.Write(p[:granted])
	if err == nil && granted < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *smallFile) Preallocate(_, length int64) error {
	if filepath.Base(f.name) == reserveFile {
		f.disk.take(f.name, int(length))
	}
	return nil
}

func openOn(t *testing.T, dir string, disk *smallDisk) *Frontier {
	t.Helper()
	path, err := prepareFolder(dir, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	s, err := configure([]Option{Logger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	f, err := open(path, s, disk)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fill adds pages of many hosts until the disk is full, and returns the number of those that were
// recorded.
func fill(t *testing.T, f *Frontier) int {
	t.Helper()
	random := make([]byte, 10_000)
	for n := range 100_000 {
		for i := range random {
			random[i] = byte(n * i * (n + i) >> 7)
		}
		p := &urlstore.Page{URL: fmt.Sprintf("http://host%d.test/", n), Request: random}
		added, err := f.Add(p)
		switch {
		case err == nil && added:
			time.Sleep(100 * time.Microsecond)
		case !added && errors.Is(err, ErrFull):
			return n
		default:
			t.Fatalf("page %d: Add = %v, %v", n, added, err)
		}
	}
	t.Fatal("the disk is never full")
	return 0
}

func TestFullDisk(t *testing.T) {
	for _, regained := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			disk := newSmallDisk(50 << 20)
			f := openOn(t, dir, disk)
			recorded := fill(t, f)
			if recorded < 1000 {
				t.Errorf("the disk is full after %d pages", recorded)
			}
			const ended = 20
			for range ended {
				p, err := f.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := f.End(p, urlstore.Done); err != nil {
					t.Fatal(err)
				}
				if added, err := f.Add(&urlstore.Page{URL: p.URL}); added || err != nil {
					t.Errorf("Add of a page that is done = %v, %v", added, err)
				}
			}
			if s := f.Stats(); s.Unrecorded != 1+ended || s.Error == "" || s.Done != ended || s.Waiting != recorded-ended {
				t.Errorf("%+v, want %d pages", s, recorded)
			}
			wantDone := 0
			if regained {
				disk.grow(100 << 20)
				time.Sleep(3 * time.Second)
				if added, err := f.Add(&urlstore.Page{URL: "http://new.test/"}); !added || err != nil {
					t.Errorf("Add = %v, %v, although there is space again", added, err)
				}
				if s := f.Stats(); s.Unrecorded != 1 {
					t.Errorf("%d pages are not recorded, want the one that Add has rejected", s.Unrecorded)
				}
				recorded++
				wantDone = ended
			}
			if err := f.Close(); regained != (err == nil) || !regained && !errors.Is(err, ErrFull) {
				t.Errorf("Close: %v", err)
			}
			f = openOn(t, dir, newSmallDisk(1<<30))
			if s := f.Stats(); s.Waiting+s.Done != recorded || s.Done != wantDone {
				t.Errorf("after a restart %+v, want %d pages, %d of them done", s, recorded, wantDone)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFullDiskAtOpen(t *testing.T) {
	path, err := prepareFolder(t.TempDir(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	s, err := configure(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, free := range []int64{0, 10_000, 1 << 20, neededBytes - 1} {
		if f, err := open(path, s, newSmallDisk(free)); f != nil || !errors.Is(err, ErrFull) {
			t.Errorf("%d bytes free: %v, %v, want ErrFull", free, f, err)
		}
	}
	f, err := open(path, s, newSmallDisk(2*neededBytes))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
