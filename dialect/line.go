package dialect

import (
	"strings"
	"unicode"
)

// A kind is what a line says.
type kind uint8

const (
	otherLine kind = iota
	agentLine
	allowLine
	disallowLine
	delayLine
	sitemapLine
)

// googleLineLimit is how many octets google/robotstxt keeps of a line: eight
// times the longest URL that Internet Explorer knew, less one.
const googleLineLimit = 2083*8 - 1

// parseLine returns what a line says and the place of its value in the line.
// Lines that say nothing in this dialect are otherLine.
func (v *variant) parseLine(line string) (k kind, from, to int) {
	if v.lenient {
		k, from, to = parseLenientLine(line)
	} else {
		k, from, to = parseStrictLine(line)
	}
	if k == sitemapLine {
		value := strings.TrimLeftFunc(line[from:to], unicode.IsSpace)
		from = to - len(value)
		to = from + len(strings.TrimRightFunc(value, unicode.IsSpace))
	}
	return k, from, to
}

// parseStrictLine is parseLine as RFC 9309 describes lines. Only blanks and tabs
// are white space.
func parseStrictLine(line string) (k kind, from, to int) {
	k, rest := cutKey(trimLeft(line), exactKeys)
	if k == otherLine {
		return otherLine, 0, 0
	}
	rest = trimLeft(rest)
	if rest == "" || rest[0] != ':' {
		return otherLine, 0, 0
	}
	value := trimLeft(rest[1:])
	from = len(line) - len(value)
	if i := strings.IndexByte(value, '#'); i >= 0 {
		value = value[:i]
	}
	return k, from, from + len(trimRight(value))
}

// parseLenientLine is parseLine as google/robotstxt does it: the colon may be
// missing between exactly two words, and the key is known by its beginning.
func parseLenientLine(line string) (k kind, from, to int) {
	if k, _ = cutKey(trimLeftSpace(line), googleKeys); k == otherLine {
		return otherLine, 0, 0
	}
	line = cutLenient(line)
	at, separator := splitLenient(line)
	if separator == 0 {
		return otherLine, 0, 0
	}
	if separator == ' ' { // it may be the one in a key of two words
		k, _ = cutKey(trimLeftSpace(line[:at]), googleKeys)
	}
	value := trimLeftSpace(line[at+1:])
	from = len(line) - len(value)
	return k, from, from + len(trimRightSpace(value))
}

// cutLenient ends a line where Google does: after so many octets, at a NUL, at
// a comment.
func cutLenient(line string) string {
	line = line[:min(len(line), googleLineLimit)]
	if i := strings.IndexByte(line, 0); i >= 0 {
		line = line[:i]
	}
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	return line
}

// splitLenient returns the place of the octet that separates the key of a line
// from its value, and that octet, 0 if there is none: the first colon, or one
// of the blanks between exactly two words.
func splitLenient(line string) (at int, separator byte) {
	if at = strings.IndexByte(line, ':'); at >= 0 {
		return at, ':'
	}
	words := trimLeftSpace(line)
	start := len(line) - len(words)
	words = trimRightSpace(words)
	i := strings.IndexAny(words, " \t")
	if i < 0 || strings.ContainsAny(trimLeft(words[i:]), " \t") {
		return 0, 0
	}
	return start + i, ' '
}

// trimLeft and trimRight take off blanks and tabs, the WS of RFC 9309 2.2.
func trimLeft(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

func trimRight(s string) string {
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// trimLeftSpace and trimRightSpace take off any ASCII white space, as
// google/robotstxt does.
func trimLeftSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

func trimRightSpace(s string) string {
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
