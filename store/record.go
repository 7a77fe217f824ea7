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

// magic is the beginning of every record file. It names the format and its version.
var magic = []byte(kind + "1\n")

const kind = "collyrobots record "

// versionOf returns the version of the format of a record if it is later than this package's.
// Otherwise it returns "".
func versionOf(b []byte) string {
	rest, ok := bytes.CutPrefix(b, []byte(kind))
	version, _, ended := bytes.Cut(rest[:min(len(rest), 10)], []byte("\n"))
	n, err := strconv.ParseUint(string(version), 10, 32)
	if !ok || !ended || err != nil || n < 2 {
		return ""
	}
	return string(version)
}

// encode returns the content of a record file: magic, the time of expiry (in Unix nanoseconds, or 0
// if the record does not expire), the length of the key, the key, the value, and the SHA-256 of
// everything before it.
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

// recordLength returns the length of the file of a record whose value has n bytes.
func recordLength(key string, n int) int {
	return len(magic) + 16 + len(key) + n + sha256.Size
}

// lastEnd is the last time, in the year 2262, that Unix nanoseconds can express.
var lastEnd = time.Unix(0, math.MaxInt64)

// nanoseconds returns t in Unix nanoseconds. It returns 0 for the zero time, and lastEnd for a
// later time.
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
	errFormat = errors.New("not a record in the format of this version")
	errSum    = errors.New("checksum does not match")
)

// decode parses the output of encode. The value shares memory with b.
func decode(b []byte) (key string, r record, err error) {
	rest, ok := bytes.CutPrefix(b, magic)
	if !ok || len(rest) < 16+sha256.Size {
		return "", record{}, errFormat
	}
	sum := rest[len(rest)-sha256.Size:]
	rest = rest[:len(rest)-sha256.Size]
	if want := sha256.Sum256(b[:len(b)-sha256.Size]); !bytes.Equal(sum, want[:]) {
		return "", record{}, errSum
	}
	ends := binary.BigEndian.Uint64(rest)
	length := binary.BigEndian.Uint64(rest[8:])
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
