package sitemap

import (
	"bytes"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/collyrobots/collyrobots/internal/weburl"
)

// plain is true for the bytes that isPlain accepts after the host: printable ASCII except the space
// and '#'.
var plain = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = c != '#'
	}
	return t
}()

// locate returns the absolute URL for the text of a location, or "" if the text is not a valid
// location.
func (r *Reader) locate(text []byte) string {
	if isPlain(text) {
		return string(text)
	}
	text = unwrap(trim(text))
	text, _, _ = bytes.Cut(text, []byte("#"))
	if len(text) == 0 || !utf8.Valid(text) || r.decoded && bytes.ContainsRune(text, utf8.RuneError) {
		return ""
	}
	s := string(text)
	if r.base == nil || hasHTTP(s) {
		return absolute(s)
	}
	return r.resolve(s)
}

// isPlain reports whether text is an absolute URL that can be used without parsing or changing it.
// Most locations are, and this loop is much faster than the parser.
func isPlain(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte("http"))
	if !ok || len(rest) < 5 {
		return false
	}
	if rest[0] == 's' {
		rest = rest[1:]
	}
	if string(rest[:3]) != "://" {
		return false
	}
	rest = rest[3:]
	host := 0
	for host < len(rest) && isHost(rest[host]) {
		host++
	}
	if host == 0 || host < len(rest) && rest[host] != '/' {
		return false
	}
	for _, c := range rest[host:] {
		if !plain[c] {
			return false
		}
	}
	return true
}

func isHost(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || 'A' <= c && c <= 'Z'
}

// hasHTTP reports whether s begins with "http://" or "https://", ignoring case.
func hasHTTP(s string) bool {
	scheme, _, ok := strings.Cut(s[:min(len(s), len("https://"))], "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// absolute returns s if it is an http or https URL with a host, and "" otherwise. It does not
// validate the path and the query, because crawlers can visit URLs that net/url rejects.
func absolute(s string) string {
	if !hasHTTP(s) {
		return ""
	}
	_, authority, _ := strings.Cut(s, "://")
	if i := strings.IndexAny(authority, "/?"); i >= 0 {
		authority = authority[:i]
	}
	u, err := url.Parse("http://" + authority)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	return s
}

// resolve resolves s against the URL of the sitemap. It returns "" if s begins with "&": s then
// begins with a reference to an entity, which is never expanded, and is not a relative path.
func (r *Reader) resolve(s string) string {
	if s[0] == '&' {
		return ""
	}
	ref, err := weburl.Parse(s)
	if err != nil {
		return ""
	}
	u := r.base.ResolveReference(ref)
	u.Fragment = ""
	u.RawFragment = ""
	return absolute(u.String())
}

// trim removes white space around a text, including the zero-width characters that some editors
// insert.
func trim(b []byte) []byte {
	if len(b) > 0 && isGraphic(b[0]) && isGraphic(b[len(b)-1]) {
		return b
	}
	return bytes.TrimFunc(b, looksBlank)
}

func isGraphic(c byte) bool { return ' ' < c && c < 0x7f }

func looksBlank(c rune) bool {
	return unicode.IsSpace(c) || c == '\u200b' || c == '\ufeff' || c == '\u200c' || c == '\u200d' || c == '\u2060'
}

// unwrap removes line breaks and tabs from a location, as browsers do, and
// the indentation that follows them.
func unwrap(b []byte) []byte {
	if !bytes.ContainsAny(b, "\t\r\n") {
		return b
	}
	out := make([]byte, 0, len(b))
	indent := false
	for _, c := range b {
		switch {
		case c == '\t' || c == '\r' || c == '\n':
			indent = true
		case c == ' ' && indent:
		default:
			out = append(out, c)
			indent = false
		}
	}
	return out
}
