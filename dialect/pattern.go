package dialect

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/collyrobots/collyrobots/dialect/internal/match"
)

// addPattern adds a draft of a rule that matches a pattern. The pattern may differ from the pattern
// of the rule as written.
func (c *compiler) addPattern(rule match.Rule, pattern string) {
	d := match.Draft{Rule: rule, Rank: uint32(len(pattern))}
	if c.v.plain || isCanonical(pattern) && strings.IndexByte(pattern, '?') < 0 {
		d.Text = pattern
	} else {
		c.compile(&d, pattern)
	}
	if c.v.prefixRank {
		d.Rank = prefixRank(d.Rank, pattern)
	}
	c.drafts = append(c.drafts, d)
}

// prefixRank returns the rank of a pattern without its wildcards and its anchor, but at least 1,
// which is the rank of / and *. rank includes them.
func prefixRank(rank uint32, pattern string) uint32 {
	special := strings.Count(pattern, "*")
	if strings.HasSuffix(pattern, "$") {
		special++
	}
	return max(1, rank-uint32(special))
}

// compile sets the text, the kind and the rank of a draft from a pattern in which * and $ are
// special. The text is the normal form of the pattern without trailing wildcards and the final
// anchor.
func (c *compiler) compile(d *match.Draft, pattern string) {
	body := pattern
	if strings.HasSuffix(body, "$") {
		body = body[:len(body)-1]
		d.Kind |= match.Anchored
	}
	start := len(c.buf)
	d.Rank = uint32(len(pattern) - len(body) + c.normalize(body))
	c.simplify(d, start)
	if c.v.coding == canonical && d.Kind&match.Wild != 0 {
		c.twoForms(d, start, body)
	}
	text := c.buf[start:]
	if n := len(text); n <= len(d.Pattern) && d.Pattern[:n] == string(text) {
		d.Text = d.Pattern[:n]
		c.buf = c.buf[:start]
		return
	}
	// The string is safe: these bytes do not change before reset, and match.New copies them.
	d.Text = unsafe.String(unsafe.SliceData(text), len(text))
}

// normalize appends the normal form of a pattern without its anchor to c.buf. It returns the number
// of bytes that count when rules are compared.
func (c *compiler) normalize(body string) int {
	start := len(c.buf)
	widened := 0
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

// simplify removes redundant wildcards from the text at c.buf[start:] and sets the kind of the
// draft accordingly. With a wildcard at its end, a text is not anchored.
func (c *compiler) simplify(d *match.Draft, start int) {
	text := c.buf[start:]
	if bytes.HasSuffix(text, []byte("*")) {
		d.Kind &^= match.Anchored
	}
	text = trimWildcards(text)
	c.buf = c.buf[:start+len(text)]
	if bytes.IndexByte(text, '*') >= 0 {
		d.Kind |= match.Wild
	}
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
func (c *compiler) twoForms(d *match.Draft, start int, body string) {
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
	d.Kind |= match.TwoForms
}
