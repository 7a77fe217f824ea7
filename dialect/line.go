package dialect

import "strings"

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

// Size limits. RFC 9309 2.5 wants at least 500 KiB read, Google reads exactly
// that ("File format"); google/robotstxt keeps eight times the longest URL that
// Internet Explorer knew, less one, of a line.
const (
	// SizeLimit is how many octets of a robots.txt file are read. Hand at least
	// one more to Parse, if there is one: a rule that ends at the limit is then
	// told from a rule that is cut there and must be dropped.
	SizeLimit = 500 << 10

	googleLineLimit = 2083*8 - 1
)

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

// nextLine cuts the first line off text. Lines end at CR, LF or CR LF.
func nextLine(text string, bareCR bool) (line, rest string) {
	if bareCR {
		if i := strings.IndexAny(text, "\r\n"); i >= 0 {
			if strings.HasPrefix(text[i:], "\r\n") {
				return text[:i], text[i+2:]
			}
			return text[:i], text[i+1:]
		}
		return text, ""
	}
	i := strings.IndexByte(text, '\n')
	if i < 0 {
		return text, ""
	}
	rest = text[i+1:]
	if i > 0 && text[i-1] == '\r' {
		i--
	}
	return text[:i], rest
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
	name string // lower case
	kind kind
}

var exactKeys = []key{
	{"user-agent", agentLine}, {"disallow", disallowLine}, {"allow", allowLine},
	{"sitemap", sitemapLine}, {"crawl-delay", delayLine},
}

// googleKeys are beginnings of keys. The typos are those of google/robotstxt;
// crawl-delay is read for the crawls that honour it anyway.
var googleKeys = []key{
	{"user-agent", agentLine}, {"disallow", disallowLine}, {"allow", allowLine},
	{"sitemap", sitemapLine}, {"crawl-delay", delayLine},
	{"useragent", agentLine}, {"user agent", agentLine},
	{"dissallow", disallowLine}, {"dissalow", disallowLine}, {"disalow", disallowLine},
	{"diasllow", disallowLine}, {"disallaw", disallowLine},
	{"site-map", sitemapLine},
}

// parseLine returns what a line says and the value it says it with. Lines that
// say nothing in this dialect are otherLine.
func (v *variant) parseLine(line string) (kind, string) {
	if v.lenient {
		return parseLenientLine(line)
	}
	line = trimLeft(line)
	k, rest := cutKey(line, exactKeys)
	if k == otherLine {
		return otherLine, ""
	}
	rest = trimLeft(rest)
	if rest == "" || rest[0] != ':' {
		return otherLine, ""
	}
	if i := strings.IndexByte(rest, '#'); i >= 0 {
		rest = rest[:i]
	}
	return k, trim(rest[1:])
}

// cutKey returns the meaning of the key that s begins with and what follows it.
func cutKey(s string, keys []key) (kind, string) {
	if s == "" {
		return otherLine, ""
	}
	first := s[0] | 0x20
	for _, k := range keys {
		if k.name[0] == first && hasPrefixFold(s, k.name) {
			return k.kind, s[len(k.name):]
		}
	}
	return otherLine, ""
}

// hasPrefixFold reports whether s begins with the lower-case key name. Setting
// the bit makes letters lower case and leaves - and blank alone; the octets it
// would confuse with those two, CR and NUL, have ended the line before.
func hasPrefixFold(s, name string) bool {
	if len(s) < len(name) {
		return false
	}
	for i := 0; i < len(name); i++ {
		if s[i]|0x20 != name[i] {
			return false
		}
	}
	return true
}

// parseLenientLine is parseLine as google/robotstxt does it: the colon may be
// missing between exactly two words, and the key is known by its beginning.
func parseLenientLine(line string) (kind, string) {
	line = cutLenient(line)
	k, _ := cutKey(trimLeftSpace(line), googleKeys)
	if k == otherLine {
		return otherLine, ""
	}
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	line = trimSpace(line)
	if key, value, ok := splitLenient(line); ok {
		// A blank in a key may have been taken for the separator.
		k, _ = cutKey(key, googleKeys)
		return k, value
	}
	return otherLine, ""
}

// cutLenient ends a line where Google does: at a NUL or after so many octets.
func cutLenient(line string) string {
	line = line[:min(len(line), googleLineLimit)]
	if i := strings.IndexByte(line, 0); i >= 0 {
		line = line[:i]
	}
	return line
}

// splitLenient splits a trimmed line at its colon, or at the blanks between
// exactly two words.
func splitLenient(line string) (key, value string, ok bool) {
	if i := strings.IndexByte(line, ':'); i >= 0 {
		return trimSpace(line[:i]), trimSpace(line[i+1:]), true
	}
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return "", "", false
	}
	value = trimLeft(line[i:])
	if strings.ContainsAny(value, " \t") {
		return "", "", false
	}
	return line[:i], trimSpace(value), true
}

// trim, trimLeft: blanks and tabs, the WS of RFC 9309 2.2.
func trim(s string) string {
	s = trimLeft(s)
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

func trimLeft(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	return s
}

// trimSpace, trimLeftSpace: any ASCII white space, as google/robotstxt has it.
func trimSpace(s string) string {
	s = trimLeftSpace(s)
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func trimLeftSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
