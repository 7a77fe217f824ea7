package dialect

import (
	"math/bits"
	"strings"
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

// SizeLimit is how many octets of a robots.txt file are read, 500 KiB: RFC 9309, 2.5,
// wants at least that many, Google ("File format") reads exactly as many. Hand at
// least one more to [Dialect.Parse], if there is one: it then knows a rule that ends
// at the limit from one that is cut there, which it drops.
const SizeLimit = 500 << 10

// googleLineLimit is how many octets google/robotstxt keeps of a line: eight times
// the longest URL that Internet Explorer knew, less one.
const googleLineLimit = 2083*8 - 1

// clip returns what of a body is read: at most SizeLimit octets, without the
// line that the limit cuts unless only its comment is cut.
func clip(body []byte) []byte {
	if len(body) <= SizeLimit {
		return body
	}
	rest := body[SizeLimit]
	body = body[:SizeLimit]
	if rest == '\n' || rest == '\r' {
		return body
	}
	start := len(body)
	for start > 0 && body[start-1] != '\n' && body[start-1] != '\r' {
		start--
	}
	for _, c := range body[start:] {
		if c == '#' {
			return body
		}
	}
	return body[:start]
}

// skipMark returns text without a UTF-8 byte order mark; a lenient dialect skips
// the beginning of one too.
func skipMark(text string, lenient bool) string {
	const mark = "\xEF\xBB\xBF"
	n := 0
	for n < len(mark) && n < len(text) && text[n] == mark[n] {
		n++
	}
	if n == len(mark) || lenient {
		return text[n:]
	}
	return text
}

// nextLine cuts the first line off text. Lines end at CR, LF or CR LF; a CR alone
// is looked for, octet by octet, only where there is one.
func nextLine(text string, bareCR bool) (line, rest string) {
	if bareCR {
		return nextOddLine(text)
	}
	end := strings.IndexByte(text, '\n')
	if end < 0 {
		return text, ""
	}
	line, rest = text[:end], text[end+1:]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	return line, rest
}

func nextOddLine(text string) (line, rest string) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\n', text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			return text[:i], text[i+1:]
		case text[i] == '\r':
			return text[:i], text[i+2:]
		}
	}
	return text, ""
}

// hasBareCR reports whether a CR ends a line on its own somewhere in text.
func hasBareCR(text string) bool {
	for {
		i := strings.IndexByte(text, '\r')
		if i < 0 {
			return false
		}
		if i+1 == len(text) || text[i+1] != '\n' {
			return true
		}
		text = text[i+2:]
	}
}

// A key is a spelling of a key and what it means.
type key struct {
	head, mask uint64 // its first octets, as foldHead gives them
	tail       string // the others
	kind       kind
}

// spell makes a key of its lower-case spelling.
func spell(name string, k kind) key {
	n := min(len(name), 8)
	return key{foldHead(name), 1<<(8*n) - 1, name[n:], k}
}

var exactKeys = []key{
	spell("disallow", disallowLine), spell("allow", allowLine), spell("user-agent", agentLine),
	spell("sitemap", sitemapLine), spell("crawl-delay", delayLine),
}

// googleKeys are beginnings of keys. The typos are those of google/robotstxt;
// crawl-delay is read for the crawls that honour it anyway.
var googleKeys = append(exactKeys[:5:5],
	spell("useragent", agentLine), spell("user agent", agentLine),
	spell("dissallow", disallowLine), spell("dissalow", disallowLine), spell("disalow", disallowLine),
	spell("diasllow", disallowLine), spell("disallaw", disallowLine),
	spell("site-map", sitemapLine),
)

// foldHead returns the first eight octets of s, letters in lower case. Setting a
// bit does that and leaves - and blank alone; the octets that it would confuse
// with those two, CR and NUL, end a line. (NUL only where a key has a blank.)
func foldHead(s string) (head uint64) {
	if len(s) >= 8 {
		return load64(s) | 0x2020202020202020
	}
	for i := len(s) - 1; i >= 0; i-- {
		head = head<<8 | uint64(s[i]|0x20)
	}
	return head
}

// load64 and load32 are binary.LittleEndian.Uint64 and Uint32 of a string.
func load64(s string) uint64 { return uint64(load32(s)) | uint64(load32(s[4:]))<<32 }

func load32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// parseLine returns what a line says and the value that it says it with, as the
// place in the line. Lines that say nothing in this dialect are otherLine.
func (v *variant) parseLine(line string) (k kind, from, to int) {
	if v.lenient {
		return parseLenientLine(line)
	}
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

// cutKey returns the meaning of the key that s begins with and what follows it.
func cutKey(s string, keys []key) (kind, string) {
	if s == "" || s[0] < 'A' {
		return otherLine, "" // most often a comment
	}
	head := foldHead(s)
	for i := range keys {
		k := &keys[i]
		if head&k.mask == k.head && hasTailFold(s, k.tail) {
			return k.kind, s[bits.Len64(k.mask)/8+len(k.tail):]
		}
	}
	return otherLine, ""
}

// hasTailFold reports whether tail, in lower case, follows the head of s.
func hasTailFold(s, tail string) bool {
	if tail == "" {
		return true
	}
	if len(s) < 8+len(tail) {
		return false
	}
	for i := 0; i < len(tail); i++ {
		if s[8+i]|0x20 != tail[i] {
			return false
		}
	}
	return true
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

// cutLenient ends a line where Google does: after so many octets, at a NUL, at a
// comment.
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
// from its value, and that octet, 0 if there is none: the first colon, or one of
// the blanks between exactly two words.
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
