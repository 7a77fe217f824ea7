// Package boltstore keeps records in one bbolt file: a store for crawls of very many hosts.
package boltstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/collyrobots/collyrobots/store"
)

const (
	lockWait   = time.Nanosecond // one try: bbolt takes 0 for ever
	sweepLooks = 2               // how many records a write looks at for expired ones
)

var (
	records = []byte("records")
	aside   = []byte("damaged")
)

// Open returns a Store in the file at path. It creates the file, for its owner only, if it does not
// exist. A file can be open once at a time: while this or another process has it open, Open fails at
// once with an [*InUseError]. When Update returns, the record has reached the disk. If the file was
// removed or replaced since it was opened, Update fails with a [*GoneError].
//
// Open reads the keys of the whole file, to find damage before a record relies on it. It renames a
// damaged file to end in ".damaged" and returns a [*store.CorruptError]; the next Open creates an
// empty file. A file whose creation was cut short, by a full disk or a kill, has no records: Open
// creates it again. A damaged record in a sound file is moved to a bucket of its own and reported
// once, by Get or Update.
//
// A file that another program has written, for example because path is mistyped, is an error. Open
// leaves it unchanged.
func Open(path string) (store.Store, error) {
	db, err := open(path)
	if errors.Is(err, errDamaged) && unfinished(path) {
		err = os.Remove(path)
		if err == nil {
			db, err = open(path)
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, errDamaged):
		return nil, setAside(path, err)
	case errors.Is(err, errForeign):
		return nil, fmt.Errorf("boltstore: %s is left unchanged: %w", path, err)
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &InUseError{Path: path}
	default:
		return nil, fmt.Errorf("boltstore: %w", err)
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("boltstore: %w", err), db.Close())
	}
	return &boltStore{db: db, path: path, file: file}, nil
}

// An InUseError says that another process, or another part of this one, has the file open.
type InUseError struct{ Path string }

// Error returns which file it is.
func (e *InUseError) Error() string {
	return "boltstore: " + e.Path + " is in use: another process, or this one, has it open"
}

// A GoneError says that nothing more can be kept: the file was removed, or another was put in its
// place, while it was open. What was in it can still be read until Close.
type GoneError struct{ Path string }

// Error returns which file it was.
func (e *GoneError) Error() string {
	return "boltstore: " + e.Path + " was removed or replaced while it was open: nothing more is kept"
}

// unfinished reports whether a file is the beginning of what bbolt writes into a new one: four
// pages, of which the first says that no transaction has come after it. A sound file has seen more
// by the time it holds a record.
func unfinished(path string) bool {
	const txid, length = 64, 72 // of the first meta page: where the number of its transaction is, and where it ends
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > int64(4*os.Getpagesize()) {
		return false
	}
	raw, err := io.ReadAll(io.LimitReader(f, int64(4*os.Getpagesize())))
	switch {
	case err != nil:
		return false
	case len(bytes.Trim(raw, "\x00")) == 0:
		return true // room was made, and nothing written
	case len(raw) < length:
		return false // who knows
	}
	isMeta := binary.NativeEndian.Uint16(raw[8:]) == 0x04 && binary.NativeEndian.Uint32(raw[16:]) == 0xED0CDAED
	return isMeta && binary.NativeEndian.Uint64(raw[txid:]) == 0
}

// open checks the file and opens it.
func open(path string) (db *bolt.DB, err error) {
	err = checkPath(path)
	if errors.Is(err, errDamaged) {
		err = checkLocked(path)
	}
	if err != nil {
		return nil, err
	}
	err = guard(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait})
		if err != nil {
			return sort(err)
		}
		return db.Update(createBuckets)
	})
	if err != nil && db != nil {
		err = errors.Join(err, guard(db.Close))
	}
	return db, err
}

// checkLocked checks a file again while no process can write to it. The first check may have read
// pages from before and after a write of a process that has the file open.
func checkLocked(path string) error {
	var db *bolt.DB
	err := guard(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait, ReadOnly: true})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return err
	}
	// Other errors come from a file that is damaged at its beginning. No process can open it.
	err = checkPath(path)
	if db != nil {
		err = errors.Join(err, guard(db.Close))
	}
	return err
}

// sort tells damage from a file that cannot be opened.
func sort(err error) error {
	var path *os.PathError
	if errors.Is(err, bolterrors.ErrTimeout) || errors.As(err, &path) {
		return err
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

func createBuckets(tx *bolt.Tx) error {
	for _, name := range [][]byte{records, aside} {
		_, err := tx.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
	}
	return nil
}

// guard turns the panics and memory faults with which bbolt meets a damaged page into errors.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errDamaged, v)
		}
	}()
	return f()
}

func setAside(path string, why error) error {
	to := path + ".damaged"
	if err := os.Rename(path, to); err != nil {
		return &store.CorruptError{Path: path, Err: errors.Join(why, err)}
	}
	return &store.CorruptError{Path: path, Aside: to, Err: why}
}

type boltStore struct {
	db   *bolt.DB
	path string
	file os.FileInfo // of db, as it was opened
}

