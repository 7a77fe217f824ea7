package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"time"
)

// magic opens every record file: what it is, and the version of the format.
var magic = []byte(kind + "1\n")

const kind = "collyrobots record "

// versionOf returns the version of a record's format if that is a later one; else "".
func versionOf(b []byte) string {
	rest, ok := bytes.CutPrefix(b, []byte(kind))
	version, _, ended := bytes.Cut(rest[:min(len(rest), 10)], []byte("\n"))
	if n, err := strconv.ParseUint(string(version), 10, 32); !ok || !ended || err != nil || n < 2 {
		return ""
	}
	return string(version)
}

// encode writes a record as a file: magic, the end of its life (Unix nanoseconds, or 0 if it does not
// end), the length of its key, key, value, and the SHA-256 of all that.
func encode(key string, r record) []byte {
	b := make([]byte, 0, recordLength(key, len(r.value)))
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint64(b, nanoseconds(r.ends))
	b = binary.BigEndian.AppendUint64(b, uint64(len(key)))
	b = append(b, key...)
	b = append(b, r.value...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// recordLength returns the length of a record with a value of n bytes.
func recordLength(key string, n int) int {
	return len(magic) + 16 + len(key) + n + sha256.Size
}

// lastEnd is the last instant that Unix nanoseconds can express, in the year 2262.
var lastEnd = time.Unix(0, math.MaxInt64)

// nanoseconds returns an instant in Unix nanoseconds, at most lastEnd, and 0 for the zero time.
func nanoseconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	if t.After(lastEnd) {
		t = lastEnd
	}
	return uint64(t.UnixNano())
}

var (
	errFormat = errors.New("not a record of this version")
	errSum    = errors.New("the checksum does not fit")
)

// decode reads what encode wrote.
func decode(b []byte) (key string, r record, err error) {
	rest, ok := bytes.CutPrefix(b, magic)
	if !ok || len(rest) < 16+sha256.Size {
		return "", record{}, errFormat
	}
	rest, sum := rest[:len(rest)-sha256.Size], rest[len(rest)-sha256.Size:]
	if want := sha256.Sum256(b[:len(b)-sha256.Size]); !bytes.Equal(sum, want[:]) {
		return "", record{}, errSum
	}
	ends, length := binary.BigEndian.Uint64(rest), binary.BigEndian.Uint64(rest[8:])
	rest = rest[16:]
	if length > uint64(len(rest)) {
		return "", record{}, errFormat
	}
	r.value = rest[length:]
	if ends != 0 {
		r.ends = time.Unix(0, int64(ends))
	}
	return string(rest[:length]), r, nil
}
