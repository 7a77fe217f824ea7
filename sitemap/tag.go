package sitemap

import "bytes"

// A tag is what the beginning of a tag tells: "<prefix:local" or
// "</prefix:local". Its slices are valid until the window moves.
type tag struct {
	prefix, local []byte
	end           bool
	size          int // octets up to the end of the name
}

// longestName is longer than any name of the formats; longer ones are cut.
const longestName = 64

// tag reads the name of the tag at which the window stands, and consumes
// nothing.
func (w *window) tag() tag {
	for {
		rest := w.rest()
		n := 1
		for n < len(rest) && (nameOctet[rest[n]] || n == 1 && rest[n] == '/') && n < longestName {
			n++
		}
		if n < len(rest) || !w.more() {
			return newTag(rest[:n])
		}
	}
}

// newTag takes "<name" or "</name" apart.
func newTag(b []byte) tag {
	t := tag{size: len(b)}
	name := b[1:]
	if len(name) > 0 && name[0] == '/' {
		t.end, name = true, name[1:]
	}
	t.local = name
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		t.prefix, t.local = name[:i], name[i+1:]
	}
	return t
}

// nameOctet holds the octets that may be part of a name as far as finding its
// end is concerned.
var nameOctet = func() (t [256]bool) {
	for c := range t {
		t[c] = c > ' ' && c != '/' && c != '>' && c != '<' && c != '=' && c != '"' && c != '\''
	}
	return t
}()

// pass consumes a tag whose name is size octets long. It returns the
// attributes, until the window moves, and whether the tag is its own end tag.
// A tag that lacks its ">" ends at the next "<"; one that is longer than max
// ends at its first ">", since a quote may be missing. ok is false if the
// document ends first, long is true if max was met.
func (w *window) pass(size int, max int64) (attrs []byte, empty, long, ok bool) {
	var quote byte
	for i := size; ; i++ {
		if i == w.end-w.pos && !w.more() {
			return nil, false, false, false
		}
		if int64(i) > max {
			return nil, false, true, w.find('>')
		}
		c := w.buf[w.pos+i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>' || c == '<':
			attrs = w.rest()[size:i]
			w.pos += i
			if c == '>' {
				w.pos++
			}
			empty = len(attrs) > 0 && attrs[len(attrs)-1] == '/'
			return attrs, empty, false, true
		}
	}
}

// attribute returns the value of the attribute with that local name, as it is
// written. Quotes may be missing.
func attribute(attrs []byte, name string) (value []byte, ok bool) {
	for {
		attrs = bytes.TrimLeft(attrs, " \t\r\n/")
		n := 0
		for n < len(attrs) && nameOctet[attrs[n]] {
			n++
		}
		key := attrs[:n]
		attrs = bytes.TrimLeft(attrs[n:], " \t\r\n")
		if n == 0 && len(attrs) == 0 {
			return nil, false
		}
		if len(attrs) == 0 || attrs[0] != '=' {
			if n == 0 {
				attrs = attrs[1:]
			}
			continue
		}
		value, attrs = cutValue(bytes.TrimLeft(attrs[1:], " \t\r\n"))
		if equalFold(key, name) {
			return value, true
		}
	}
}

// cutValue cuts the value of an attribute from the front of b.
func cutValue(b []byte) (value, rest []byte) {
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		value, rest, _ = bytes.Cut(b[1:], b[:1])
		return value, rest
	}
	n := bytes.IndexAny(b, " \t\r\n")
	if n < 0 {
		n = len(b)
	}
	return b[:n], b[n:]
}
