package weburl

import "strings"

// DecodeUnreserved decodes the escapes of letters, digits, "-", ".", "_" and "~" (RFC 3986,
// sections 2.3 and 6.2.2.2). All escapes of s must be complete, and their hex digits in upper case.
func DecodeUnreserved(s string) string {
	var b []byte // nil until there is something to decode
	done := 0
	for i := strings.IndexByte(s, '%'); i >= 0 && i+2 < len(s); {
		if c := unhex(s[i+1])<<4 | unhex(s[i+2]); isUnreserved(c) {
			b = append(b, s[done:i]...)
			b = append(b, c)
			done = i + 3
		}
		next := strings.IndexByte(s[i+1:], '%')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if b == nil {
		return s
	}
	return string(append(b, s[done:]...))
}

// unhex returns the value of an upper-case hex digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'A' + 10
}

func isUnreserved(c byte) bool {
	lower := c | 0x20
	return 'a' <= lower && lower <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
