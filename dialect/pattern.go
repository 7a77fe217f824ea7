package dialect

import (
	"bytes"
	"slices"
	"strings"
)

// compile sets the text and the flags of a draft from its pattern. The text is the normal form of
// the pattern without trailing wildcards and the final anchor. compile appends it to c.buf, unless
// the pattern as written begins with it.
func (c *compiler) compile(d *draft, pattern string) {
	start := len(c.buf)
	head := 0
	switch {
	case c.v.plain:
		d.rank = uint32(len(pattern))
		head = len(pattern)
		c.buf = append(c.buf, pattern...)
	case isCanonical(pattern) && strings.IndexByte(pattern, '?') < 0:
		d.size = uint32(len(pattern))
		d.rank = uint32(len(pattern))
		d.probe = probeFor(pattern)
		return
	default:
		head = c.compileSpecial(d, pattern)
	}
	text := c.buf[start:]
	d.at, d.size = uint32(start), uint32(len(text))
	d.probe = probeFor(text[:head])
	if w := c.written(d); len(text) <= len(w) && w[:len(text)] == string(text) {
		c.buf = c.buf[:start]
	} else {
		d.flags |= rewritten
	}
}

// compileSpecial compiles a pattern in which * and $ are special. It appends the text to c.buf and
// returns the number of bytes before the first wildcard.
func (c *compiler) compileSpecial(d *draft, pattern string) (head int) {
	body := pattern
	if strings.HasSuffix(body, "$") {
		body = body[:len(body)-1]
		d.flags |= anchored
	}
	start := len(c.buf)
	d.rank = uint32(len(pattern) - len(body) + c.normalize(body))
	head = c.simplify(d, start)
	if c.v.coding == canonical && d.flags&wild != 0 {
		c.twoForms(d, start, body)
	}
	return head
}

// normalize appends the normal form of a pattern without its anchor to c.buf. It returns the number
// of bytes that count when rules are compared.
func (c *compiler) normalize(body string) int {
	start, widened := len(c.buf), 0
	if c.v.coding == canonical {
		c.buf, widened = appendCanonical(c.buf, literalDollars(body), true, false)
	} else {
		c.buf = appendEscapedPattern(c.buf, body)
	}
	return len(c.buf) - start + widened
}

// literalDollars escapes each $ in a pattern whose anchor has been removed, because such a $ stands
// for itself.
func literalDollars(body string) string { return strings.ReplaceAll(body, "$", "%24") }

// simplify removes redundant wildcards from the text at c.buf[start:] and sets the flags for the
// others. It returns the number of bytes before the first of the remaining wildcards.
func (c *compiler) simplify(d *draft, start int) (head int) {
	text := c.buf[start:]
	if n := len(text); n > 0 && text[n-1] == '*' {
		d.flags &^= anchored
	}
	text = trimWildcards(text)
	c.buf = c.buf[:start+len(text)]
	if head = bytes.IndexByte(text, '*'); head >= 0 {
		d.flags |= wild
		return head
	}
	return len(text)
}

// trimWildcards removes trailing and repeated wildcards from a text in place.
func trimWildcards(text []byte) []byte {
	text = bytes.TrimRight(text, "*")
	return slices.CompactFunc(text, func(a, b byte) bool { return a == '*' && b == '*' })
}

// twoForms adds a second form to the text at c.buf[start:] if the part of the pattern after a
// wildcard can match in the path or in the query of a URL. Two forms are necessary because a byte
// like / differs from its escape in the path but equals it in the query. The second form follows
// the first after a line feed. It is created from the pattern as written, so that no escape is
// decoded twice. If both forms are equal, twoForms does not add the second.
func (c *compiler) twoForms(d *draft, start int, body string) {
	path := c.buf[start:]
	star := bytes.IndexByte(path, '*')
	if bytes.IndexByte(path[star:], '%') < 0 || bytes.IndexByte(path[:star], '?') >= 0 {
		return
	}
	end := len(c.buf)
	query := append(append(c.buf, '\n'), path[:star]...)
	tail := literalDollars(body[strings.IndexByte(body, '*'):])
	query, _ = appendCanonical(query, tail, true, true)
	query = query[:end+1+len(trimWildcards(query[end+1:]))]
	if string(query[end+1:]) == string(path) {
		return
	}
	c.buf = query
	d.flags |= twofold
}

// matchWild reports whether a text with wildcards matches the beginning of s or, if anchored is
// set, all of s. star is the probable position of the first wildcard. Each piece between wildcards
// is matched at its first occurrence, which leaves as much of s as possible to the later pieces.
// Therefore there is no backtracking, and the time is linear in the length of s.
func matchWild(text, s string, star int, anchored bool) bool {
	if star >= len(text) || text[star] != '*' {
		star = strings.IndexByte(text, '*')
	}
	if !strings.HasPrefix(s, text[:star]) {
		return false
	}
	s, text = s[star:], text[star+1:]
	for {
		i := strings.IndexByte(text, '*')
		if i < 0 {
			if anchored {
				return strings.HasSuffix(s, text)
			}
			return strings.Contains(s, text)
		}
		at := strings.Index(s, text[:i])
		if at < 0 {
			return false
		}
		s, text = s[at+i:], text[i+1:]
	}
}

// matchTwofold is like matchWild for a text with two forms. Each piece is matched at the first
// occurrence of its path form, or of its query form in the query, whichever ends first.
func matchTwofold(text, s string, anchored bool) bool {
	path, query, _ := strings.Cut(text, "\n")
	start := strings.IndexByte(s, '?') + 1
	if start == 0 {
		return matchWild(path, s, 0, anchored)
	}
	pos := strings.IndexByte(path, '*')
	if !strings.HasPrefix(s, path[:pos]) {
		return false
	}
	path, query = path[pos+1:], query[pos+1:]
	for more := true; more; {
		var p, q string
		p, path, more = strings.Cut(path, "*")
		q, query, _ = strings.Cut(query, "*")
		if !more && anchored {
			return strings.HasSuffix(s[pos:], p) || strings.HasSuffix(s[max(pos, start):], q)
		}
		if pos = endOfPiece(s, p, q, pos, start); pos < 0 {
			return false
		}
	}
	return true
}

// endOfPiece returns the end of the first occurrence of p in s[pos:] or of q in the part of s[pos:]
// that is in the query, whichever ends first. The query begins at the given offset. endOfPiece
// returns -1 if there is no occurrence.
func endOfPiece(s, p, q string, pos, query int) int {
	end := -1
	if at := strings.Index(s[pos:], p); at >= 0 {
		end = pos + at + len(p)
	}
	query = max(pos, query)
	if at := strings.Index(s[query:], q); at >= 0 && (end < 0 || query+at+len(q) < end) {
		end = query + at + len(q)
	}
	return end
}
