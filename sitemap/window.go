package sitemap

import (
	"bytes"
	"io"
)

// A window is the part of the document that is in memory: it slides over the
// input and only grows if a single token asks for it, which limits forbid.
type window struct {
	src      io.Reader
	buf      []byte // buf[pos:end] has been read and not consumed
	pos, end int
	base     int64 // offset of buf[0] in the document
	err      error // why src has nothing more
	last     tag   // that was read
}

const windowSize = 64 << 10

// rest returns the octets at hand. It is valid until the next call of more.
func (w *window) rest() []byte { return w.buf[w.pos:w.end] }

// offset returns where in the document the window stands.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// more adds at least one octet to rest, or reports false and sets err.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	if w.buf == nil {
		w.buf = make([]byte, windowSize)
	}
	if w.end == len(w.buf) {
		w.slide()
	}
	n := 0
	for n == 0 && w.err == nil {
		n, w.err = w.src.Read(w.buf[w.end:])
	}
	w.end += n
	return n > 0
}

// slide makes room at the end, by growing only if nothing has been consumed.
func (w *window) slide() {
	buf := w.buf
	if w.pos == 0 {
		buf = make([]byte, 2*len(w.buf))
	}
	w.end = copy(buf, w.buf[w.pos:w.end])
	w.base += int64(w.pos)
	w.buf, w.pos = buf, 0
}

// find consumes everything before the next c.
func (w *window) find(c byte) bool {
	for near := min(w.pos+4, w.end); w.pos < near; w.pos++ { // more often than not
		if w.buf[w.pos] == c {
			return true
		}
	}
	for {
		if i := bytes.IndexByte(w.buf[w.pos:w.end], c); i >= 0 {
			w.pos += i
			return true
		}
		w.pos = w.end
		if !w.more() {
			return false
		}
	}
}

// skipPast consumes everything up to the end of the next s.
func (w *window) skipPast(s string) bool {
	for {
		if i := bytes.Index(w.rest(), []byte(s)); i >= 0 {
			w.pos += i + len(s)
			return true
		}
		w.pos = max(w.pos, w.end-len(s)+1)
		if !w.more() {
			return false
		}
	}
}

// index returns the distance to the next s, or -1 if it is more than max away
// or does not come.
func (w *window) index(s string, max int64) int {
	for seen := 0; ; {
		rest := w.rest()
		if i := bytes.Index(rest[seen:], []byte(s)); i >= 0 {
			if int64(seen+i) > max {
				return -1
			}
			return seen + i
		}
		if seen = len(rest) - len(s) + 1; seen < 0 {
			seen = 0
		}
		if int64(seen) > max || !w.more() {
			return -1
		}
	}
}

// starts reports whether the document goes on with s, which is lower-case
// ASCII, in any case.
func (w *window) starts(s string) bool {
	for {
		rest := w.rest()
		n := min(len(rest), len(s))
		if !equalFold(rest[:n], s[:n]) {
			return false
		}
		if n == len(s) {
			return true
		}
		if !w.more() {
			return false
		}
	}
}

// equalFold reports whether b is s but for the case of ASCII letters. s has no
// upper-case letters.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if lower(c) != s[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
