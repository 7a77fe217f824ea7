package match

import "strings"

// A Coding is the form of patterns and URLs when they are compared.
type Coding uint8

// The codings.
const (
	Verbatim       Coding = iota // patterns and targets are unchanged
	EscapedPattern               // patterns have the form of google/robotstxt, targets are unchanged
	Canonical                    // both have the form that RFC 9309 compares (2.2.2)
)

// AppendNormal appends the normal form of a target. This form begins with a slash and has no
// fragment.
func (c Coding) AppendNormal(dst []byte, target string) []byte {
	target, _, _ = strings.Cut(target, "#")
	if target == "" || target[0] != '/' {
		dst = append(dst, '/')
	}
	if c == Canonical {
		dst, _ = appendCanonical(dst, target, false, false)
		return dst
	}
	return append(dst, target...)
}

// Classes of bytes in the path and query of a URL (RFC 3986, 2.2 to 3.4).
const (
	plainByte     = iota // stands for itself, and does not equal its escape
	unreserved           // equals its escape
	queryReserved        // equals its escape in the query: : / ? [ ] @
	starOrDollar         // special in a pattern
	percent
	rarelyEscaped // illegal, but URLs are sent with it; equals its escape
	illegal       // always escaped
)

var byteClass = func() (class [256]uint8) {
	for c := range class {
		switch c := byte(c); {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			class[c] = unreserved
		case strings.IndexByte(":/?[]@", c) >= 0:
			class[c] = queryReserved
		case strings.IndexByte("*$", c) >= 0:
			class[c] = starOrDollar
		case c == '%':
			class[c] = percent
		case strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			class[c] = rarelyEscaped
		case strings.IndexByte("!&'()+,;=", c) < 0:
			class[c] = illegal
		}
	}
	return class
}()

// oddByte is 1 for the bytes that IsCanonical does not accept: *, $, % and illegal bytes.
var oddByte = func() (odd [256]uint8) {
	for c, class := range byteClass {
		if class >= starOrDollar {
			odd[c] = 1
		}
	}
	return odd
}()

// IsCanonical reports whether a target is known to be in canonical form. It returns false for every
// target with an escape. It checks eight bytes at a time. The last eight bytes may overlap the ones
// before them.
func IsCanonical(s string) bool {
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
		odd |= oddByte[s[i]]
	}
	return odd == 0
}

// HasNoFragment reports whether s has no #. A target without a fragment is in normal form if
// targets are compared unchanged.
func HasNoFragment(s string) bool { return strings.IndexByte(s, '#') < 0 }

// oddOf8 returns a value other than 0 if one of the first eight bytes of s is odd.
func oddOf8(s string) uint8 {
	_ = s[7]
	return oddByte[s[0]] | oddByte[s[1]] | oddByte[s[2]] | oddByte[s[3]] |
		oddByte[s[4]] | oddByte[s[5]] | oddByte[s[6]] | oddByte[s[7]]
}

// appendCanonical appends the form of s that RFC 9309 compares (2.2.2). In this form, each byte has
// one spelling: unreserved bytes are not escaped, other escapes are in upper case, bytes that a URL
// cannot contain are escaped, and bytes that are reserved only in the path are not escaped in the
// query. In a target, * and $ are ordinary bytes (2.2.3). In a pattern, they are not changed.
//
// A URL may contain some bytes with or without an escape, such as * and $ as ordinary bytes. Their
// spelling is the byte with the highest bit set, and not the escape, because a % that begins no
// escape in a pattern must not match an escape that the URL does not have. No other byte has that
// bit in this form.
//
// inQuery says whether s begins in the query. Rules are compared by the length of the form in which
// all these bytes are escaped. The result is shorter than that form by widened bytes.
func appendCanonical(dst []byte, s string, pattern, inQuery bool) (result []byte, widened int) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		escaped := isEscape(s[i:])
		if escaped {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		}
		switch class := byteClass[c]; {
		case class == queryReserved && inQuery:
			dst = append(dst, c)
			widened += 2
		case class == unreserved, !escaped && keeps(class, pattern):
			dst = append(dst, c)
			inQuery = inQuery || c == '?'
		case class == starOrDollar || class == rarelyEscaped:
			dst = append(dst, c|0x80)
			widened += 2
		default:
			dst = AppendEscape(dst, c)
		}
	}
	return dst, widened
}

// keeps reports whether appendCanonical does not escape a byte of that class.
func keeps(class uint8, pattern bool) bool {
	return class < rarelyEscaped && (class != starOrDollar || pattern)
}

// HasNormalEscapes reports whether each % in s begins an escape. If upper is set, the hex digits of
// the escapes must also be in upper case.
func HasNormalEscapes(s string, upper bool) bool {
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

// AppendEscapes appends s. It converts the hex digits of escapes to upper case (RFC 3986, 6.2.2.1)
// and each % that does not begin an escape to %25.
func AppendEscapes(dst []byte, s string) []byte {
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
			dst = AppendEscape(dst, '%')
			s = s[1:]
		}
	}
}

// appendEscapedPattern appends a pattern in the form of google/robotstxt: the hex digits of escapes
// are in upper case, and bytes that are not ASCII are escaped.
func appendEscapedPattern(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isEscape(s[i:]):
			dst = append(dst, '%', upperHex(s[i+1]), upperHex(s[i+2]))
			i += 2
		case c >= 0x80:
			dst = AppendEscape(dst, c)
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

// AppendEscape appends the escape of a byte.
func AppendEscape(dst []byte, c byte) []byte {
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
