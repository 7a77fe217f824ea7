package frontier

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A space watches whether there is space on the disk, and reserves a part of it, because the engine
// cannot continue after a failed write to its log. When the disk is full, the reserved part is
// released, the write that has failed is repeated, and no change is made until there is enough
// space again.
type space struct {
	dir    string
	system fileSystem
	log    *slog.Logger

	full   atomic.Bool
	open   atomic.Bool // the folder is open, so writes wait until there is space
	failed atomic.Pointer[error]

	// mu protects looked.
	mu     sync.Mutex
	looked time.Time // when the disk was last found full
}

const (
	reserveFile   = "reserve"
	reserveBytes  = 2 * memtableBytes
	neededBytes   = 2 * reserveBytes // free space at which changes are made again
	lookInterval  = time.Second
	spaceInterval = 200 * time.Millisecond
)

func newSpace(dir string, system fileSystem, log *slog.Logger) *space {
	return &space{dir: dir, system: system, log: log}
}

// require returns an error if there is too little space. It is called before the folder is opened.
func (s *space) require() error {
	_ = s.system.Remove(s.reserved()) // exists if an earlier process was killed
	if s.available() < neededBytes {
		return fmt.Errorf("%w: less than %d MB are free", ErrFull, neededBytes>>20)
	}
	return nil
}

// begin reserves the space, after the folder was opened.
func (s *space) begin() error {
	s.open.Store(true)
	return s.reserve()
}

// available returns the free bytes, or the largest number if the system does not say.
func (s *space) available() uint64 {
	usage, err := s.system.GetDiskUsage(s.dir)
	if err != nil {
		return 1<<64 - 1
	}
	return usage.AvailBytes
}

// reserve creates the file that reserves space. It has no effect where the file system does not
// reserve the space of a file before it is written.
func (s *space) reserve() error {
	f, err := s.system.Create(s.reserved(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_ = f.Preallocate(0, reserveBytes)
	return errors.Join(chmod(s.reserved()), f.Close())
}

func (s *space) reserved() string { return filepath.Join(s.dir, reserveFile) }

// exhausted is called when a write has failed because the disk is full. The write is repeated when
// exhausted returns. All other writes wait until then.
func (s *space) exhausted() {
	if !s.full.Swap(true) {
		s.log.Error("disk is full, pages are no longer recorded", "error", s.dir)
	}
	s.mu.Lock()
	s.looked = time.Now()
	s.mu.Unlock()
	if err := s.system.Remove(s.reserved()); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	for s.open.Load() && s.available() < uint64(memtableBytes) {
		time.Sleep(spaceInterval)
	}
}

// check returns an error if no change can be made now. If the disk was full, it looks for space, at
// most once a second.
func (s *space) check() error {
	if err := s.failure(); err != nil || !s.full.Load() {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) < lookInterval {
		return ErrFull
	}
	s.looked = time.Now()
	if s.available() < neededBytes || s.reserve() != nil {
		return ErrFull
	}
	s.full.Store(false)
	s.log.Info("disk has space again, pages are recorded")
	return nil
}

// state is like check, but does not look for space.
func (s *space) state() error {
	if s.full.Load() {
		return ErrFull
	}
	return s.failure()
}

// fail records that the engine cannot continue.
func (s *space) fail(err error) {
	if s.failed.CompareAndSwap(nil, &err) {
		s.log.Error("pages are no longer recorded", "error", err.Error())
	}
}

// failure returns why the engine cannot continue, or nil if it can.
func (s *space) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// end is called before the folder is closed.
func (s *space) end() {
	s.open.Store(false)
	_ = s.system.Remove(s.reserved())
}
