package sitemap

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf8"
)

// longestEntity is the length of the longest named reference of HTML with
// room to spare; it bounds the search for the semicolon.
const longestEntity = 40

// appendText appends text to dst with its character references decoded. What
// is no reference that ends in a semicolon stays as it is.
func appendText(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return append(dst, text...)
		}
		dst, text = append(dst, text[:i]...), text[i:]
		n := bytes.IndexByte(text[:min(len(text), longestEntity)], ';') + 1
		if s := entity(text[:n]); s != "" {
			dst, text = append(dst, s...), text[n:]
		} else {
			dst, text = append(dst, '&'), text[1:]
		}
	}
}

// entity returns what the reference "&...;" stands for, "" if it is none.
func entity(ref []byte) string {
	switch string(ref) {
	case "":
		return ""
	case "&amp;":
		return "&"
	}
	if ref[1] == '#' {
		return numeric(string(ref[2 : len(ref)-1]))
	}
	s := html.UnescapeString(string(ref))
	if s != ";" && s[len(s)-1] == ';' { // not known, or only a beginning of it is
		return ""
	}
	return s
}

// numeric returns the character with the number "38" or "x26".
func numeric(s string) string {
	base := 10
	if s != "" && lower(s[0]) == 'x' {
		s, base = s[1:], 16
	}
	n, err := strconv.ParseUint(s, base, 21)
	if err != nil || n == 0 || !utf8.ValidRune(rune(n)) {
		return ""
	}
	return string(rune(n))
}
