package frontier

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A fileSystem has the functions of the operating system that the engine uses.
type fileSystem = vfs.FS

// system is the file system of the operating system.
var system = vfs.Default

// files are the files of the engine. They differ in four ways from those of the operating system.
// Only the owner can read them, because records contain headers with cookies. If the disk is full,
// space decides when a write is repeated. The log of changes is synced only by sync, and not when
// the engine asks for it, so the engine can write its log without waiting for the disk. The
// checksums of the log and of the list of tables are known.
type files struct {
	vfs.FS
	lock *pebble.Lock // of the folder

	// mu protects summed.
	mu     sync.Mutex
	summed map[string]*summedFile // by name without the folder; those that this process has written and that exist
}

func newFiles(system fileSystem, s *space) *files {
	return &files{FS: vfs.OnDiskFull(system, s.exhausted), summed: make(map[string]*summedFile)}
}

// Create creates a file that only the owner can read.
func (f *files) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return f.own(file, name)
}

// ReuseForWrite gives an old file a new name.
func (f *files) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, category)
	if err != nil {
		return nil, err
	}
	f.forget(old)
	return f.own(file, name)
}

// Remove removes a file.
func (f *files) Remove(name string) error {
	err := f.FS.Remove(name)
	if err == nil {
		f.forget(name)
	}
	return err
}

// forget forgets the checksum of a file that no longer exists.
func (f *files) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.summed, filepath.Base(name))
}

// Lock creates the lock file.
func (f *files) Lock(name string) (io.Closer, error) {
	lock, err := f.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	return lock, chmod(name)
}

// unlock releases the lock of the folder, if it is held.
func (f *files) unlock() error {
	if f.lock == nil {
		return nil
	}
	err := f.lock.Close()
	f.lock = nil
	return err
}

// own prepares a file that was created.
func (f *files) own(file vfs.File, name string) (vfs.File, error) {
	if err := chmod(name); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if !isLog(name) && !isList(name) {
		return file, nil
	}
	l := &summedFile{File: file, lazy: isLog(name)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.summed[filepath.Base(name)] = l
	return l, nil
}

// isLog reports whether a file is a log of changes.
func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// isList reports whether a file is a list of tables.
func isList(name string) bool { return strings.HasPrefix(filepath.Base(name), "MANIFEST-") }

func chmod(name string) error {
	err := os.Chmod(name, 0o600)
	if errors.Is(err, os.ErrNotExist) { // the files of a test are in memory
		return nil
	}
	return err
}

// sync writes the open logs to the disk.
func (f *files) sync() error {
	f.mu.Lock()
	files := slices.Collect(maps.Values(f.summed))
	f.mu.Unlock()
	var errs []error
	for _, l := range files {
		if l.lazy {
			errs = append(errs, l.syncNow())
		}
	}
	return errors.Join(errs...)
}

// sums returns the checksums of the files, as far as they have reached the disk. Of the logs, it
// returns only the newest ones.
func (f *files) sums(logs int) []checksum {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lists, newest []checksum
	for name, l := range f.summed {
		sum := l.sum()
		sum.Name = name
		if l.lazy {
			newest = append(newest, sum)
		} else {
			lists = append(lists, sum)
		}
	}
	slices.SortFunc(newest, func(a, b checksum) int {
		return cmp.Or(len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name)) // they are numbered
	})
	return append(lists, newest[max(len(newest)-logs, 0):]...)
}

// A summedFile is a log of changes or a list of tables, which the engine writes from its beginning
// to its end.
type summedFile struct {
	vfs.File
	lazy bool // it is a log, which is not synced when the engine asks for it

	mu     sync.Mutex // held while the file is synced or closed
	closed bool

	// sumMu protects the fields below it.
	sumMu   sync.Mutex
	written checksum
	synced  checksum // of the part that has reached the disk
}

// Write writes to the file.
func (l *summedFile) Write(p []byte) (int, error) {
	n, err := l.File.Write(p)
	l.sumMu.Lock()
	defer l.sumMu.Unlock()
	l.written.add(p[:n])
	return n, err
}

// sum returns the checksum of the part that has reached the disk.
func (l *summedFile) sum() checksum {
	l.sumMu.Lock()
	defer l.sumMu.Unlock()
	return l.synced
}

// Sync writes a list to the disk. It does nothing for a log: the changes have reached the operating
// system, which is enough.
func (l *summedFile) Sync() error {
	if l.lazy {
		return nil
	}
	return l.syncNow()
}

// SyncData is like Sync.
func (l *summedFile) SyncData() error { return l.Sync() }

// SyncTo is like Sync.
func (l *summedFile) SyncTo(int64) (bool, error) { return true, l.Sync() }

// syncNow writes the file to the disk. It does nothing if the file is closed.
func (l *summedFile) syncNow() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.sumMu.Lock()
	written := l.written
	l.sumMu.Unlock()
	err := l.File.SyncData()
	if err != nil {
		return err
	}
	l.sumMu.Lock()
	defer l.sumMu.Unlock()
	l.synced = written
	return nil
}

// Close syncs the file, so that the disk never has a later log without this one, and closes it.
func (l *summedFile) Close() error {
	err := l.syncNow()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return errors.Join(err, l.File.Close())
}
