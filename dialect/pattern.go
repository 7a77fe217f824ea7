package dialect

import (
	"bytes"
	"slices"
	"strings"
)

// compile makes the text and flags of a draft from its pattern: the normal form
// with trailing wildcards and the final anchor taken off. The text is put in
// c.buf unless the pattern as written begins with it.
func (c *compiler) compile(d *draft, pattern string) {
	if c.v.plain || isCanonical(pattern) && strings.IndexByte(pattern, '?') < 0 {
		d.size, d.rank, d.probe = uint32(len(pattern)), uint32(len(pattern)), probeFor(pattern)
		return
	}
	body := pattern
	if strings.HasSuffix(body, "$") {
		body = body[:len(body)-1]
		d.flags |= anchored
	}
	start := len(c.buf)
	d.rank = uint32(len(pattern) - len(body) + c.normalize(body))
	head := c.simplify(d, start)
	if c.v.coding == canonical && d.flags&wild != 0 {
		c.twoForms(d, start)
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

// normalize appends the normal form of a pattern without its anchor to c.buf
// and returns how many octets it has for the comparison of rules.
func (c *compiler) normalize(body string) int {
	start, widened := len(c.buf), 0
	if c.v.coding == canonical {
		// What is left of $ is not at the end and stands for itself.
		c.buf, widened = appendCanonical(c.buf, strings.ReplaceAll(body, "$", "%24"), true, false)
	} else {
		c.buf = appendEscapedPattern(c.buf, body)
	}
	return len(c.buf) - start + widened
}

// simplify takes the wildcards that change nothing off the text at start, and
// sets the flags that the remaining ones need. It returns how many octets stand
// before the first of these.
func (c *compiler) simplify(d *draft, start int) (head int) {
	text := c.buf[start:]
	if n := len(text); n > 0 && text[n-1] == '*' {
		text = bytes.TrimRight(text, "*")
		d.flags &^= anchored
	}
	if head = bytes.IndexByte(text, '*'); head >= 0 {
		d.flags |= wild
		text = slices.CompactFunc(text, func(a, b byte) bool { return a == '*' && b == '*' })
	} else {
		head = len(text)
	}
	c.buf = c.buf[:start+len(text)]
	return head
}

// twoForms adds a second form to a text at start in which what follows a
// wildcard may stand in the path or in the query of a URL, where an octet like
// / differs from its escape or equals it: after the form for the path a line
// feed, then the form for the query. If they are the same, one is enough.
func (c *compiler) twoForms(d *draft, start int) {
	path := c.buf[start:]
	star := bytes.IndexByte(path, '*')
	if bytes.IndexByte(path[star:], '%') < 0 || bytes.IndexByte(path[:star], '?') >= 0 {
		return
	}
	end := len(c.buf)
	query := append(append(c.buf, '\n'), path[:star]...)
	query, _ = appendCanonical(query, string(path[star:]), true, true)
	if string(query[end+1:]) == string(path) {
		return
	}
	c.buf = query
	d.flags |= twofold
}

// matchWild reports whether a text with wildcards matches the beginning of s,
// or all of it; star is where the first wildcard probably stands. Each piece
// between wildcards is taken where it first occurs, which leaves the most to
// the others: no backtracking, so linear in s.
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

// matchTwofold is matchWild for a text of two forms: each piece is taken where
// its path form occurs first, or its query form in the query.
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

// endOfPiece returns the first place in s where p ends that begins at pos or
// later, or q that begins in the query, too; -1 if there is none.
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
