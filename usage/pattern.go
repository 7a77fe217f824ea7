package usage

import (
	"net/url"
	"strings"
)

// A pattern is a path pattern of RFC 9309, section 2.2.2, in normal form. TDMRep uses the same
// patterns. The empty pattern matches every path.
type pattern string

// newPattern returns the normal form of a pattern.
func newPattern(s string) pattern { return pattern(normal(s)) }

// Target returns the part of a URL that patterns apply to: its path and its query.
func Target(u *url.URL) string {
	target := u.EscapedPath()
	if target == "" {
		target = "/"
	}
	if u.RawQuery != "" || u.ForceQuery {
		target += "?" + u.RawQuery
	}
	return target
}

// matches reports whether p matches a target in normal form. The wildcard * matches any characters,
// and $ at the end of the pattern matches the end of the target. The time is at most proportional
// to the product of the lengths.
func (p pattern) matches(target string) bool {
	text, anchored := strings.CutSuffix(string(p), "$")
	part, text, more := strings.Cut(text, "*")
	rest, ok := strings.CutPrefix(target, part)
	for ok && more {
		part, text, more = strings.Cut(text, "*")
		if anchored && !more {
			return strings.HasSuffix(rest, part)
		}
		_, rest, ok = strings.Cut(rest, part)
	}
	return ok && (!anchored || rest == "")
}

// normal returns a path or a pattern with one spelling of each character: unreserved characters are
// not escaped, and bytes that are not ASCII, blanks and control characters are escaped.
func normal(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		escaped := false
		if c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
			escaped = true
		}
		if escaped && !isUnreserved(c) || c <= ' ' || c >= 0x7F {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// isUnreserved reports whether c needs no escape (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	letter := c | 0x20
	return 'a' <= letter && letter <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isHex(c byte) bool {
	letter := c | 0x20
	return '0' <= c && c <= '9' || 'a' <= letter && letter <= 'f'
}

// unhex returns the value of a hex digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return (c | 0x20) - 'a' + 10
}
