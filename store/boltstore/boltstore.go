// Package boltstore keeps records in one bbolt file. It is a store for crawls of very many hosts.
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
	lockWait   = time.Nanosecond // one attempt; bbolt would wait forever if this were 0
	sweepLooks = 2               // how many records each write checks for expiry
)

var (
	records = []byte("records")
	aside   = []byte("damaged")
)

// Open returns a Store in the file at path. If the file does not exist, Open creates it with access
// for its owner only. A file can be open only once at a time: while this process or another one has
// it open, Open fails at once with an [*InUseError]. When Update returns, the record has reached
// the disk. If the file was removed or replaced after it was opened, Update fails with a
// [*GoneError].
//
// Open reads all keys in the file, to find damage before the store uses a damaged page. It renames
// a damaged file to end in ".damaged" and returns a [*store.CorruptError]; the next Open creates an
// empty file. If a full disk or a kill interrupted the creation of the file, it contains no
// records, and Open creates it again. If a single record is damaged but the file is not, the record
// is moved to another bucket and reported once, by Get or Update.
//
// If the file was written by another program, for example because path is mistyped, Open returns an
// error and leaves the file unchanged.
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
		return nil, fmt.Errorf("boltstore: %s was left unchanged: %w", path, err)
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

// An InUseError reports that this process or another one already has the file open.
type InUseError struct{ Path string }

// Error returns a message with the path of the file.
func (e *InUseError) Error() string {
	return "boltstore: " + e.Path + " is in use: this process or another one has it open"
}

// A GoneError reports that the file was removed or replaced while it was open, so that a record can
// no longer be stored. The records in the old file can still be read until Close.
type GoneError struct{ Path string }

// Error returns a message with the path of the file.
func (e *GoneError) Error() string {
	return "boltstore: " + e.Path + " was removed or replaced while it was open, so no more records can be stored; open it again"
}

// unfinished reports whether bbolt was interrupted while it created the file. bbolt first writes
// four pages; the first one says that no transaction has been committed after it. In a file with a
// record, there have been further transactions.
func unfinished(path string) bool {
	const txid, length = 64, 72 // offsets of the transaction number in the first meta page, and of its end
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
		return true // the file was extended, but no page was written
	case len(raw) < length:
		return false // too short to tell
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
			return markDamage(err)
		}
		return db.Update(createBuckets)
	})
	if err != nil && db != nil {
		err = errors.Join(err, guard(db.Close))
	}
	return db, err
}

// checkLocked repeats the check of a file while no process can write to it. If another process was
// writing during the first check, that check may have read some pages from before the write and
// some from after it.
func checkLocked(path string) error {
	var db *bolt.DB
	err := guard(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait, ReadOnly: true})
		return err
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return err
	}
	// Any other error means that the file is damaged at its beginning. In that case, no process can
	// have it open.
	err = checkPath(path)
	if db != nil {
		err = errors.Join(err, guard(db.Close))
	}
	return err
}

// markDamage marks err as damage, unless it says that the file is in use or cannot be opened.
func markDamage(err error) error {
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

// guard calls f and returns its panics and memory faults as errors, because bbolt panics or faults
// when it uses a damaged page.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errDamaged, v)
		}
	}()
	return f()
}

// setAside renames a damaged file and returns the error to report.
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
	file os.FileInfo // the file at path when it was opened
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
	// A panic of f belongs to the caller. It must not be mistaken for a damaged page, so it is
	// thrown again after the transaction.
	var thrown any
	err := s.run(s.db.Update, func(tx *bolt.Tx) error {
		b := tx.Bucket(records)
		now := time.Now()
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

// run runs one transaction and converts its errors to those of package store.
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

// orClosed returns store.ErrClosed if the store is closed, and err otherwise.
func (s *boltStore) orClosed(err error) error {
	if closed := s.run(s.db.View, func(*bolt.Tx) error { return nil }); closed != nil {
		return closed
	}
	return err
}

var errThrown = errors.New("panic")

// call calls f. If f panics, call stores the value in thrown and returns errThrown.
func call(f func([]byte) ([]byte, error), old []byte, thrown *any) (value []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			*thrown = v
			err = errThrown
		}
	}()
	return f(old)
}

// drop moves a damaged record to the bucket for damaged records and returns the error to report.
func (s *boltStore) drop(key []byte) error {
	err := s.run(s.db.Update, func(tx *bolt.Tx) error {
		b := tx.Bucket(records)
		raw := bytes.Clone(b.Get(key))
		return errors.Join(tx.Bucket(aside).Put(key, raw), b.Delete(key))
	})
	if err != nil {
		return &store.CorruptError{Path: s.db.Path(), Err: errors.Join(errRecord, err)}
	}
	return &store.CorruptError{Path: s.db.Path(), Aside: "the bucket \"damaged\" of the same file", Err: errRecord}
}

// hash returns the SHA-256 of key, so that all keys in the file have the same length.
func hash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

var errRecord = errors.New("checksum of a record does not match")

// encode returns the content of a record: the SHA-256 of everything after it, the time of expiry
// (in Unix nanoseconds, or 0 if the record does not expire), and the value.
func encode(value []byte, ttl time.Duration, now time.Time) []byte {
	b := make([]byte, sha256.Size, sha256.Size+8+len(value))
	b = binary.BigEndian.AppendUint64(b, ending(now, ttl))
	b = append(b, value...)
	sum := sha256.Sum256(b[sha256.Size:])
	copy(b, sum[:])
	return b
}

// ending returns the time when a record expires, in Unix nanoseconds, or 0 if it does not expire. A
// time after the year 2262 becomes the last one that Unix nanoseconds can express.
func ending(now time.Time, ttl time.Duration) uint64 {
	if ttl <= 0 {
		return 0
	}
	ends := now.UnixNano()
	return uint64(ends + min(int64(ttl), math.MaxInt64-ends))
}

// read returns a copy of the value in raw, or nil if there is no record or it has expired.
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

// expired reports whether the record in raw has expired.
func expired(raw []byte, now time.Time) bool {
	if len(raw) < sha256.Size+8 {
		return false
	}
	ends := binary.BigEndian.Uint64(raw[sha256.Size:])
	return ends != 0 && !now.Before(time.Unix(0, int64(ends)))
}

// sweep looks at the few records that follow key and removes the expired ones. Keys are hashes, so
// these are random records, and expired records remain few.
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
