package frontier

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A disk keeps records in a folder. It is the only part of the package, together with files, that
// knows the storage engine.
//
// Changes take effect at once and in order, but they reach the operating system only with flush, and
// the disk only with sync. If the process is killed, the changes after some moment are lost.
type disk struct {
	db    *pebble.DB
	files *files
}

// Sizes of the engine's parts in memory.
const (
	cacheBytes     = 32 << 20
	memtableBytes  = 16 << 20
	memtables      = 8 // that wait for the disk before a change waits
	bloomBits      = 10
	openTableFiles = 500
)

// openDisk opens the records in a folder, which it creates unless readOnly is set.
func openDisk(dir string, log *slog.Logger, readOnly bool) (*disk, error) {
	d := &disk{files: newFiles(vfs.Default)}
	options := &pebble.Options{
		FS:                          d.files,
		FormatMajorVersion:          pebble.FormatNewest,
		CacheSize:                   cacheBytes,
		MemTableSize:                memtableBytes,
		MemTableStopWritesThreshold: memtables,
		L0StopWritesThreshold:       1000,
		MaxOpenFiles:                openTableFiles,
		Logger:                      engineLog{log: log},
		ReadOnly:                    readOnly,
		ErrorIfNotExists:            readOnly,
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(bloomBits)
	}
	db, err := pebble.Open(filepath.Join(dir, "pages"), options)
	if err != nil {
		return nil, err
	}
	d.db = db
	return d, nil
}

// get returns the value of a record, or nil if there is none. The value of a record must not be
// empty.
func (d *disk) get(key []byte) ([]byte, error) {
	value, closer, err := d.db.Get(key)
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

// change returns an empty change. The caller must apply or drop it.
func (d *disk) change() change { return change{d.db.NewBatch()} }

// set writes a record. The errors of a batch in memory concern only its use.
func (c change) set(key, value []byte) { _ = c.Set(key, value, nil) }

// remove removes a record.
func (c change) remove(key []byte) { _ = c.Delete(key, nil) }

// drop releases the memory of a change that is not applied.
func (c change) drop() { _ = c.Close() }

// apply makes a change. It does not wait for the disk. The change must not be used afterwards.
func (d *disk) apply(c change) error {
	defer c.drop()
	return c.Commit(pebble.NoSync)
}

// flush writes all changes to the operating system. They survive a kill of the process.
func (d *disk) flush() error {
	return d.db.LogData(nil, pebble.Sync) // files decides that this does not wait for the disk
}

// sync writes all changes to the disk.
func (d *disk) sync() error {
	return errors.Join(d.flush(), d.files.sync())
}

// A scan reads the records whose keys begin with a prefix, in order. next must be called before the
// first one.
type scan struct {
	*pebble.Iterator
	from    []byte
	started bool
}

// scan returns a scan of the records whose keys begin with prefix, beginning with the first key that
// is not before from. The caller must close it.
func (d *disk) scan(prefix, from []byte) (*scan, error) {
	iterator, err := d.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
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

// close flushes all changes to the disk and closes the folder.
func (d *disk) close() error {
	err := d.sync()
	d.files.end()
	return errors.Join(err, d.db.Close())
}

// engineLog passes the messages of the engine on. Messages about ordinary events are dropped.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Infof(string, ...any) {}

func (l engineLog) Errorf(format string, args ...any) {
	l.log.Warn("storage engine reports a problem", "error", fmt.Sprintf(format, args...))
}

// Fatalf is called when the engine cannot continue. It must not end the process of the user: the
// failure also comes as an error of the change.
func (l engineLog) Fatalf(format string, args ...any) {
	l.log.Error("storage engine failed", "error", fmt.Sprintf(format, args...))
}
