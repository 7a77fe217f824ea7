package dialect

import "strings"

// SizeLimit is the maximum number of bytes of a robots.txt file that are parsed: 500 KiB. RFC 9309
// requires at least this limit (section 2.5), and Google uses exactly this limit ("File format").
// If a file is larger, pass at least one more byte to [Dialect.Parse]. Parse can then distinguish a
// rule that ends at the limit from a rule that is cut there, which it drops.
const SizeLimit = 500 << 10

// clip returns the part of a body that is parsed: at most SizeLimit bytes. If the limit cuts a
// line, clip removes that line, unless only a comment is cut.
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

// skipMark returns text without a UTF-8 byte order mark. If lenient is set, it also removes a
// partial byte order mark.
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

// nextLine cuts the first line off text. A line ends at CR, LF or CR LF. bareCR says whether the
// file has a CR without an LF. Only then does nextLine use the slower search for both characters.
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

// hasBareCR reports whether text has a CR that is not followed by an LF.
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
