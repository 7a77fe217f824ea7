package dialect

import (
	"strings"
	"unicode"
)

// ProductToken returns the name by which a robots.txt would know the crawler
// that sends this User-Agent header: its first product ("ExampleBot/1.0
// (+https://...)" is ExampleBot) or, of a header that begins as a browser's,
// the product that stands after "compatible;" or before the address of a web
// page:
//
//	Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)
//
// It is "" for a browser's own header: that names no crawler, and the group
// of * is for all that have no name. The name may have digits and dots
// ("MJ12bot", "archive.org_bot"); [Dialect.CheckToken] reports where no line
// can match it.
func ProductToken(userAgent string) string {
	name := productName(strings.TrimSpace(userAgent))
	if !isBrowser(name) {
		return name
	}
	if _, rest, ok := cutFold(userAgent, "compatible;"); ok {
		if name = itemName(rest); !isBrowser(name) {
			return name
		}
	}
	if i := strings.Index(userAgent, "://"); i >= 0 {
		return nameBefore(userAgent[:i])
	}
	return ""
}

// browsers are names that say nothing: parts of browsers' headers.
var browsers = map[string]bool{
	"": true, "mozilla": true, "opera": true, "msie": true, "gecko": true, "applewebkit": true,
	"khtml": true, "chrome": true, "safari": true, "firefox": true, "version": true, "mobile": true,
	"edge": true, "edg": true, "trident": true, "konqueror": true, "like": true, "compatible": true,
}

func isBrowser(name string) bool { return browsers[strings.ToLower(name)] }

// productName returns the name that s begins with: letters, digits, and _ - .
// in between.
func productName(s string) string {
	return strings.Trim(s[:nameLen(s)], "-.")
}

// itemName returns the name of the crawler in the first item of a comment: the
// word that has a version, else the last word that is no address.
func itemName(comment string) string {
	if i := strings.IndexAny(comment, ";()"); i >= 0 {
		comment = comment[:i]
	}
	last := ""
	for word := range strings.FieldsSeq(comment) {
		if word[0] == '+' || strings.Contains(word, "://") {
			break
		}
		if name := productName(word); strings.ContainsFunc(name, unicode.IsLetter) {
			last = name
		}
		if strings.IndexByte(word, '/') >= 0 {
			break
		}
	}
	return last
}

// nameBefore returns the last product in s, the part of a header before the ://
// of an address, or "" if that is a browser's.
func nameBefore(s string) string {
	s = strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz") // the scheme
	s = strings.TrimRight(s, " +;(,-")
	if i := strings.LastIndexAny(s, " ;(,"); i >= 0 {
		s = s[i+1:]
	}
	if name := productName(s); !isBrowser(name) {
		return name
	}
	return ""
}

// cutFold is strings.Cut without regard to the case of letters.
func cutFold(s, sep string) (before, after string, found bool) {
	for i := 0; i+len(sep) <= len(s); i++ {
		if hasFold(s[i:], sep) {
			return s[:i], s[i+len(sep):], true
		}
	}
	return s, "", false
}