func (s *boltStore) Get(ctx context.Context, key string) (value []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, s.orClosed(err)
	}
	k := hash(key)
	err = s.run(s.db.View, func(tx *bolt.Tx) error {
		value, err = read(tx.Bucket(records).Get(k), time.Now())
		return err
	})
	if errors.Is(err, errRecord) {
		return nil, s.drop(k)
	}
	return value, err
}

func (s *boltStore) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	if err := ctx.Err(); err != nil {
		return s.orClosed(err)
	}
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(now, s.file) {
		return s.orClosed(&GoneError{Path: s.path})
	}
	k := hash(key)
	// f's panic is the caller's: it must not be taken for a damaged page.
	var thrown any
	err := s.run(s.db.Update, func(tx *bolt.Tx) error {
		b, now := tx.Bucket(records), time.Now()
		old, err := read(b.Get(k), now)
		if err != nil {
			return err
		}
		value, err := call(f, old, &thrown)
		if err != nil {
			return err
		}
		if value == nil {
			return b.Delete(k)
		}
		return errors.Join(b.Put(k, encode(value, ttl, now)), sweep(b, k, now))
	})
	if thrown != nil {
		panic(thrown)
	}
	if errors.Is(err, errRecord) {
		return s.drop(k)
	}
	return err
}

func (s *boltStore) Close() error { return guard(s.db.Close) }

// run is one transaction, with the errors of package store.
func (s *boltStore) run(do func(func(*bolt.Tx) error) error, f func(*bolt.Tx) error) error {
	err := guard(func() error { return do(f) })
	switch {
	case errors.Is(err, bolterrors.ErrDatabaseNotOpen):
		return store.ErrClosed
	case errors.Is(err, errDamaged):
		return &store.CorruptError{Path: s.db.Path(), Err: err}
	default:
		return err
	}
}

// orClosed returns err, unless the store is closed: that counts more.
func (s *boltStore) orClosed(err error) error {
	if closed := s.run(s.db.View, func(*bolt.Tx) error { return nil }); closed != nil {
		return closed
	}
	return err
}

var errThrown = errors.New("panic")

func call(f func([]byte) ([]byte, error), old []byte, thrown *any) (value []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			*thrown, err = v, errThrown
		}
	}()
	return f(old)
}

// drop moves a damaged record to the bucket for those, and returns what to tell.
func (s *boltStore) drop(key []byte) error {
	err := s.run(s.db.Update, func(tx *bolt.Tx) error {
		b := tx.Bucket(records)
		raw := bytes.Clone(b.Get(key))
		return errors.Join(tx.Bucket(aside).Put(key, raw), b.Delete(key))
	})
	if err != nil {
		return &store.CorruptError{Path: s.db.Path(), Err: errors.Join(errRecord, err)}
	}
	return &store.CorruptError{Path: s.db.Path(), Aside: "in its bucket \"damaged\"", Err: errRecord}
}

// hash makes keys of one length of keys of any.
func hash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

var errRecord = errors.New("a record is not as it was written")

// encode writes a record: the SHA-256 of the rest, the end of its life (Unix nanoseconds, or 0 if it
// does not end), and the value.
func encode(value []byte, ttl time.Duration, now time.Time) []byte {
	b := make([]byte, sha256.Size, sha256.Size+8+len(value))
	b = binary.BigEndian.AppendUint64(b, ending(now, ttl))
	b = append(b, value...)
	sum := sha256.Sum256(b[sha256.Size:])
	copy(b, sum[:])
	return b
}

// ending returns the end of the life of a record, 0 if it does not end. An end after the year 2262
// is the last one that Unix nanoseconds can express.
func ending(now time.Time, ttl time.Duration) uint64 {
	if ttl <= 0 {
		return 0
	}
	ends := now.UnixNano()
	return uint64(ends + min(int64(ttl), math.MaxInt64-ends))
}

// read returns a copy of the living value in raw, nil when there is none.
func read(raw []byte, now time.Time) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	if len(raw) < sha256.Size+8 || sha256.Sum256(raw[sha256.Size:]) != [sha256.Size]byte(raw[:sha256.Size]) {
		return nil, errRecord
	}
	if expired(raw, now) {
		return nil, nil
	}
	return append([]byte{}, raw[sha256.Size+8:]...), nil
}

func expired(raw []byte, now time.Time) bool {
	if len(raw) < sha256.Size+8 {
		return false
	}
	ends := binary.BigEndian.Uint64(raw[sha256.Size:])
	return ends != 0 && !now.Before(time.Unix(0, int64(ends)))
}

// sweep drops the expired ones of the few records after key, a random place as keys are hashes: so
// the dead stay few.
func sweep(b *bolt.Bucket, key []byte, now time.Time) error {
	c := b.Cursor()
	c.Seek(key)
	for range sweepLooks {
		k, raw := c.Next()
		if k == nil {
			return nil
		}
		if expired(raw, now) {
			if err := b.Delete(bytes.Clone(k)); err != nil {
				return err
			}
			c.Seek(key)
		}
	}
	return nil
}
