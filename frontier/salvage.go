package frontier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// A salvage copies the records of a damaged folder of the engine to a new one, as far as they can
// be read. The engine itself does not open a folder if a file is missing or too short.
//
// The files have several versions of a record. The newest has the highest sequence number. If two
// have the same number, the one in the later file is the newest.
type salvage struct {
	db      *pebble.DB // the new folder
	options sstable.ReaderOptions
	log     *slog.Logger
	failed  error // the first error of writing to db
}

// salvageMark is the first byte of keys that exist only during a salvage. The rest is the key of a
// record, and the value is the sequence number of its newest version so far.
const salvageMark = 'z'

// salvage replaces the damaged folder of the engine by a new one with the records that can be read.
// The damaged folder stays beside it under another name.
func (d *disk) salvage(dir string, log *slog.Logger) error {
	log.Error("files of the frontier are damaged, the records that can be read are copied", "error", dir)
	next := dir + salvagedSuffix
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	options := d.options(log)
	options.Lock = nil
	if err := salvageInto(next, dir, options, log); err != nil {
		return err
	}
	kept, err := unusedName(dir + ".damaged")
	if err != nil {
		return err
	}
	if err := d.replace(dir, next, kept); err != nil {
		return err
	}
	log.Error("the frontier continues with the records that could be read, the damaged files remain", "error", kept)
	return nil
}

// salvagedSuffix is at the end of the name of the new folder until it replaces the damaged one.
const salvagedSuffix = ".salvaged"

// replace renames the folder dir to old and then next to dir.
func (d *disk) replace(dir, next, old string) error {
	if err := d.files.unlock(); err != nil {
		return err
	}
	err := os.Rename(dir, old)
	if err == nil {
		err = os.Rename(next, dir)
	}
	if err != nil {
		return err
	}
	lock, err := pebble.LockDirectory(dir, d.files)
	if err != nil {
		return lockError(err)
	}
	d.files.lock = lock
	return nil
}

// finishSalvage ends a call of replace that was interrupted between its two steps.
func finishSalvage(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	err := os.Rename(dir+salvagedSuffix, dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// unusedName returns the first of path-1, path-2 and so on that does not exist.
func unusedName(path string) (string, error) {
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s-%d", path, i)
		_, err := os.Lstat(name)
		if errors.Is(err, os.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// salvageInto copies the records in the folder from to the new folder to.
func salvageInto(to, from string, options *pebble.Options, log *slog.Logger) error {
	options.EnsureDefaults()
	db, err := pebble.Open(to, options)
	if err != nil {
		return err
	}
	s := &salvage{db: db, options: options.MakeReaderOptions(), log: log}
	tables, err := filepath.Glob(filepath.Join(from, "*.sst"))
	if err == nil {
		slices.Sort(tables)
		for _, table := range tables {
			s.copyTable(table)
		}
		err = s.copyLogs(from)
	}
	if err == nil {
		err = errors.Join(s.failed, s.finish())
	}
	return errors.Join(err, db.Close())
}

// copyTable copies the records of a table. If a part of it cannot be read, the records before the
// first unreadable part and after the last one are copied.
func (s *salvage) copyTable(path string) {
	err := s.tryTable(path)
	if err != nil {
		s.log.Error("records in a damaged file are lost", "record", filepath.Base(path), "error", err)
	}
}

func (s *salvage) tryTable(path string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	file, err := vfs.Default.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	r, err := sstable.NewReader(context.Background(), readable, s.options)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	defer r.Close()
	last, damage := s.copyForward(r)
	if damage != nil {
		return errors.Join(damage, s.copyBackward(r, last))
	}
	return nil
}

// copyForward copies the records of a table in order. It returns the last key that it could read.
func (s *salvage) copyForward(r *sstable.Reader) (last []byte, err error) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	for kv := it.First(); kv != nil; kv = it.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			continue
		}
		last = append(last[:0], kv.K.UserKey...)
		s.keep(kv.K.UserKey, value, kv.Kind(), uint64(kv.SeqNum()))
	}
	return last, errors.Join(it.Error(), it.Close())
}

// copyBackward copies the records of a table from its end to the key until.
func (s *salvage) copyBackward(r *sstable.Reader, until []byte) error {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	for kv := it.Last(); kv != nil && string(kv.K.UserKey) > string(until); kv = it.Prev() {
		value, _, err := kv.Value(nil)
		if err != nil {
			continue
		}
		s.keep(kv.K.UserKey, value, kv.Kind(), uint64(kv.SeqNum()))
	}
	_ = it.Error() // the damage is known
	_ = it.Close()
	return nil
}

// copyLogs copies the changes in the logs of a folder.
func (s *salvage) copyLogs(dir string) error {
	logs, err := wal.Scan(wal.Dir{FS: vfs.Default, Dirname: dir})
	if err != nil {
		return err
	}
	for _, l := range logs {
		s.copyLog(l)
	}
	return nil
}

// copyLog copies the changes in a log that are before the first damage.
func (s *salvage) copyLog(l wal.LogicalLog) {
	r := l.OpenForRead()
	defer r.Close()
	for {
		next, _, err := r.NextRecord()
		if err != nil {
			return
		}
		content, err := io.ReadAll(next)
		if err != nil {
			return
		}
		header, ok := batchrepr.ReadHeader(content)
		if !ok {
			return
		}
		s.copyBatch(batchrepr.Read(content), uint64(header.SeqNum))
	}
}

// copyBatch copies the changes of a batch. The first change has the sequence number seq.
func (s *salvage) copyBatch(r batchrepr.Reader, seq uint64) {
	for {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			return
		}
		if kind == pebble.InternalKeyKindLogData {
			continue
		}
		s.keep(key, value, kind, seq)
		seq++
	}
}

