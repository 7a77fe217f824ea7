package dialect

import (
	"net/url"
	"strings"
)

// Target returns what rules are matched against: the path and query of u as
// they go on the wire, "/" if the path is empty, without the fragment. Octets
// of the query that are not ASCII, and blanks, are escaped. It does not
// allocate if u has no query and its path is written as net/url would write it.
func Target(u *url.URL) string {
	path := targetPath(u)
	if u.RawQuery == "" && !u.ForceQuery {
		return path
	}
	return path + "?" + escapeQuery(u.RawQuery)
}

// appendTarget appends the [Target] of u.
func appendTarget(b []byte, u *url.URL) []byte {
	b = append(b, targetPath(u)...)
	if u.RawQuery == "" && !u.ForceQuery {
		return b
	}
	return append(append(b, '?'), escapeQuery(u.RawQuery)...)
}

// targetPath returns the target without the query.
func targetPath(u *url.URL) string {
	path := u.EscapedPath()
	if strings.IndexByte(u.Host, ';') >= 0 {
		path = targetPrefix(u.Host) + path
	}
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	return path
}

// targetPrefix is what a path gets from a host with parameters: Google's
// matcher ends the host of "http://example.com;p" before the semicolon.
func targetPrefix(host string) string {
	return host[strings.IndexByte(host, ';'):]
}

// escapeQuery escapes what may not go on the wire.
func escapeQuery(q string) string {
	odd := func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }
	if !strings.ContainsFunc(q, odd) {
		return q
	}
	var b []byte
	for i := 0; i < len(q); i++ {
		if odd(rune(q[i])) {
			b = appendEscape(b, q[i])
		} else {
			b = append(b, q[i])
		}
	}
	return string(b)
}
