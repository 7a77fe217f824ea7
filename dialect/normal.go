package dialect

import "strings"

// A coding is the form in which patterns and URLs are compared.
type coding uint8

const (
	verbatim       coding = iota // bytes as they are
	escapedPattern               // patterns have the form of appendEscapedPattern, targets are as they are
	canonical                    // both have the form of appendCanonical
)

// Classes of octets in the path and query of a URL (RFC 3986, 2.2 to 3.4).
const (
	plainOctet    = iota // stands for itself, and does not equal its escape
	unreserved           // equals its escape
	queryReserved        // equals its escape in the query: : / ? [ ] @
	starOrDollar         // special in a pattern
	percent
	illegal // always escaped
)

var octetClass = func() (class [256]uint8) {
	for c := range class {
		switch c := byte(c); {
		case isLetter(c), '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			class[c] = unreserved
		case strings.IndexByte(":/?[]@", c) >= 0:
			class[c] = queryReserved
		case strings.IndexByte("*$", c) >= 0:
			class[c] = starOrDollar
		case c == '%':
			class[c] = percent
		case strings.IndexByte("!&'()+,;=", c) < 0:
			class[c] = illegal
		}
	}
	return class
}()

// oddOctet is 1 for octets that a canonical target does not have.
var oddOctet = func() (odd [256]uint8) {
	for c, class := range octetClass {
		if class >= starOrDollar {
			odd[c] = 1
		}
	}
	return odd
}()

// isCanonical reports whether the canonical form of a target is the target. It
// takes eight octets a step, the last ones with some of those before.
func isCanonical(s string) bool {
	var odd uint8
	rest := s
	for len(rest) > 8 {
		odd |= oddOf8(rest)
		rest = rest[8:]
	}
	if len(s) >= 8 {
		return odd|oddOf8(s[len(s)-8:]) == 0
	}
	for i := 0; i < len(s); i++ {
		odd |= oddOctet[s[i]]
	}
	return odd == 0
}

// oddOf8 is not 0 if one of the first eight octets of s is odd.
func oddOf8(s string) uint8 {
	_ = s[7]
	return oddOctet[s[0]] | oddOctet[s[1]] | oddOctet[s[2]] | oddOctet[s[3]] |
		oddOctet[s[4]] | oddOctet[s[5]] | oddOctet[s[6]] | oddOctet[s[7]]
}

// appendCanonical appends the form in which RFC 9309 2.2.2 compares paths. In
// this form each byte has one spelling: unreserved bytes are not escaped, other
// escapes are in upper case, bytes that a URL cannot have are escaped, and bytes
// that only the path reserves are not escaped in the query. In a target * and $
// are bytes like others and escaped (2.2.3). In a pattern they are left alone.
//
// inQuery is set if s begins in the query. widened counts the octets by which
// the result is shorter than the encoded path of the table in 2.2.2, in which
// those of the query that the path reserves are escaped.
func appendCanonical(dst []byte, s string, pattern, inQuery bool) (result []byte, widened int) {
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if isEscape(s[i:]) {
			c, escaped = unhex(s[i+1])<<4|unhex(s[i+2]), true
			i += 2
		}
		switch class := octetClass[c]; {
		case class == queryReserved && inQuery:
			dst = append(dst, c)
			widened += 2
		case class == unreserved, !escaped && keeps(class, pattern):
			dst = append(dst, c)
			inQuery = inQuery || c == '?'
		default:
			dst = appendEscape(dst, c)
		}
	}
	return dst, widened
}

// keeps reports whether an octet that is written as itself stays as it is.
func keeps(class uint8, pattern bool) bool {
	return class != illegal && (class != starOrDollar || pattern)
}

// hasNormalEscapes reports whether each % in s begins an escape. If upper, it
// also reports whether the hex digits of the escapes are upper case.
func hasNormalEscapes(s string, upper bool) bool {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return true
		}
		s = s[i:]
		if !isEscape(s) || upper && (s[1] >= 'a' || s[2] >= 'a') {
			return false
		}
		s = s[3:]
	}
}

// appendEscapes appends s with the hex digits of its escapes in upper case (RFC
// 3986, 6.2.2.1) and with each % that begins no escape as %25.
func appendEscapes(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		if isEscape(s) {
			dst = append(dst, '%', upperHex(s[1]), upperHex(s[2]))
			s = s[3:]
		} else {
			dst = appendEscape(dst, '%')
			s = s[1:]
		}
	}
}

// appendEscapedPattern appends a pattern as google/robotstxt keeps it.
func appendEscapedPattern(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isEscape(s[i:]):
			dst = append(dst, '%', upperHex(s[i+1]), upperHex(s[i+2]))
			i += 2
		case c >= 0x80:
			dst = appendEscape(dst, c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// isEscape reports whether s begins with a percent sign and two hex digits.
func isEscape(s string) bool {
	return len(s) > 2 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	return append(dst, '%', hex[c>>4], hex[c&15])
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func upperHex(c byte) byte {
	if c >= 'a' {
		c -= 0x20
	}
	return c
}
