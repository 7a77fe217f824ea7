package frontier

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A fileSystem has the functions of the operating system that the engine uses.
type fileSystem = vfs.FS

// system is the file system of the operating system.
var system = vfs.Default

// files are the files of the engine. They differ in three ways from those of the operating system.
// Only the owner can read them, because records contain headers with cookies. If the disk is full,
// space decides when a write is repeated. The log of changes is synced only by sync, and not when
// the engine asks for it, so the engine can write its log without waiting for the disk.
type files struct {
	vfs.FS
	lock *pebble.Lock // of the folder

	mu   sync.Mutex
	logs map[*logFile]bool // that are open for writing
}

func newFiles(system fileSystem, s *space) *files {
	return &files{FS: vfs.OnDiskFull(system, s.exhausted), logs: make(map[*logFile]bool)}
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
	return f.own(file, name)
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
	if !strings.HasSuffix(name, ".log") {
		return file, nil
	}
	l := &logFile{File: file, files: f}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs[l] = true
	return l, nil
}

func chmod(name string) error {
	err := os.Chmod(name, 0o600)
	if errors.Is(err, os.ErrNotExist) { // the files of a test are in memory
		return nil
	}
	return err
}

// sync writes the open log files to the disk.
func (f *files) sync() error {
	f.mu.Lock()
	open := make([]*logFile, 0, len(f.logs))
	for l := range f.logs {
		open = append(open, l)
	}
	f.mu.Unlock()
	var errs []error
	for _, l := range open {
		errs = append(errs, l.syncNow())
	}
	return errors.Join(errs...)
}

// A logFile is a file of the log of changes.
type logFile struct {
	vfs.File
	files *files

	mu     sync.Mutex // held while the file is synced or closed
	closed bool
}

// Sync does nothing: the changes have reached the operating system, which is enough.
func (l *logFile) Sync() error { return nil }

// SyncData does nothing, like Sync.
func (l *logFile) SyncData() error { return nil }

// SyncTo does nothing, like Sync.
func (l *logFile) SyncTo(int64) (bool, error) { return true, nil }

// syncNow writes the file to the disk. It does nothing if the file is closed.
func (l *logFile) syncNow() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	return l.File.SyncData()
}

// Close syncs the file, so that the disk never has a later log file without this one, and closes
// it.
func (l *logFile) Close() error {
	err := l.syncNow()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.files.mu.Lock()
	delete(l.files.logs, l)
	l.files.mu.Unlock()
	return errors.Join(err, l.File.Close())
}
