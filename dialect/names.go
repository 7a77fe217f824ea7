package dialect

import (
	"fmt"
	"math"
	"strings"
)

// A naming is how User-agent values name crawlers.
type naming uint8

const (
	wholeToken    naming = iota // the value is a product token or a name, compared whole
	tokenPrefix                 // the value's beginning is the token, compared whole
	hyphenParents               // the value is a name or the part of one before a hyphen
	substring                   // the value lists parts of names, separated by blanks
)

// Ranks of a User-agent value for a crawler: the smaller the better.
const (
	everybody = math.MaxInt - 1 // the value is *
	nobody    = math.MaxInt
)

// rank returns how well a User-agent value names the crawler with these tokens,
// the most specific first.
func (n naming) rank(value string, tokens []string) int {
	switch n {
	case tokenPrefix:
		if value != "" && value[0] == '*' && (len(value) == 1 || isSpace(value[1])) {
			return everybody
		}
		return rankWhole(value[:tokenLen(value)], tokens)
	case hyphenParents:
		if strings.ContainsAny(value, " \t") {
			return nobody
		}
		return rankParents(value, tokens)
	case substring:
		return rankParts(value, tokens)
	}
	if value != "*" && nameLen(value) != len(value) {
		return nobody
	}
	return rankWhole(value, tokens)
}

// rankWhole compares a name with whole tokens.
func rankWhole(name string, tokens []string) int {
	if name == "*" {
		return everybody
	}
	for i, token := range tokens {
		if name != "" && equalFold(name, token) {
			return i
		}
	}
	return nobody
}

// rankParents compares a name with tokens and, after each, with its parents:
// the parts of it before a hyphen.
func rankParents(name string, tokens []string) int {
	if name == "*" || name == "" {
		return rankWhole(name, nil)
	}
	rank := 0
	for _, token := range tokens {
		for ok := true; ok; rank++ {
			if equalFold(name, token) {
				return rank
			}
			i := strings.LastIndexByte(token, '-')
			ok = i >= 0
			token = token[:max(i, 0)]
		}
	}
	return nobody
}

// rankParts looks for each name of a list in the tokens, versions cut off.
func rankParts(list string, tokens []string) int {
	best := nobody
	for name := range strings.FieldsFuncSeq(list, isBlank) {
		name, _, _ = strings.Cut(name, "/")
		if name == "*" {
			best = min(best, everybody)
			continue
		}
		for i, token := range tokens {
			token, _, _ = strings.Cut(token, "/")
			if name != "" && i < best && containsFold(token, name) {
				best = i
			}
		}
	}
	return best
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' }

// tokenLen returns the length of the product token that s begins with (RFC 9309
// 2.2, identifier).
func tokenLen(s string) int {
	n := 0
	for n < len(s) && isTokenOctet(s[n]) {
		n++
	}
	return n
}

func isTokenOctet(c byte) bool { return isLetter(c) || c == '-' || c == '_' }

// nameLen returns the length of the name that s begins with. A name is a product
// token that may also have digits and dots.
func nameLen(s string) int {
	n := 0
	for n < len(s) && isNameOctet(s[n]) {
		n++
	}
	return n
}

func isNameOctet(c byte) bool { return isTokenOctet(c) || '0' <= c && c <= '9' || c == '.' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// equalFold compares without regard to the case of ASCII letters, as all the
// texts mean it; strings.EqualFold would take the Kelvin sign for a k.
func equalFold(a, b string) bool {
	return len(a) == len(b) && hasFold(a, b)
}

// hasFold reports whether s begins with prefix, but for the case of letters.
func hasFold(s, prefix string) bool {
	for i := 0; i < len(prefix); i++ {
		if lower(s[i]) != lower(prefix[i]) {
			return false
		}
	}
	return true
}

// containsFold reports whether part is in s, but for the case of letters.
func containsFold(s, part string) bool {
	for ; len(s) >= len(part); s = s[1:] {
		if hasFold(s, part) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// CheckToken returns nil if a User-agent line can name a crawler with this
// product token under d, else an error that says why none can. Such a crawler
// gets the group of its next token, or that of *.
func (d Dialect) CheckToken(token string) error {
	n := tokenLen(token)
	switch {
	case token == "":
		return fmt.Errorf("dialect %s: an empty product token names no crawler", d)
	case token == "*":
		return fmt.Errorf("dialect %s: * is not a product token but the name of all crawlers", d)
	case d == RFC9309() && nameLen(token) < len(token):
		return fmt.Errorf("dialect %s: product token %q: only letters, digits, _, - and . can be matched", d, token)
	case d == Google() && n < len(token):
		return fmt.Errorf("dialect %s: product token %q: User-agent values are read as %q at most, up to the first octet that is not a letter, _ or -", d, token, token[:n])
	case d == CocCoc() && strings.ContainsAny(token, "# \t\r\n"):
		return fmt.Errorf("dialect %s: product token %q: a name has no blanks and no #", d, token)
	}
	return nil
}
