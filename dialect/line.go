package dialect

import (
	"strings"
	"unicode"
)

// A kind is the meaning of a line.
type kind uint8

const (
	otherLine kind = iota
	agentLine
	allowLine
	disallowLine
	delayLine
	sitemapLine
	rateLine
	visitLine
	cleanLine
	usageLine      // Content-Usage
	signalLine     // Content-Signal in a group
	siteSignalLine // Content-Signal before any group; not the kind of a key
	licenseLine
	gapLine // the end of a run of User-agent lines before any rule; not the kind of a line with a key
)

// googleLineLimit is how many bytes of a line google/robotstxt reads: eight times the maximum URL
// length of Internet Explorer, minus one.
const googleLineLimit = 2083*8 - 1

// parseLine returns the kind of a line. The value of the line is line[from:to]. Lines without a
// meaning in this dialect are otherLine.
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

// parseStrictLine is like parseLine and parses a line according to RFC 9309. Only spaces and tabs
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

// parseLenientLine is like parseLine and parses a line like google/robotstxt: the colon may be
// missing between exactly two words, and only the beginning of the key is compared.
func parseLenientLine(line string) (k kind, from, to int) {
	k, _ = cutKey(trimLeftSpace(line), googleKeys)
	if k == otherLine {
		return otherLine, 0, 0
	}
	line = cutLenient(line)
	at, separator := splitLenient(line)
	if separator == 0 {
		return otherLine, 0, 0
	}
	if separator == ' ' { // the space may be the one within "user agent", which is then not a key
		k, _ = cutKey(trimLeftSpace(line[:at]), googleKeys)
	}
	value := trimLeftSpace(line[at+1:])
	from = len(line) - len(value)
	return k, from, from + len(trimRightSpace(value))
}

// cutLenient returns the part of a line that Google reads: at most googleLineLimit bytes, up to the
// first NUL or the comment.
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

// splitLenient returns the position of the separator between the key and the value of a line, and
// the separator itself. The separator is the first colon or, if there is no colon, the first white
// space between exactly two words, which is returned as a space. If there is no separator,
// splitLenient returns 0 for it.
func splitLenient(line string) (at int, separator byte) {
	at = strings.IndexByte(line, ':')
	if at >= 0 {
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

// trimLeft and trimRight remove spaces and tabs, which are the white space of RFC 9309 (2.2, WS).
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

// trimLeftSpace and trimRightSpace remove all ASCII white space, like google/robotstxt.
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
