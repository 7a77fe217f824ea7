package frontier

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// A disk keeps records in a folder. It is, together with files and space, the only part of the
// package that knows the storage engine.
//
// Changes take effect at once and in order, but they reach the operating system only with flush,
// and the disk only with sync. If the process is killed, the changes after some moment are lost.
//
// Only flush, sync and peek may be called at the same time as other methods.
type disk struct {
	dir    string // the folder of the engine
	db     *pebble.DB
	files  *files
	space  *space
	access sync.RWMutex // held by peek while it reads, and by close
	closed bool

	// backlog has the changes that wait until there is space again. It is nil if there are none.
	backlog *pebble.Batch
	later   int // the number of changes in backlog
}

// pagesFolder is the folder of the engine in the folder of a Frontier.
const pagesFolder = "pages"

// Sizes of the parts of the engine in memory. The cache includes the memtables.
const (
	cacheBytes    = 64 << 20
	memtableBytes = 8 << 20
	memtables     = 4 // that wait for the disk before a change waits
	bloomBits     = 10
	openTables    = 200
)

// openDisk opens the records in a folder. It creates them if there are none.
func openDisk(dir string, system fileSystem, log *slog.Logger) (*disk, error) {
	dir = filepath.Join(dir, pagesFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	space := newSpace(dir, system, log)
	files := newFiles(system, space)
	lock, err := pebble.LockDirectory(dir, files)
	if err != nil {
		return nil, lockError(err)
	}
	files.lock = lock
	d := &disk{dir: dir, files: files, space: space}
	if err := d.begin(log); err != nil {
		return nil, errors.Join(err, files.unlock())
	}
	return d, nil
}

// begin opens the engine in the folder.
func (d *disk) begin(log *slog.Logger) error {
	if err := d.space.require(); err != nil {
		return err
	}
	if err := d.check(log); err != nil {
		return err
	}
	if err := d.start(log); err != nil {
		return err
	}
	if err := d.space.begin(); err != nil {
		d.space.end()
		return errors.Join(err, d.db.Close())
	}
	return nil
}

// start opens the engine for reading and writing.
func (d *disk) start(log *slog.Logger) error {
	options := d.options(log)
	if tables, _ := filepath.Glob(filepath.Join(d.dir, "*.sst")); len(tables) > 0 {
		options.ErrorIfNotExists = true // the engine would remove the tables
	}
	if err := d.removeSettings(); err != nil {
		return err
	}
	db, err := openEngine(d.dir, options)
	if err != nil {
		return openError(err)
	}
	d.db = db
	return nil
}

// removeSettings removes the files with the settings of the engine. It writes them whenever it is
// opened. It does not need the old ones, but would open no folder in which they are damaged.
func (d *disk) removeSettings() error {
	names, err := filepath.Glob(filepath.Join(d.dir, "OPTIONS-*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// openEngine opens the engine. The engine panics after some errors of the file system, which
// openEngine returns.
func openEngine(dir string, options *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("storage engine failed: %w", v)
		default:
			err = fmt.Errorf("storage engine failed: %v", v)
		}
	}()
	return pebble.Open(dir, options)
}

// lockError returns the error of Open if the lock of a folder could not be taken.
func lockError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return err // the lock file could not be created
	}
	return fmt.Errorf("%w (%w)", ErrInUse, err)
}

// openError returns the error of Open if the engine could not be opened. If the cause is not the
// operating system, the files are damaged.
func openError(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) && number != syscall.ENOENT {
		return err
	}
	if strings.Contains(err.Error(), "unknown format major version") { // the engine has no type for it
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return fmt.Errorf("%w: %w; %s", ErrDamaged, err, remedy)
}

// isDamage reports whether the engine could not read a file because it is damaged.
func isDamage(err error) bool { return pebble.IsCorruptionError(err) }

func (d *disk) options(log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS:                          d.files,
		Lock:                        d.files.lock,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		CacheSize:                   cacheBytes,
		MemTableSize:                memtableBytes,
		MemTableStopWritesThreshold: memtables,
		L0StopWritesThreshold:       1000,
		MaxOpenFiles:                openTables,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		Logger:                      engineLog{log: log, space: d.space},
	}
	o.Experimental.FileCacheShards = 1
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	o.EventListener = &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			log.Error("a file of the frontier is damaged", "error", info.String())
		},
	}
	return o
}

// get returns the value of a record, or nil if there is none. The value of a record must not be
// empty.
func (d *disk) get(key []byte) ([]byte, error) {
	if d.backlog != nil {
		return valueOf(d.backlog, key)
	}
	return valueOf(d.db, key)
}

// peek is like get, but it does not know the changes that wait until there is space again, and it
// returns nil if the record cannot be read.
func (d *disk) peek(key []byte) []byte {
	d.access.RLock()
	defer d.access.RUnlock()
	if d.closed {
		return nil
	}
	value, err := valueOf(d.db, key)
	if err != nil {
		return nil
	}
	return value
}

// valueOf returns the value of a record, or nil if there is none.
func valueOf(from pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value = append(make([]byte, 0, len(value)), value...)
	return value, closer.Close()
}

// A change is a set of records that are written and removed together.
type change struct{ *pebble.Batch }

