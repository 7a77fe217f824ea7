package frontier

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A record is a key and a value of the engine. The first byte of a key says what the record is:
//
//	m name                     the version of the format, and other facts about the folder
//	h host                     the counts of a host
//	s hash                     the state of a page that was ever added
//	q length host order id     a page that waits or is out
//	l length host order id     a page that a budget leaves out
//	r hash                     a record of Records
//
// The pages of a host are next to each other, and the next one to be handed out comes first.
const (
	factKey  = 'm'
	hostKey  = 'h'
	seenKey  = 's'
	queueKey = 'q'
	leftKey  = 'l'

	recordKey = 'r'
)

// Limits of a page, so that no record is too large for the engine.
const (
	longestHost = 1 << 12
	longestPage = 1 << 26
)

// A position is the place of a page among those of its host.
type position struct {
	order uint64 // the option ByDepth or ByPriority; the lowest comes first
	id    uint64 // the order of discovery, and the ID of the page
}

// before reports whether a page at p is handed out before one at q.
func (p position) before(q position) bool {
	return p.order < q.order || p.order == q.order && p.id < q.id
}

// positionLength is the number of bytes of an encoded position.
const positionLength = 16

// append appends p so that the bytes of positions have the same order as the positions.
func (p position) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, p.order)
	return binary.BigEndian.AppendUint64(b, p.id)
}

// positionOf decodes a position. b must have positionLength bytes.
func positionOf(b []byte) position {
	return position{order: binary.BigEndian.Uint64(b), id: binary.BigEndian.Uint64(b[8:])}
}

// pagesOf returns the beginning of the keys of the pages of a host. kind is queueKey or leftKey.
func pagesOf(kind byte, host string) []byte {
	b := make([]byte, 0, 3+len(host)+positionLength)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(host)))
	return append(b, host...)
}

// pageKey returns the key of a page.
func pageKey(kind byte, host string, at position) []byte {
	return at.append(pagesOf(kind, host))
}

// splitPageKey is the inverse of pageKey.
func splitPageKey(key []byte) (host string, at position, ok bool) {
	if len(key) < 3+positionLength {
		return "", position{}, false
	}
	length := int(binary.BigEndian.Uint16(key[1:]))
	if len(key) != 3+length+positionLength {
		return "", position{}, false
	}
	return string(key[3 : 3+length]), positionOf(key[3+length:]), true
}

// A pageHash identifies a page among all that were ever added. It begins with four bytes that are
// the same for all pages of a host, so that the engine finds the links of a page in a few blocks,
// because most of them are on the same host.
type pageHash [20]byte

// hashOf returns the hash of a page, whose Host and Key must be set. 16 bytes of it are a SHA-256:
// the chance that two of 50 million pages have the same one is 4e-24.
func hashOf(p *urlstore.Page) (h pageHash) {
	b := make([]byte, 0, 256)
	b = binary.AppendVarint(b, int64(p.Collector))
	b = append(b, p.Key...)
	sum := sha256.Sum256(b)
	binary.BigEndian.PutUint32(h[:], crc32.ChecksumIEEE([]byte(p.Host)))
	copy(h[4:], sum[:])
	return h
}

// key returns the key of the record of the page.
func (h pageHash) key() []byte { return append([]byte{seenKey}, h[:]...) }

// A state is the state of a page that was added.
type state byte

const (
	unknown state = iota
	waiting       // or out
	done
	denied
	failed
	leftOut
)

// A seenRecord has the state of a page.
type seenRecord struct {
	state state
	at    position  // of the page, if it waits, is out or was left out
	ended time.Time // if it is done, was denied or has failed; in seconds
}

func (r seenRecord) encode() []byte {
	b := make([]byte, 1, 1+positionLength)
	b[0] = byte(r.state)
	if r.state == waiting || r.state == leftOut {
		return r.at.append(b)
	}
	return binary.AppendVarint(b, r.ended.Unix())
}

var errRecord = errors.New("not a record of this version")

// decodeSeen decodes a seenRecord. Without bytes, it returns the zero record: the page is unknown.
func decodeSeen(b []byte) (seenRecord, error) {
	if len(b) == 0 {
		return seenRecord{}, nil
	}
	r := seenRecord{state: state(b[0])}
	rest := b[1:]
	switch r.state {
	case waiting, leftOut:
		if len(rest) != positionLength {
			return seenRecord{}, errRecord
		}
		r.at = positionOf(rest)
	case done, denied, failed:
		seconds, n := binary.Varint(rest)
		if n != len(rest) || n <= 0 {
			return seenRecord{}, errRecord
		}
		r.ended = time.Unix(seconds, 0)
	default:
		return seenRecord{}, errRecord
	}
	return r, nil
}

