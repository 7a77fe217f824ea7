package sitemap

import (
	"bytes"
	"io"
)

// A window is the part of the document that is in memory. It slides over the input. It grows only
// if a single token does not fit, and Limits.Tag and Limits.Field bound the size of a token.
type window struct {
	src  io.Reader
	buf  []byte // buf[pos:end] has been read and not consumed
	pos  int
	end  int
	base int64 // offset of buf[0] in the document
	err  error // error of the last read of src
	last tag   // result of the method tag
}

const windowSize = 64 << 10

// rest returns the bytes that have been read and not consumed. They are valid until the next call
// of more.
func (w *window) rest() []byte { return w.buf[w.pos:w.end] }

// offset returns the current position in the document.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// more adds at least one byte to rest. If it cannot, it returns false and sets w.err.
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

// slide makes room at the end of the buffer. It doubles the buffer if nothing has been consumed,
// and otherwise moves the rest to the front.
func (w *window) slide() {
	buf := w.buf
	if w.pos == 0 {
		buf = make([]byte, 2*len(w.buf))
	}
	w.end = copy(buf, w.buf[w.pos:w.end])
	w.base += int64(w.pos)
	w.buf = buf
	w.pos = 0
}

// find consumes everything before the next c. It returns false if c does not occur. It first looks
// at four bytes one by one: c is usually among them, and the loop is then faster than
// bytes.IndexByte.
func (w *window) find(c byte) bool {
	for near := min(w.pos+4, w.end); w.pos < near; w.pos++ {
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

// skipPast consumes everything up to the end of the next s. It returns false if s does not occur.
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

// index returns the distance to the next s in bytes, or -1 if the distance is more than max or s
// does not occur.
func (w *window) index(s string, max int64) int {
	for seen := 0; ; {
		rest := w.rest()
		if i := bytes.Index(rest[seen:], []byte(s)); i >= 0 {
			if int64(seen+i) > max {
				return -1
			}
			return seen + i
		}
		seen = len(rest) - len(s) + 1
		if seen < 0 {
			seen = 0
		}
		if int64(seen) > max || !w.more() {
			return -1
		}
	}
}

// starts reports whether the document continues with s, ignoring the case of ASCII letters. s must
// be lower-case ASCII.
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

// equalFold reports whether b equals s, ignoring the case of ASCII letters. s must have no
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
