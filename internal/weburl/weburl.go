// Package weburl parses URLs as crawlers do, which visit what net/url refuses.
package weburl

import (
	"net/url"
	"strings"
)

// Parse is url.Parse, but that it takes percent signs that begin no escape, and control characters,
// for escaped.
func Parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err == nil {
		return u, nil
	}
	if escaped, again := url.Parse(escapeStray(raw)); again == nil {
		return escaped, nil
	}
	return nil, err
}

// escapeStray escapes them.
func escapeStray(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == 0x7f || c == '%' && !(i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2])) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
