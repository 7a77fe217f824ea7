package dialect

import "math/bits"

// A key is a spelling of a key and what it means.
type key struct {
	head, mask uint64 // its first octets, as foldHead gives them
	tail       string // the others
	kind       kind
}

// spell makes a key of its lower-case spelling.
func spell(name string, k kind) key {
	n := min(len(name), 8)
	return key{foldHead(name), 1<<(8*n) - 1, name[n:], k}
}

var exactKeys = []key{
	spell("disallow", disallowLine), spell("allow", allowLine), spell("user-agent", agentLine),
	spell("sitemap", sitemapLine), spell("crawl-delay", delayLine),
}

// googleKeys are beginnings of keys. The typos are those of google/robotstxt;
// crawl-delay is read for the crawls that honour it anyway.
var googleKeys = append(exactKeys[:5:5],
	spell("useragent", agentLine), spell("user agent", agentLine),
	spell("dissallow", disallowLine), spell("dissalow", disallowLine), spell("disalow", disallowLine),
	spell("diasllow", disallowLine), spell("disallaw", disallowLine),
	spell("site-map", sitemapLine),
)

// foldHead returns the first eight octets of s, letters in lower case. Setting
// a bit does that and leaves - and blank alone; the octets that it would
// confuse with those two, CR and NUL, end a line. (NUL only where a key has a
// blank.)
func foldHead(s string) (head uint64) {
	if len(s) >= 8 {
		return load64(s) | 0x2020202020202020
	}
	for i := len(s) - 1; i >= 0; i-- {
		head = head<<8 | uint64(s[i]|0x20)
	}
	return head
}

// cutKey returns the meaning of the key that s begins with and what follows it.
func cutKey(s string, keys []key) (kind, string) {
	if s == "" || s[0] < 'A' {
		return otherLine, "" // most often a comment
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

// hasTailFold reports whether tail, in lower case, follows the head of s.
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
