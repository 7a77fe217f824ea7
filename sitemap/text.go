package sitemap

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// beginsWithURL reports whether the document begins with a URL, which makes it a text sitemap. It
// consumes the white space and byte order marks before the URL.
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

// headingSize is the maximum size of a heading in bytes.
const headingSize = 1024

// beginsWithHeading reports whether the document begins with a heading of a few lines that is
// followed by a line with a URL, which also makes it a text sitemap. It consumes the heading. A
// heading contains no "<", "{" or "[", so that XML, HTML and JSON are not mistaken for text.
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

// readLine reads the next entry of a text sitemap into e. A last line without a line break is an
// entry, unless the document was cut short.
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
		line = trim(line)
		if len(line) == 0 {
			continue
		}
		r.entry.Loc = r.locateLine(line)
		if r.entry.Loc == "" {
			return r.fault(SeverityEntry, r.at, "loc", string(line), ErrBadLoc)
		}
		r.has = true
	}
}

// locateLine is like locate but accepts a relative URL only if it begins with a slash: other lines
// of a text sitemap are more likely words.
func (r *Reader) locateLine(line []byte) string {
	if line[0] != '/' && !hasHTTP(string(line[:min(len(line), 8)])) {
		return ""
	}
	return r.locate(line)
}

// line consumes a line and returns it without its line break. A line ends at an LF or a CR. CR LF
// therefore produces an additional empty line, which readLine skips.
func (r *Reader) line() ([]byte, error) {
	w := &r.win
	max := int(r.Limits.Field)
	for seen := 0; ; {
		if i := bytes.IndexAny(w.rest()[seen:], "\r\n"); i >= 0 && seen+i <= max {
			line := w.rest()[:seen+i]
			w.pos += seen + i + 1
			return line, nil
		}
		seen = len(w.rest())
		if seen > max {
			return nil, r.longLine()
		}
		if !w.more() {
			return r.lastLine()
		}
	}
}

// lastLine consumes and returns the last line, which has no line break. It returns io.EOF if that
// line is empty.
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

// longLine consumes a line that is longer than Limits.Field and returns its error.
func (r *Reader) longLine() error {
	r.win.find('\n')
	return r.fault(SeverityEntry, r.at, "loc", "", &LimitError{Limit: "Field", Max: r.Limits.Field})
}
