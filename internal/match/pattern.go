package match

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"
)

// SetPattern sets the text, the kind and the rank of d from a pattern in which * and $ are special.
// It appends the text to buf, whose bytes d then refers to, and returns the result. The rank is the
// length of the pattern in its encoded form, including wildcards and the anchor.
func (d *Draft) SetPattern(buf []byte, pattern string, c Coding) []byte {
	d.Rank = uint32(len(pattern))
	if IsCanonical(pattern) && strings.IndexByte(pattern, '?') < 0 {
		d.Text = pattern
		return buf
	}
	body := pattern
	if strings.HasSuffix(body, "$") {
		body = body[:len(body)-1]
		d.Kind |= Anchored
	}
	start := len(buf)
	buf, counted := appendPattern(buf, body, c)
	d.Rank = uint32(len(pattern) - len(body) + counted)
	buf = d.simplify(buf, start)
	if c == Canonical && d.Kind&Wild != 0 {
		buf = d.addSecondForm(buf, start, body)
	}
	text := buf[start:]
	if n := len(text); n <= len(d.Pattern) && d.Pattern[:n] == string(text) {
		d.Text = d.Pattern[:n]
		return buf[:start]
	}
	// The string is safe: the caller does not change these bytes before New copies them.
	d.Text = unsafe.String(unsafe.SliceData(text), len(text))
	return buf
}

// appendPattern appends the normal form of a pattern without its anchor. It also returns the number
// of bytes that count when rules are compared.
func appendPattern(buf []byte, body string, c Coding) (result []byte, counted int) {
	start := len(buf)
	widened := 0
	if c == Canonical {
		buf, widened = appendCanonical(buf, literalDollars(body), true, false)
	} else {
		buf = appendEscapedPattern(buf, body)
	}
	return buf, len(buf) - start + widened
}

// literalDollars escapes each $ in a pattern whose anchor has been removed, because such a $ stands
// for itself.
func literalDollars(body string) string { return strings.ReplaceAll(body, "$", "%24") }

// simplify removes redundant wildcards from the text at buf[start:] and sets the kind of d
// accordingly. With a wildcard at its end, a text is not anchored.
func (d *Draft) simplify(buf []byte, start int) []byte {
	text := buf[start:]
	if bytes.HasSuffix(text, []byte("*")) {
		d.Kind &^= Anchored
	}
	text = trimWildcards(text)
	if bytes.IndexByte(text, '*') >= 0 {
		d.Kind |= Wild
	}
	return buf[:start+len(text)]
}

// trimWildcards removes trailing and repeated wildcards from a text in place.
func trimWildcards(text []byte) []byte {
	text = bytes.TrimRight(text, "*")
	return slices.CompactFunc(text, func(a, b byte) bool { return a == '*' && b == '*' })
}

// addSecondForm adds a second form to the text at buf[start:] if the part of the pattern after a
// wildcard can match in the path or in the query of a URL. Two forms are necessary because a byte
// like / differs from its escape in the path but equals it in the query. The second form follows
// the first after a line feed. It is created from the pattern as written, so that no escape is
// decoded twice. If both forms are equal, addSecondForm does not add the second.
func (d *Draft) addSecondForm(buf []byte, start int, body string) []byte {
	path := buf[start:]
	star := bytes.IndexByte(path, '*')
	if bytes.IndexByte(path[star:], '%') < 0 || bytes.IndexByte(path[:star], '?') >= 0 {
		return buf
	}
	end := len(buf)
	query := append(append(buf, '\n'), path[:star]...)
	tail := literalDollars(body[strings.IndexByte(body, '*'):])
	query, _ = appendCanonical(query, tail, true, true)
	query = query[:end+1+len(trimWildcards(query[end+1:]))]
	if string(query[end+1:]) == string(path) {
		return buf
	}
	d.Kind |= TwoForms
	return query
}
