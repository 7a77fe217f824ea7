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

// Open returns a Store in the file at path, which it makes, for its owner only, if it is not there.
// It can be open once at a time: while another process has it, or this one, Open fails at once with
// an [*InUseError]. When Update returns, the record has reached the disk; if the file was removed
// or replaced since it was opened, Update fails with a [*GoneError].
//
// A file whose making was cut short, by a full disk or a kill, holds nothing: Open makes it anew. A
// damaged file is renamed to end in ".damaged" and Open returns a [*store.CorruptError]; the next
// Open starts an empty one. A damaged record in a sound file is moved to a bucket of its own and
// reported once, by Get or Update.
func Open(path string) (store.Store, error) {
	db, err := open(path)
	if errors.Is(err, errDamaged) && unfinished(path) {
		if err = os.Remove(path); err == nil {
			db, err = open(path)
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, errDamaged):
		return nil, setAside(path, err)
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &InUseError{Path: path}
	default:
		return nil, fmt.Errorf("boltstore: %w", err)
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("boltstore: %w", err), db.Close())
	}
	return &boltStore{db, path, file}, nil
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

var errDamaged = errors.New("not a sound bbolt file")

// open opens the file and looks whether it is whole.
func open(path string) (db *bolt.DB, err error) {
	err = guard(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait})
		if err != nil {
			return sort(err)
		}
		return prepare(db)
	})
	if err != nil && db != nil {
		err = errors.Join(err, guard(db.Close))
	}
	return db, err
}

// sort tells damage from a file that cannot be had.
func sort(err error) error {
	var path *os.PathError
	if errors.Is(err, bolterrors.ErrTimeout) || errors.As(err, &path) {
		return err
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

// prepare makes the buckets and walks over all keys: damage is found before anything relies on the
// file.
func prepare(db *bolt.DB) error {
	return db.Update(func(tx *bolt.Tx) error {
		info, err := os.Stat(db.Path())
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: %d octets where there were %d", errDamaged, info.Size(), tx.Size())
		}
		for _, name := range [][]byte{records, aside} {
			b, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			if err := b.ForEach(func(_, _ []byte) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	})
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

// encode writes a record: SHA-256 of the rest, end of its life (unix nanoseconds, 0: never), value.
func encode(value []byte, ttl time.Duration, now time.Time) []byte {
	var ends uint64
	if ttl > 0 {
		ends = uint64(now.Add(ttl).UnixNano())
	}
	b := make([]byte, sha256.Size, sha256.Size+8+len(value))
	b = append(binary.BigEndian.AppendUint64(b, ends), value...)
	sum := sha256.Sum256(b[sha256.Size:])
	copy(b, sum[:])
	return b
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