// keep copies a version of a record, unless a newer one was copied.
func (s *salvage) keep(key, value []byte, kind pebble.InternalKeyKind, seq uint64) {
	mark := append([]byte{salvageMark}, key...)
	newest, err := valueOf(s.db, mark)
	if err == nil && len(newest) == 8 && binary.BigEndian.Uint64(newest) > seq {
		return
	}
	c := change{s.db.NewBatch()}
	switch kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		c.set(key, value)
	case pebble.InternalKeyKindDelete, pebble.InternalKeyKindDeleteSized, pebble.InternalKeyKindSingleDelete:
		c.remove(key)
	default:
		s.commit(c) // the frontier makes no other changes
		return
	}
	c.set(mark, binary.BigEndian.AppendUint64(nil, seq))
	s.commit(c)
}

// commit makes a change of the new folder.
func (s *salvage) commit(c change) {
	err := errors.Join(c.Commit(pebble.NoSync), c.Close())
	if s.failed == nil {
		s.failed = err
	}
}

// finish makes the copied records consistent and removes the marks.
func (s *salvage) finish() error {
	pages, err := s.findPages()
	if err != nil {
		return err
	}
	if err := s.countHosts(pages.hosts); err != nil {
		return err
	}
	if err := s.forgetLost(pages.ids); err != nil {
		return err
	}
	c := change{s.db.NewBatch()}
	c.set(idsFact, binary.BigEndian.AppendUint64(nil, pages.nextID(s.db)))
	s.commit(c)
	marks := s.db.DeleteRange([]byte{salvageMark}, []byte{salvageMark + 1}, pebble.NoSync)
	return errors.Join(s.failed, marks)
}

// foundPages are the pages that wait or are left out.
type foundPages struct {
	ids   []uint64 // sorted
	hosts map[string]hostRecord
}

// nextID returns an ID that no page has.
func (p foundPages) nextID(db *pebble.DB) uint64 {
	next := uint64(1)
	if len(p.ids) > 0 {
		next = p.ids[len(p.ids)-1] + 1
	}
	value, err := valueOf(db, idsFact)
	if err != nil || len(value) != 8 {
		return next
	}
	return max(next, binary.BigEndian.Uint64(value))
}

// findPages finds all pages that wait or are left out.
func (s *salvage) findPages() (foundPages, error) {
	found := foundPages{hosts: make(map[string]hostRecord)}
	for _, kind := range []byte{queueKey, leftKey} {
		err := s.each(kind, func(key, value []byte) {
			name, at, ok := splitPageKey(key)
			if !ok {
				return
			}
			found.ids = append(found.ids, at.id)
			r := found.hosts[name]
			if kind == queueKey && r.waiting == 0 {
				r.oldest = foundOf(value)
			}
			if kind == queueKey {
				r.waiting++
			} else {
				r.leftOut++
			}
			found.hosts[name] = r
		})
		if err != nil {
			return found, err
		}
	}
	slices.Sort(found.ids)
	return found, nil
}

// countHosts corrects the counts of hosts. pages has the counts of pages that wait or are left out.
func (s *salvage) countHosts(pages map[string]hostRecord) error {
	err := s.each(hostKey, func(key, value []byte) {
		name := string(key[1:])
		old, err := decodeHost(value)
		r := pages[name]
		if err == nil {
			r.done = old.done
			r.denied = old.denied
			r.failed = old.failed
		}
		pages[name] = r
	})
	for name, r := range pages {
		c := change{s.db.NewBatch()}
		c.set(append([]byte{hostKey}, name...), r.encode())
		s.commit(c)
	}
	return err
}

// forgetLost removes the records of pages that should wait but are lost, so that they can be added
// again. ids are the IDs of the other pages.
func (s *salvage) forgetLost(ids []uint64) error {
	lost := 0
	err := s.each(seenKey, func(key, value []byte) {
		r, err := decodeSeen(value)
		if err == nil && r.state != waiting && r.state != leftOut {
			return
		}
		if _, ok := slices.BinarySearch(ids, r.at.id); ok {
			return
		}
		lost++
		c := change{s.db.NewBatch()}
		c.remove(key)
		s.commit(c)
	})
	if lost > 0 {
		s.log.Error("pages are lost, they can be found again", "count", lost)
	}
	return err
}

// each calls f for the records whose keys begin with a byte.
func (s *salvage) each(kind byte, f func(key, value []byte)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		f(it.Key(), it.Value())
	}
	return errors.Join(it.Error(), it.Close())
}
