package dialect

import (
	"strings"
	"unicode"
)

// TokenOf returns the name that a robots.txt would use for the crawler that sends this
// User-Agent header. This is the first product of the header: ExampleBot for "ExampleBot/1.0
// (+https://...)". If the header begins like that of a browser, it is the product after
// "compatible;" or before the URL of a web page:
//
//	Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)
//
// TokenOf returns "" for the header of a browser, which names no crawler. The group of * then
// applies. The name may contain digits and dots, as in "MJ12bot" and "archive.org_bot".
// [Dialect.CheckToken] reports whether a dialect can match such a name.
func TokenOf(userAgent string) string {
	name := productName(strings.TrimSpace(userAgent))
	if !isBrowser(name) {
		return name
	}
	if _, rest, ok := cutFold(userAgent, "compatible;"); ok {
		name = itemName(rest)
		if !isBrowser(name) {
			return name
		}
	}
	if i := strings.Index(userAgent, "://"); i >= 0 {
		return nameBefore(userAgent[:i])
	}
	return ""
}

// browsers are the names in the headers of browsers, which do not name a crawler.
var browsers = map[string]bool{
	"": true, "mozilla": true, "opera": true, "msie": true, "gecko": true, "applewebkit": true,
	"khtml": true, "chrome": true, "safari": true, "firefox": true, "version": true, "mobile": true,
	"edge": true, "edg": true, "trident": true, "konqueror": true, "like": true, "compatible": true,
}

func isBrowser(name string) bool { return browsers[strings.ToLower(name)] }

// productName returns the name that s begins with. A name consists of letters, digits, _, - and .,
// and does not begin or end with - or a dot.
func productName(s string) string {
	return strings.Trim(s[:nameLen(s)], "-.")
}

// itemName returns the name of the crawler in the first item of a comment. This is the word with a
// version or, if there is none, the last word before a URL.
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

// nameBefore returns the last product in s, or "" if that is part of a browser's header. s is the
// part of a header before the "://" of a URL.
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

// cutFold is like strings.Cut but ignores the case of ASCII letters.
func cutFold(s, sep string) (before, after string, found bool) {
	for i := 0; i+len(sep) <= len(s); i++ {
		if hasFold(s[i:], sep) {
			return s[:i], s[i+len(sep):], true
		}
	}
	return s, "", false
}