// change returns an empty change. The caller must pass it to apply or applyLater.
func (d *disk) change() change { return change{d.db.NewBatch()} }

// set writes a record. A batch in memory returns errors only if it is used incorrectly.
func (c change) set(key, value []byte) { _ = c.Set(key, value, nil) }

// remove removes a record.
func (c change) remove(key []byte) { _ = c.Delete(key, nil) }

// apply makes a change. It does not wait for the disk. If the disk is full, it returns an error and
// drops the change.
func (d *disk) apply(c change) error {
	err := d.resume()
	if err == nil {
		err = d.commit(c.Batch)
	}
	return errors.Join(err, c.Close())
}

// applyLater is like apply, but if the disk is full, it keeps the change in memory until there is
// space again. It reports whether the change was recorded.
func (d *disk) applyLater(c change) (recorded bool, err error) {
	if d.resume() == nil {
		err := d.commit(c.Batch)
		if err == nil {
			return true, c.Close()
		}
	}
	if d.backlog == nil {
		d.backlog = d.db.NewIndexedBatch()
	}
	err = d.backlog.Apply(c.Batch, nil)
	d.later++
	return false, errors.Join(err, c.Close())
}

// resume returns nil if changes can be made. If the disk was full and there is space again, resume
// records the changes that waited.
func (d *disk) resume() error {
	if err := d.space.check(); err != nil || d.backlog == nil {
		return err
	}
	if err := d.commit(d.backlog); err != nil {
		return err
	}
	err := d.backlog.Close()
	d.backlog = nil
	d.later = 0
	return err
}

// commit makes a change. If the engine cannot write, it panics or reports a fatal error, and no
// further change can be made.
func (d *disk) commit(b *pebble.Batch) (err error) {
	defer func() {
		if v := recover(); v != nil {
			d.space.fail(fmt.Errorf("storage engine failed: %v", v))
			err = d.space.check()
		}
	}()
	if err := b.Commit(pebble.NoSync); err != nil {
		return err
	}
	return d.space.failure()
}

// flush writes all changes to the operating system, unless the disk is full.
func (d *disk) flush() error {
	if err := d.space.state(); err != nil {
		return err
	}
	return d.db.LogData(nil, pebble.Sync) // logFile decides that this does not wait for the disk
}

// sync writes all changes to the disk, unless the disk is full.
func (d *disk) sync() error {
	if err := d.flush(); err != nil {
		return err
	}
	return d.files.sync()
}

// A scan reads the records whose keys begin with a prefix, in order. next must be called before the
// first one.
type scan struct {
	*pebble.Iterator
	from    []byte
	started bool
}

// scan returns a scan of the records whose keys begin with prefix, beginning with the first key
// that is not before from. The caller must close it.
func (d *disk) scan(prefix, from []byte) (*scan, error) {
	var reader pebble.Reader = d.db
	if d.backlog != nil {
		reader = d.backlog
	}
	iterator, err := reader.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, err
	}
	return &scan{Iterator: iterator, from: from}, nil
}

// next advances to the next record, and reports false if there is none.
func (s *scan) next() bool {
	if s.started {
		return s.Next()
	}
	s.started = true
	return s.SeekGE(s.from)
}

// after returns the first key that is after all keys that begin with prefix.
func after(prefix []byte) []byte {
	b := append([]byte{}, prefix...)
	for i := len(b) - 1; i >= 0; i-- {
		b[i]++
		if b[i] != 0 {
			return b[:i+1]
		}
	}
	return nil // no key is after them
}

// record records the checksums of the files.
func (d *disk) record() error { return checksums{Files: d.files.sums(d.logs())}.write(d.dir) }

// logs returns the number of logs that have changes which are in no table.
func (d *disk) logs() int { return int(d.db.Metrics().WAL.Files) }

// close writes all changes to the disk and closes the folder.
func (d *disk) close() error {
	err := d.resume()
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		return errors.Join(err, d.abandon())
	}
	logs := d.logs()
	err = d.end()
	if err == nil {
		err = checksums{Closed: true, Files: d.files.sums(logs)}.write(d.dir)
	}
	return errors.Join(err, d.files.unlock())
}

// abandon closes the folder, although changes may not be written.
func (d *disk) abandon() error { return errors.Join(d.end(), d.files.unlock()) }

// end closes the engine.
func (d *disk) end() (err error) {
	d.space.end()
	if d.backlog != nil {
		err = d.backlog.Close()
	}
	d.access.Lock()
	defer d.access.Unlock()
	d.closed = true
	return errors.Join(err, d.db.Close())
}

// engineLog passes the messages of the engine on. Messages about ordinary events are dropped.
type engineLog struct {
	log   *slog.Logger
	space *space
}

func (l engineLog) Infof(string, ...any) {}

func (l engineLog) Errorf(format string, args ...any) {
	l.log.Warn("storage engine reports a problem", "error", fmt.Sprintf(format, args...))
}

// Fatalf is called when the engine cannot continue. It must not end the process of the user.
func (l engineLog) Fatalf(format string, args ...any) {
	l.space.fail(fmt.Errorf("storage engine failed: "+format, args...))
}
