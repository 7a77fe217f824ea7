package dialect

import "math/bits"

// A key is one spelling of the key of a line.
type key struct {
	head uint64 // the first eight bytes, as foldHead returns them
	mask uint64 // the bits of head that are used
	tail string // the other bytes, in lower case
	kind kind
}

// spell returns the key with the given lower-case spelling.
func spell(name string, k kind) key {
	n := min(len(name), 8)
	return key{head: foldHead(name), mask: 1<<(8*n) - 1, tail: name[n:], kind: k}
}

var exactKeys = []key{
	spell("disallow", disallowLine), spell("allow", allowLine), spell("user-agent", agentLine),
	spell("sitemap", sitemapLine), spell("crawl-delay", delayLine),
	spell("request-rate", rateLine), spell("visit-time", visitLine), spell("clean-param", cleanLine),
	spell("content-usage", usageLine), spell("content-signal", signalLine), spell("license", licenseLine),
}

// googleKeys are the beginnings of keys. The typos are those of google/robotstxt. Google does not
// support crawl-delay, request-rate and visit-time, but they are parsed for Group.WrittenDelay and
// Group.WrittenSchedule.
var googleKeys = append(exactKeys[:len(exactKeys):len(exactKeys)],
	spell("useragent", agentLine), spell("user agent", agentLine),
	spell("dissallow", disallowLine), spell("dissalow", disallowLine), spell("disalow", disallowLine),
	spell("diasllow", disallowLine), spell("disallaw", disallowLine),
	spell("site-map", sitemapLine),
)

// foldHead returns the first eight bytes of s with letters in lower case. It sets bit 5 of each
// byte, which converts upper case to lower case and does not change "-" and the space. It also
// converts CR to "-" and NUL to a space, but these bytes end a line. (NUL ends a line only in the
// dialect with a space in a key.)
func foldHead(s string) (head uint64) {
	if len(s) >= 8 {
		return load64(s) | 0x2020202020202020
	}
	for i := len(s) - 1; i >= 0; i-- {
		head = head<<8 | uint64(s[i]|0x20)
	}
	return head
}

// cutKey returns the kind of the key that s begins with, and the text after the key. If s begins
// with none of the keys, cutKey returns otherLine.
func cutKey(s string, keys []key) (kind, string) {
	if s == "" || s[0] < 'A' {
		return otherLine, "" // usually a comment
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

// hasTailFold reports whether the first eight bytes of s are followed by tail, ignoring case. tail
// must be in lower case.
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

// load64 and load32 are like binary.LittleEndian.Uint64 and Uint32 for strings.
func load64(s string) uint64 { return uint64(load32(s)) | uint64(load32(s[4:]))<<32 }

func load32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}
