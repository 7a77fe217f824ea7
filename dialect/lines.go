package dialect

import "strings"

// SizeLimit is how many octets of a robots.txt file are read, 500 KiB: RFC
// 9309, 2.5, wants at least that many, Google ("File format") reads exactly as
// many. Hand at least one more to [Dialect.Parse], if there is one: it then
// knows a rule that ends at the limit from one that is cut there, which it
// drops.
const SizeLimit = 500 << 10

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

// skipMark returns text without a UTF-8 byte order mark; a lenient dialect
// skips the beginning of one too.
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

// nextLine cuts the first line off text. Lines end at CR, LF or CR LF; a CR
// alone is looked for, octet by octet, only where there is one.
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
