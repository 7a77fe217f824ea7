package dialect

import (
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/internal/match"
)

// Target returns the text of u that rules are matched against: the path and the query without the
// fragment. An empty path is "/". Spaces, control characters and bytes that are not ASCII are
// escaped in the query, the hex digits of escapes are in upper case (RFC 3986, 6.2.2.1), and a %
// that does not begin an escape is %25. Target does not allocate if u has no query and its path is
// already in this form.
func Target(u *url.URL) string {
	if path, ok := plainTarget(u); ok {
		return path
	}
	return string(appendTarget(nil, u))
}

// plainTarget returns the [Target] of u and true if it equals the path of u as it is written.
func plainTarget(u *url.URL) (target string, ok bool) {
	if u.RawQuery != "" || u.ForceQuery {
		return "", false
	}
	target = targetPath(u)
	return target, match.HasNormalEscapes(target, true)
}

// appendTarget appends the [Target] of u.
func appendTarget(b []byte, u *url.URL) []byte {
	b = match.AppendEscapes(b, targetPath(u))
	if u.RawQuery == "" && !u.ForceQuery {
		return b
	}
	return match.AppendEscapes(append(b, '?'), escapeQuery(u.RawQuery))
}

// targetPath returns the target without the query and with escapes as written.
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

// targetPrefix returns the part of a host that belongs to the target. This is the semicolon and
// everything after it, because Google's matcher ends the host of "http://example.com;p" before the
// semicolon.
func targetPrefix(host string) string {
	return host[strings.IndexByte(host, ';'):]
}

// escapeQuery escapes the bytes of a query that a request cannot contain.
func escapeQuery(q string) string {
	odd := func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }
	if !strings.ContainsFunc(q, odd) {
		return q
	}
	var b []byte
	for i := 0; i < len(q); i++ {
		if odd(rune(q[i])) {
			b = match.AppendEscape(b, q[i])
		} else {
			b = append(b, q[i])
		}
	}
	return string(b)
}
