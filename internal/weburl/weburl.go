// Package weburl parses URLs like a crawler. Web pages contain URLs that net/url rejects but that
// browsers and crawlers can visit.
package weburl

import (
	"net/url"
	"strings"
)

// Parse is like url.Parse but accepts percent signs that do not begin an escape and control
// characters. If url.Parse rejects raw, Parse percent-encodes these characters and tries again. If
// that also fails, it returns the error of the first attempt.
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

// escapeStray returns s with its control characters and the percent signs that do not begin an
// escape percent-encoded.
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

// IsWeb reports whether u is an http or https URL.
func IsWeb(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }
