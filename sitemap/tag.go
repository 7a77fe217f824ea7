package sitemap

import "bytes"

// A tag is what the beginning of a tag says: "<prefix:local" or
// "</prefix:local".
type tag struct {
	text  [longestName]byte // all of it, in lower case
	start int               // of the name
	colon int               // 0 if there is none
	size  int               // octets up to the end of the name
	end   bool              // it is an end tag
}

// longestName is longer than any name of the formats; longer ones are cut.
const longestName = 64

func (t *tag) local() []byte { return t.text[max(t.start, t.colon+1):t.size] }

func (t *tag) prefix() []byte { return t.text[t.start:max(t.start, t.colon)] }

// tag reads the name of the tag at which the window stands, and consumes
// nothing. What it returns is valid until the next call.
func (w *window) tag() *tag {
	t := &w.last
	for {
		rest := w.buf[w.pos:min(w.end, w.pos+longestName)]
		n := 1
		t.text[0] = '<'
		if t.end = len(rest) > 1 && rest[1] == '/'; t.end {
			t.text[1], n = '/', 2
		}
		t.start, t.colon = n, 0
		for ; n < len(rest); n++ {
			c := nameOctet[rest[n]]
			if c == ':' {
				t.colon = n
			} else if c == 0 {
				break
			}
			t.text[n] = c
		}
		if t.size = n; n < len(rest) || n == longestName || !w.more() {
			return t
		}
	}
}

// A tagMemory spares reading most tags: a document has few, and after one the
// next is most often the one that came after it the last time.
type tagMemory struct {
	known [32]knownTag
	last  *knownTag // that was read; nil at first
}

// A knownTag is a tag that was read before.
type knownTag struct {
	tag
	role role
	next *knownTag // that came after it the last time; nil if none did
}

// tag reads the name of the tag at which the window stands, as window.tag does,
// and returns its role, too.
func (r *Reader) tag() (*tag, role) {
	m := &r.tags
	if m.last != nil && m.last.next != nil && r.win.goesOn(&m.last.next.tag) {
		m.last = m.last.next
		return &m.last.tag, m.last.role
	}
	t := r.win.tag()
	k := &m.known[(t.size*5+int(t.text[t.size-1]))%len(m.known)]
	if string(t.text[:t.size]) != string(k.text[:k.size]) {
		k.tag, k.role = *t, r.roleOf(t)
	}
	if m.last != nil {
		m.last.next = k
	}
	m.last = k
	return &k.tag, k.role
}

// goesOn reports whether the document goes on with t, written as t.text is. It
// errs on the side of no, as for "<" alone, which may be the beginning of "</".
func (w *window) goesOn(t *tag) bool {
	rest := w.rest()
	return t.size > 1 && len(rest) > t.size && nameOctet[rest[t.size]] == 0 &&
		string(rest[:t.size]) == string(t.text[:t.size])
}

// nameOctet holds, for each octet that may be part of a name as far as finding
// its end is concerned, its lower case, and 0 for the others.
var nameOctet = func() (t [256]byte) {
	for i := range t {
		if c := byte(i); c > ' ' && bytes.IndexByte([]byte("/><=\"'"), c) < 0 {
			t[i] = lower(c)
		}
	}
	return t
}()

// pass consumes a tag whose name is size octets long. It returns the
// attributes, until the window moves, and whether the tag is its own end tag.
// A tag that lacks its ">" ends at the next "<"; one that is longer than max
// ends at its first ">", since a quote may be missing. ok is false if the
// document ends first, long is true if max was met.
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

// passEnd consumes the beginning of the end tag that belongs to the start tag
// t, if that is what comes and is at hand. It only saves reading the tag.
func (w *window) passEnd(t *tag) {
	rest := w.rest()
	if n := 1 + t.size; len(rest) > n && rest[1] == '/' && nameOctet[rest[n]] == 0 &&
		string(rest[2:n]) == string(t.text[1:t.size]) {
		w.pos += n
	}
}

// attribute returns the value of the attribute with that name, which is lower
// case, as it is written.
func attribute(attrs []byte, name string) (value []byte, ok bool) {
	for {
		key, value, rest, ok := nextAttribute(attrs)
		if !ok || equalFold(key, name) {
			return value, ok
		}
		attrs = rest
	}
}

// nextAttribute cuts an attribute from the front of attrs. Quotes may be
// missing, and what is no attribute is passed over.
func nextAttribute(attrs []byte) (key, value, rest []byte, ok bool) {
	for len(attrs) > 0 {
		n := 0
		for n < len(attrs) && nameOctet[attrs[n]] != 0 {
			n++
		}
		key, attrs = attrs[:n], bytes.TrimLeft(attrs[n:], " \t\r\n")
		if n > 0 && len(attrs) > 0 && attrs[0] == '=' {
			value, rest = cutValue(bytes.TrimLeft(attrs[1:], " \t\r\n"))
			return key, value, rest, true
		}
		if n == 0 && len(attrs) > 0 && nameOctet[attrs[0]] == 0 {
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
