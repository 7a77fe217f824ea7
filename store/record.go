package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
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

// encode writes a record as a file: magic, the end of its life (unix nanoseconds, 0: never), the
// length of its key, key, value, and the SHA-256 of all that.
func encode(key string, r record) []byte {
	b := make([]byte, 0, len(magic)+16+len(key)+len(r.value)+sha256.Size)
	b = append(b, magic...)
	var ends uint64
	if !r.ends.IsZero() {
		ends = uint64(r.ends.UnixNano())
	}
	b = binary.BigEndian.AppendUint64(b, ends)
	b = binary.BigEndian.AppendUint64(b, uint64(len(key)))
	b = append(b, key...)
	b = append(b, r.value...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
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
