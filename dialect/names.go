package dialect

import (
	"fmt"
	"math"
	"strings"
)

// A naming says how a dialect compares User-agent values with the tokens of a crawler.
type naming uint8

const (
	wholeToken    naming = iota // the value is a product token or a name, compared whole
	tokenPrefix                 // the value begins with a product token, compared whole
	hyphenParents               // the value is a name or the part of a name before a hyphen
	substring                   // the value lists parts of names, separated by white space
	yandexNames                 // the value is a name; Yandex and longer beginnings of a name that begins with it
)

// Ranks of a User-agent value for a crawler. A smaller rank is a better match. A rank below these
// is the position of the matching name.
const (
	rankOfAll = math.MaxInt - 1 // the value is *
	noRank    = math.MaxInt     // the value does not name the crawler
)

// rank returns the rank of a User-agent value for the crawler with these tokens, the most specific
// token first.
func (n naming) rank(value string, tokens []string) int {
	switch n {
	case tokenPrefix:
		if value != "" && value[0] == '*' && (len(value) == 1 || isSpace(value[1])) {
			return rankOfAll
		}
		return rankWhole(value[:tokenLen(value)], tokens)
	case hyphenParents:
		if strings.ContainsAny(value, " \t") {
			return noRank
		}
		return rankParents(value, tokens)
	case substring:
		return rankParts(value, tokens)
	case yandexNames:
		return rankYandex(value, tokens)
	}
	if value != "*" && nameLen(value) != len(value) {
		return noRank
	}
	return rankWhole(value, tokens)
}

// rankWhole returns the rank of a name that is compared with whole tokens.
func rankWhole(name string, tokens []string) int {
	if name == "*" {
		return rankOfAll
	}
	for i, token := range tokens {
		if name != "" && equalFold(name, token) {
			return i
		}
	}
	return noRank
}

// rankParents returns the rank of a name that is compared with the tokens and, after each token,
// with its parents. The parents of a token are its parts before a hyphen, from the longest to the
// shortest.
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
	return noRank
}

// rankParts returns the best rank of the names in a list. A name matches a token that contains it.
// Versions, which follow a slash, are ignored on both sides.
func rankParts(list string, tokens []string) int {
	best := noRank
	for name := range strings.FieldsFuncSeq(list, isBlank) {
		name, _, _ = strings.Cut(name, "/")
		if name == "*" {
			best = min(best, rankOfAll)
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

// rankYandex returns the rank of a value that is compared as Yandex does. A value names the
// crawlers with this name. If it begins with Yandex, it also names the crawlers whose names begin
// with it. The longest of these values is the most specific. Versions, which follow a slash, are
// ignored on both sides.
func rankYandex(value string, tokens []string) int {
	const family = "Yandex"
	name, _, _ := strings.Cut(value, "/")
	if value == "*" || name == "" || name == "*" {
		return rankWhole(value, nil)
	}
	rank := 0
	for _, token := range tokens {
		token, _, _ = strings.Cut(token, "/")
		if equalFold(name, token) {
			return rank
		}
		if len(family) <= len(name) && len(name) < len(token) && hasFold(name, family) && hasFold(token, name) {
			return rank + len(token) - len(name)
		}
		rank += len(token) + 1
	}
	return noRank
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' }

// tokenLen returns the length of the product token that s begins with (RFC 9309
// 2.2, identifier).
func tokenLen(s string) int {
	n := 0
	for n < len(s) && isTokenByte(s[n]) {
		n++
	}
	return n
}

func isTokenByte(c byte) bool { return isLetter(c) || c == '-' || c == '_' }

// nameLen returns the length of the name that s begins with. A name is a product
// token that may also have digits and dots.
func nameLen(s string) int {
	n := 0
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	return n
}

func isNameByte(c byte) bool { return isTokenByte(c) || '0' <= c && c <= '9' || c == '.' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// equalFold compares two strings, ignoring the case of ASCII letters, as all the specifications
// require. strings.EqualFold is not suitable, because it considers the Kelvin sign equal to a k.
func equalFold(a, b string) bool {
	return len(a) == len(b) && hasFold(a, b)
}

// hasFold reports whether s begins with prefix, ignoring the case of ASCII letters. s must not be
// shorter than prefix.
func hasFold(s, prefix string) bool {
	for i := 0; i < len(prefix); i++ {
		if lower(s[i]) != lower(prefix[i]) {
			return false
		}
	}
	return true
}

// containsFold reports whether s contains part, ignoring the case of ASCII letters.
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

// CheckToken returns an error if, according to d, no User-agent line can name a crawler with this
// product token. The error says why. Such a crawler uses the group of its next token or the group
// of *.
func (d Dialect) CheckToken(token string) error {
	n := tokenLen(token)
	naming := d.variant().naming
	switch {
	case token == "":
		return fmt.Errorf("dialect: %s: an empty product token names no crawler", d)
	case token == "*":
		return fmt.Errorf("dialect: %s: * is not a product token but the name of all crawlers", d)
	case naming == wholeToken && d != Temoto() && nameLen(token) < len(token):
		return fmt.Errorf("dialect: %s: product token %q: only letters, digits, _, - and . can be matched", d, token)
	case naming == tokenPrefix && n < len(token):
		return fmt.Errorf("dialect: %s: product token %q: User-agent values are read only up to the first byte that is not a letter, _ or -, here %q", d, token, token[:n])
	case naming == yandexNames && strings.ContainsAny(token, "#\r\n"):
		return fmt.Errorf("dialect: %s: product token %q: a name cannot contain #", d, token)
	case naming == hyphenParents && strings.ContainsAny(token, "# \t\r\n"):
		return fmt.Errorf("dialect: %s: product token %q: a name cannot contain white space or #", d, token)
	}
	return nil
}
