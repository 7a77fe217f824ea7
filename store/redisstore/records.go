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

// MaxRecord is how many bytes a value may have.
const MaxRecord = store.MaxRecord

var (
	errRecord = errors.New("a record is not as it was written")
	errLong   = fmt.Errorf("redisstore: a value is longer than %d bytes", MaxRecord)
)

// Get returns the value of key, as [store.Store] has it. What is no record of this package is put
// aside and reported once, as a [*store.CorruptError]; a record of a later version is left alone
// and reported as a [*store.VersionError].
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	_, value, err := s.read(ctx, key)
	return value, err
}

// Update replaces the value of key, as [store.Store] has it; what it meets it treats as Get does. f
// runs again when another process has come between.
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

// milliseconds returns a time to live in milliseconds, rounded up, 0 if it does not end.
func milliseconds(ttl time.Duration) int64 {
	if ttl <= 0 {
		return 0
	}
	return int64((ttl-1)/time.Millisecond) + 1
}

// read returns the living value of key, nil when there is none, and the head of what is kept,
// living or not.
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

// setAside keeps what was found for whoever wants to look at it, and returns what to tell.
func (s *Store) setAside(ctx context.Context, key string, why error) error {
	name, aside := s.keys.record(key)
	if err := s.client.Rename(ctx, name, aside).Err(); err != nil {
		return &store.CorruptError{Path: name, Err: errors.Join(why, err)}
	}
	return &store.CorruptError{Path: name, Aside: aside, Err: why}
}

// A record is its head and its value. The head is magic, the end of its life (unix nanoseconds, 0:
// never), octets by which each is unlike all others, and the SHA-256 of its key and all else. So
// heads that are the same are of the same record.
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
	_, _ = rand.Read(b[len(b)-unique:]) // it does not fail
	b = append(b, sumOf(key, b, value)...)
	return append(b, value...)
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

func sumOf(key string, head, value []byte) []byte {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write(head)
	h.Write(value)
	return h.Sum(nil)
}

// decode returns the living value in raw, nil when there is none.
func decode(key string, raw []byte, now time.Time) ([]byte, error) {
	if len(raw) < headLength || len(raw) > headLength+MaxRecord || !bytes.HasPrefix(raw, []byte(magic)) {
		return nil, errRecord
	}
	head, value := raw[:headLength:headLength], raw[headLength:]
	if !bytes.Equal(sumOf(key, head[:headLength-sha256.Size], value), head[headLength-sha256.Size:]) {
		return nil, errRecord
	}
	ends := binary.BigEndian.Uint64(head[len(magic):])
	if ends != 0 && !now.Before(time.Unix(0, int64(ends))) {
		return nil, nil
	}
	return value, nil
}

// versionOf returns the version of a record's format if that is a later one; else "".
func versionOf(raw []byte) string {
	rest, ok := bytes.CutPrefix(raw, []byte(kind))
	version, _, ended := strings.Cut(string(rest[:min(len(rest), 10)]), "\n")
	if n, err := strconv.ParseUint(version, 10, 32); !ok || !ended || err != nil || n < 2 {
		return ""
	}
	return version
}
