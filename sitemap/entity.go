package sitemap

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf8"
)

// longestEntity bounds the search for the semicolon of a reference. It is larger than the length of
// any named reference of HTML.
const longestEntity = 40

// appendText appends text to dst with its character references decoded. Everything else is appended
// unchanged, including references without a semicolon.
func appendText(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		text = text[i:]
		n := bytes.IndexByte(text[:min(len(text), longestEntity)], ';') + 1
		s := entity(text[:n])
		if s == "" {
			s = "&"
			n = 1
		}
		dst = append(dst, s...)
		text = text[n:]
	}
}

// entity returns the text that the reference "&...;" stands for, or "" if ref is not a reference.
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
	if s != ";" && s[len(s)-1] == ';' { // html decodes no part of ref, or only its beginning
		return ""
	}
	return s
}

// numeric returns the character for the number of a numeric reference, such as "38" or "x26", or ""
// if there is no such character.
func numeric(s string) string {
	base := 10
	if s != "" && lower(s[0]) == 'x' {
		s = s[1:]
		base = 16
	}
	n, err := strconv.ParseUint(s, base, 21)
	if err != nil || n == 0 || !utf8.ValidRune(rune(n)) {
		return ""
	}
	return string(rune(n))
}
