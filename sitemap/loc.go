package sitemap

import (
	"bytes"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/collyrobots/collyrobots/internal/weburl"
)

// plain holds the octets that may stand in a location behind its host and
// need no thought: printable ASCII without '#'.
var plain = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = c != '#'
	}
	return t
}()

// locate turns the text of a location into an absolute URL, or "".
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

// isPlain reports whether text is a URL that can be taken as it stands: most
// are, and each test of this loop saves a parse.
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

// hasHTTP reports whether s begins as an absolute location does.
func hasHTTP(s string) bool {
	scheme, _, ok := strings.Cut(s[:min(len(s), len("https://"))], "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// absolute returns s if it is http or https and has a host. What follows the
// host is not judged: crawlers visit URLs that net/url refuses.
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

// resolve returns s as seen from the sitemap. One that begins with a reference
// to something that the document has declared is no path.
func (r *Reader) resolve(s string) string {
	if s[0] == '&' {
		return ""
	}
	ref, err := weburl.Parse(s)
	if err != nil {
		return ""
	}
	u := r.base.ResolveReference(ref)
	u.Fragment, u.RawFragment = "", ""
	return absolute(u.String())
}

// trim removes what looks blank around a text, the zero-width characters
// that editors leave included.
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
			out, indent = append(out, c), false
		}
	}
	return out
}