// counts are the numbers of pages of a host, or of all hosts.
type counts struct {
	waiting int // or out
	done    int
	denied  int
	failed  int
	leftOut int
}

// accepted returns the number of pages that count for a budget.
func (c counts) accepted() int { return c.waiting + c.done + c.failed }

// plus returns the sum of c and d.
func (c counts) plus(d counts) counts {
	return counts{
		waiting: c.waiting + d.waiting,
		done:    c.done + d.done,
		denied:  c.denied + d.denied,
		failed:  c.failed + d.failed,
		leftOut: c.leftOut + d.leftOut,
	}
}

// without returns c without one page in a state.
func (c counts) without(s state) counts {
	if s != unknown {
		*c.of(s)--
	}
	return c
}

// of returns the number of pages in a state. Of counts that change, it returns the one to change.
func (c *counts) of(s state) *int {
	switch s {
	case waiting:
		return &c.waiting
	case done:
		return &c.done
	case denied:
		return &c.denied
	case failed:
		return &c.failed
	}
	return &c.leftOut
}

// A hostRecord is the record of a host.
type hostRecord struct {
	counts
	oldest time.Time // when the first of its waiting pages was found; in seconds, zero if no page waits
}

func (r hostRecord) encode() []byte {
	b := make([]byte, 0, 24)
	for _, n := range []int{r.waiting, r.done, r.denied, r.failed, r.leftOut} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return binary.AppendVarint(b, secondsOf(r.oldest))
}

func decodeHost(b []byte) (hostRecord, error) {
	var r hostRecord
	if len(b) == 0 {
		return r, nil
	}
	d := decoder{rest: b}
	for _, n := range []*int{&r.waiting, &r.done, &r.denied, &r.failed, &r.leftOut} {
		*n = d.count()
	}
	r.oldest = timeOf(d.number())
	if d.failed || len(d.rest) > 0 {
		return hostRecord{}, errRecord
	}
	return r, nil
}

// secondsOf returns t in Unix seconds, or 0 for the zero time.
func secondsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// timeOf is the inverse of secondsOf.
func timeOf(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// encodePage returns the record of a page, without the facts that its key has. The Key of a page is
// recorded after an equals sign, or as "" if it is the URL.
func encodePage(p *urlstore.Page) []byte {
	b := make([]byte, 0, 32+len(p.URL)+len(p.From)+len(p.Request))
	b = binary.AppendVarint(b, p.Found.UnixNano())
	b = appendText(b, p.URL)
	key := ""
	if p.Key != p.URL {
		key = "=" + p.Key
	}
	b = appendText(b, key)
	b = binary.AppendVarint(b, int64(p.Collector))
	b = binary.AppendVarint(b, int64(p.Depth))
	b = appendText(b, p.From)
	b = binary.AppendUvarint(b, uint64(p.Attempts))
	if p.Request == nil {
		return append(b, 0)
	}
	return append(append(b, 1), p.Request...)
}

// decodePage decodes a page of a host.
func decodePage(b []byte, host string, at position) (*urlstore.Page, error) {
	d := decoder{rest: b}
	p := &urlstore.Page{Host: host, ID: at.id}
	p.Found = time.Unix(0, d.number())
	p.URL = d.text()
	p.Key = p.URL
	if key := d.text(); key != "" {
		p.Key = key[1:]
	}
	p.Collector = int(d.number())
	p.Depth = int(d.number())
	p.From = d.text()
	p.Attempts = d.count()
	switch d.byte() {
	case 0:
		d.failed = d.failed || len(d.rest) > 0
	case 1:
		p.Request = append([]byte{}, d.rest...)
	default:
		return nil, errRecord
	}
	if d.failed {
		return nil, errRecord
	}
	return p, nil
}

// foundOf returns when an encoded page was found, or the zero time if b is not a page.
func foundOf(b []byte) time.Time {
	d := decoder{rest: b}
	nanoseconds := d.number()
	if d.failed {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

// appendText appends the length of s and s.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// A decoder reads the parts of a record. When a part is missing, it sets failed and returns zero
// values from then on.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() {
	d.failed = true
	d.rest = nil
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads a number of things, which fits into 31 bits or is clearly wrong.
func (d *decoder) count() int {
	const most = 1<<53 - 1
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > most || int(v) < 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

func (d *decoder) text() string {
	n := d.count()
	if n > len(d.rest) {
		d.fail()
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}
