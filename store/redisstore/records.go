package redisstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store"
)

// MaxRecord is the length in bytes of the longest value that a Store accepts.
const MaxRecord = store.MaxRecord

var (
	errRecord = errors.New("checksum of a record does not match")
	errLong   = fmt.Errorf("redisstore: value exceeds the limit of %d bytes", MaxRecord)
)

// Get returns the value of key; see [store.Store]. If the key contains something other than a
// record of this package, Get moves it aside and reports it once, as a [*store.CorruptError]. If a
// later version of this package has written the record, Get leaves it unchanged and returns a
// [*store.VersionError].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	_, value, err := s.read(ctx, key)
	return value, err
}

// Update replaces the value of key; see [store.Store]. It reports damaged records and records of
// later versions as Get does. It calls f again if another process has changed the record in the
// meantime.
func (s *Store) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	name, _ := s.keys.record(key)
	for tries := 0; ; tries++ {
		head, old, err := s.read(ctx, key)
		if err != nil {
			return err
		}
		value, err := f(old)
		if err != nil {
			return err
		}
		if len(value) > MaxRecord {
			return errLong
		}
		var raw []byte
		life := int64(0)
		if value != nil {
			raw = encode(key, value, ttl, time.Now())
			life = milliseconds(ttl)
		}
		done, err := swap.Run(ctx, s.client, []string{name}, head, raw, headLength, life).Bool()
		if err != nil {
			return s.problem(name, err)
		}
		if done {
			return nil
		}
		if err := s.sleep(ctx, mathrand.N(time.Millisecond<<min(tries, 6))); err != nil {
			return err
		}
	}
}

// milliseconds returns a time to live in milliseconds, rounded up. It returns 0 for a record that
// does not expire.
func milliseconds(ttl time.Duration) int64 {
	if ttl <= 0 {
		return 0
	}
	return int64((ttl-1)/time.Millisecond) + 1
}

// read returns the value of key and the head of the record. The value is nil if there is none or it
// has expired; the head is nil only if there is no record.
func (s *Store) read(ctx context.Context, key string) (head, value []byte, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, nil, err
	}
	name, _ := s.keys.record(key)
	raw, err := s.client.GetRange(ctx, name, 0, int64(headLength+MaxRecord)).Bytes()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return nil, nil, s.setAside(ctx, key, err)
	case err != nil:
		return nil, nil, s.problem(name, err)
	case len(raw) == 0:
		return nil, nil, nil
	}
	if version := versionOf(raw); version != "" {
		return nil, nil, &store.VersionError{Path: name, Version: version}
	}
	value, err = decode(key, raw, time.Now())
	if err != nil {
		return nil, nil, s.setAside(ctx, key, err)
	}
	return raw[:headLength], value, nil
}

// setAside renames the damaged key, so that the user can examine its content, and returns the error
// to report.
func (s *Store) setAside(ctx context.Context, key string, why error) error {
	name, aside := s.keys.record(key)
	if err := s.client.Rename(ctx, name, aside).Err(); err != nil {
		return &store.CorruptError{Path: name, Err: errors.Join(why, err)}
	}
	return &store.CorruptError{Path: name, Aside: aside, Err: why}
}

// A record is a head and a value. The head consists of magic, the time of expiry (in Unix
// nanoseconds, or 0 if the record does not expire), random bytes, and the SHA-256 of the key, the
// rest of the head, and the value. The random bytes make each head unique, so two equal heads
// belong to the same record.
const (
	kind       = "collyrobots record "
	magic      = kind + "1\n"
	unique     = 8
	headLength = len(magic) + 8 + unique + sha256.Size
)

func encode(key string, value []byte, ttl time.Duration, now time.Time) []byte {
	b := make([]byte, 0, headLength+len(value))
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint64(b, ending(now, ttl))
	b = b[:len(b)+unique]
	_, _ = rand.Read(b[len(b)-unique:]) // rand.Read never fails
	b = append(b, sumOf(key, b, value)...)
	return append(b, value...)
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

func sumOf(key string, head, value []byte) []byte {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write(head)
	h.Write(value)
	return h.Sum(nil)
}

// decode returns the value in raw, or nil if the record has expired.
func decode(key string, raw []byte, now time.Time) ([]byte, error) {
	if len(raw) < headLength || len(raw) > headLength+MaxRecord || !bytes.HasPrefix(raw, []byte(magic)) {
		return nil, errRecord
	}
	head := raw[:headLength:headLength]
	value := raw[headLength:]
	if !bytes.Equal(sumOf(key, head[:headLength-sha256.Size], value), head[headLength-sha256.Size:]) {
		return nil, errRecord
	}
	ends := binary.BigEndian.Uint64(head[len(magic):])
	if ends != 0 && !now.Before(time.Unix(0, int64(ends))) {
		return nil, nil
	}
	return value, nil
}

// versionOf returns the version of the format of a record if it is later than this package's.
// Otherwise it returns "".
func versionOf(raw []byte) string {
	rest, ok := bytes.CutPrefix(raw, []byte(kind))
	version, _, ended := strings.Cut(string(rest[:min(len(rest), 10)]), "\n")
	n, err := strconv.ParseUint(version, 10, 32)
	if !ok || !ended || err != nil || n < 2 {
		return ""
	}
	return version
}
