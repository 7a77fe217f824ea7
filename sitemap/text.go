package sitemap

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// beginsWithURL reports whether the first thing in the document is a URL,
// which makes it a text sitemap. Blanks and byte order marks do not count.
func (r *Reader) beginsWithURL() bool {
	w := &r.win
	for w.offset() < rootWithin {
		for !utf8.FullRune(w.rest()) && w.more() {
		}
		c, n := utf8.DecodeRune(w.rest())
		if n == 0 || !looksBlank(c) {
			break
		}
		w.pos += n
	}
	return w.starts("http://") || w.starts("https://")
}

// headingSize is the most that a heading may have.
const headingSize = 1024

// beginsWithHeading reports whether the document has a heading of a few lines
// and then a line that is a URL, which makes it a text sitemap, too. It
// consumes the heading. A document with markup or the brackets of JSON has
// none.
func (r *Reader) beginsWithHeading() bool {
	w := &r.win
	for start := 0; ; {
		rest := w.rest()[:min(len(w.rest()), headingSize)]
		i := bytes.IndexByte(rest[start:], '\n')
		if bytes.ContainsAny(rest[start:], "<{[") || i < 0 && (len(rest) == headingSize || !w.more()) {
			return false
		}
		if i < 0 {
			continue
		}
		start += i + 1
		for w.end-w.pos < start+len("https://") && w.more() {
		}
		line := w.rest()[start:]
		if next := line[:min(len(line), len("https://"))]; start < headingSize && hasHTTP(string(next)) {
			w.pos += start
			return true
		}
	}
}

// readLine reads the next entry of a text sitemap into e. A last line without
// an end is taken if the document was not cut.
func (r *Reader) readLine(e *Entry) error {
	for {
		if r.has {
			return r.deliver(e)
		}
		r.at = r.win.offset()
		line, err := r.line()
		if err == io.EOF {
			return r.finish()
		}
		if err != nil {
			return err
		}
		if line = trim(line); len(line) == 0 {
			continue
		}
		if r.entry.Loc = r.locateLine(line); r.entry.Loc == "" {
			return r.fault(ScopeEntry, r.at, "loc", string(line), ErrBadLoc)
		}
		r.has = true
	}
}

// locateLine is locate for text sitemaps: in them, a word is no relative URL.
func (r *Reader) locateLine(line []byte) string {
	if line[0] != '/' && !hasHTTP(string(line[:min(len(line), 8)])) {
		return ""
	}
	return r.locate(line)
}

// line consumes a line and returns it without its end: LF, CR LF or CR.
func (r *Reader) line() ([]byte, error) {
	w, max := &r.win, int(r.Limits.Field)
	for seen := 0; ; {
		if i := bytes.IndexAny(w.rest()[seen:], "\r\n"); i >= 0 && seen+i <= max {
			line := w.rest()[:seen+i]
			w.pos += seen + i + 1
			return line, nil
		}
		if seen = len(w.rest()); seen > max {
			return nil, r.longLine()
		}
		if !w.more() {
			return r.lastLine()
		}
	}
}

// lastLine returns what is left when there is nothing more to come.
func (r *Reader) lastLine() ([]byte, error) {
	line := r.win.rest()
	if r.win.err != io.EOF {
		return nil, r.cut()
	}
	if len(line) == 0 {
		return nil, io.EOF
	}
	r.win.pos = r.win.end
	return line, nil
}

// longLine consumes a line that is longer than a field may be.
func (r *Reader) longLine() error {
	r.win.find('\n')
	return r.fault(ScopeEntry, r.at, "loc", "", &LimitError{"Field", r.Limits.Field})
}
