package feed

import (
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/weburl"
)

// These bits say where a byte is plain. In that part of a URL, the byte has only one meaning and
// one spelling, so net/url stores it unchanged.
const (
	inHost  = 1 << iota // lower-case names, addresses and ports
	inPath              // bytes that never make net/url set URL.RawPath
	inQuery             // all printable bytes
)

var plainBytes = func() (t [256]uint8) {
	for c := '!'; c <= '~'; c++ {
		if c != '#' {
			t[c] |= inQuery
		}
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
			t[c] |= inHost | inPath
		case 'A' <= c && c <= 'Z', strings.ContainsRune("_~$&+,/:;=@", c):
			t[c] |= inPath
		}
	}
	return t
}()

// plainURL fills u as url.Parse does if loc is a plain URL, as most are. It takes a tenth of the
// time and does not allocate. If loc is not plain, it returns false.
func plainURL(loc string, u *url.URL) bool {
	scheme := "https"
	rest, ok := strings.CutPrefix(loc, "https://")
	if !ok {
		scheme = "http"
		rest, ok = strings.CutPrefix(loc, "http://")
		if !ok {
			return false
		}
	}
	host := span(rest, inHost)
	if host == 0 || host < len(rest) && rest[host] != '/' {
		return false
	}
	path := host + span(rest[host:], inPath)
	*u = url.URL{Scheme: scheme, Host: rest[:host], Path: rest[host:path]}
	if path == len(rest) {
		return true
	}
	if rest[path] != '?' || span(rest[path:], inQuery) < len(rest)-path {
		return false
	}
	u.RawQuery = rest[path+1:]
	u.ForceQuery = u.RawQuery == ""
	return true
}

// span returns how many bytes at the beginning of s have the bit.
func span(s string, bit uint8) int {
	for i := range len(s) {
		if plainBytes[s[i]]&bit == 0 {
			return i
		}
	}
	return len(s)
}

// parseURL fills u with a location. It also accepts URLs that crawlers visit but net/url refuses.
func parseURL(loc string, u *url.URL) error {
	if plainURL(loc, u) {
		return nil
	}
	parsed, err := weburl.Parse(loc)
	if err != nil {
		return redact.ParseError(err)
	}
	*u = *parsed
	return nil
}

// resolve returns loc relative to the robots.txt of a site.
func resolve(site dialect.Authority, loc string) string {
	u, err := url.Parse(loc)
	if err != nil || u.IsAbs() {
		return loc
	}
	base, err := url.Parse(site.RobotsURL())
	if err != nil {
		return loc
	}
	return base.ResolveReference(u).String()
}

// keyOf returns the key of a file: its URL in normal form without the scheme, because http and
// https of a host count as the same.
func keyOf(u *url.URL) string {
	host := u.Host
	if a, err := dialect.AuthorityOf(u); err == nil {
		host = a.Host
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return host + path
}
