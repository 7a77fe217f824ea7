package sitemap

import "bytes"

// A tag is the beginning of a start tag or an end tag up to the end of its name: "<prefix:local" or
// "</prefix:local".
type tag struct {
	text  [longestName]byte // text[:size] is the tag in lower case
	start int               // index of the name
	colon int               // index of the last colon, or 0 if there is none
	size  int               // number of bytes up to the end of the name
	end   bool              // whether it is an end tag
}

// longestName is the maximum size of a tag. It is larger than any name of the formats. Longer names
// are truncated.
const longestName = 64

func (t *tag) local() []byte { return t.text[max(t.start, t.colon+1):t.size] }

func (t *tag) prefix() []byte { return t.text[t.start:max(t.start, t.colon)] }

// tag returns the tag at the current position without consuming it. The result is valid until the
// next call.
func (w *window) tag() *tag {
	t := &w.last
	for {
		rest := w.buf[w.pos:min(w.end, w.pos+longestName)]
		n := 1
		t.text[0] = '<'
		t.end = len(rest) > 1 && rest[1] == '/'
		if t.end {
			t.text[1] = '/'
			n = 2
		}
		t.start = n
		t.colon = 0
		for ; n < len(rest); n++ {
			c := nameByte[rest[n]]
			if c == ':' {
				t.colon = n
			} else if c == 0 {
				break
			}
			t.text[n] = c
		}
		t.size = n
		if n < len(rest) || n == longestName || !w.more() {
			return t
		}
	}
}

// A tagMemory is a cache of the tags of a document. A document uses few different tags, and a tag
// is usually followed by the same tag as the last time. The cache predicts the next tag, so that
// most tags only need to be compared and not parsed.
type tagMemory struct {
	known [32]knownTag // a hash table; a collision replaces the older tag
	last  *knownTag    // the tag that was read last; nil at first
}

// A knownTag is a tag in the cache with its role.
type knownTag struct {
	tag
	role role
	next *knownTag // the tag that followed it the last time; nil if none has yet
}

// tag returns the tag at the current position, as window.tag does, and its role.
func (r *Reader) tag() (*tag, role) {
	m := &r.tags
	if m.last != nil && m.last.next != nil && r.win.goesOn(&m.last.next.tag) {
		m.last = m.last.next
		return &m.last.tag, m.last.role
	}
	t := r.win.tag()
	k := &m.known[(t.size*5+int(t.text[t.size-1]))%len(m.known)]
	if string(t.text[:t.size]) != string(k.text[:k.size]) {
		k.tag = *t
		k.role = r.roleOf(t)
	}
	if m.last != nil {
		m.last.next = k
	}
	m.last = k
	return &k.tag, k.role
}

// goesOn reports whether the document continues with t, spelled exactly like t.text. It returns
// false when it cannot be sure. For example, it never matches "<" without a name, which may be the
// beginning of "</".
func (w *window) goesOn(t *tag) bool {
	rest := w.rest()
	return t.size > 1 && len(rest) > t.size && nameByte[rest[t.size]] == 0 &&
		string(rest[:t.size]) == string(t.text[:t.size])
}

// nameByte maps each byte that can be part of a name to its lower case. It maps the bytes that end
// a name to 0.
var nameByte = func() (t [256]byte) {
	for i := range t {
		if c := byte(i); c > ' ' && bytes.IndexByte([]byte("/><=\"'"), c) < 0 {
			t[i] = lower(c)
		}
	}
	return t
}()

// pass consumes a tag. size is the number of bytes up to the end of its name, as in tag.size. pass
// returns the attributes, which are valid until the window moves, and reports in empty whether the
// tag is an empty-element tag. A tag without its ">" ends at the next "<". If the tag is longer
// than max, long is true and the tag ends at its first ">", even within quotes, because a quote may
// be missing. If the document ends within the tag, ok is false.
func (w *window) pass(size int, max int64) (attrs []byte, empty, long, ok bool) {
	if rest := w.rest(); len(rest) > size && rest[size] == '>' { // most have no attributes
		w.pos += size + 1
		return nil, false, false, true
	}
	var quote byte
	for i := size; ; i++ {
		if i == w.end-w.pos && !w.more() {
			w.pos = w.end
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

// passEnd consumes the name of the end tag of the start tag t, if that end tag is already in the
// window. Without passEnd, the tag would be read like any other and then ignored, which is slower.
func (w *window) passEnd(t *tag) {
	rest := w.rest()
	if n := 1 + t.size; len(rest) > n && rest[1] == '/' && nameByte[rest[n]] == 0 &&
		string(rest[2:n]) == string(t.text[1:t.size]) {
		w.pos += n
	}
}

// attribute returns the value of an attribute as it is written, without decoding references. name
// must be in lower case.
func attribute(attrs []byte, name string) (value []byte, ok bool) {
	for {
		key, value, rest, ok := nextAttribute(attrs)
		if !ok || equalFold(key, name) {
			return value, ok
		}
		attrs = rest
	}
}

// nextAttribute cuts the first attribute from the front of attrs. Its value may lack quotes. Text
// that is not an attribute is skipped.
func nextAttribute(attrs []byte) (key, value, rest []byte, ok bool) {
	for len(attrs) > 0 {
		n := 0
		for n < len(attrs) && nameByte[attrs[n]] != 0 {
			n++
		}
		key = attrs[:n]
		attrs = bytes.TrimLeft(attrs[n:], " \t\r\n")
		if n > 0 && len(attrs) > 0 && attrs[0] == '=' {
			value, rest = cutValue(bytes.TrimLeft(attrs[1:], " \t\r\n"))
			return key, value, rest, true
		}
		if n == 0 && len(attrs) > 0 && nameByte[attrs[0]] == 0 {
			attrs = attrs[1:]
		}
	}
	return nil, nil, nil, false
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
