package urlstore

import (
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/weburl"
)

// Normalize returns the normal form of a URL, which is the Key of its Page, and its host as in
// report.HostStats. Two URLs with the same normal form cause the same request, except for different
// spellings of it that RFC 3986, section 6.2.2, calls equivalent: the scheme and the host are in
// lower case, an international name is in punycode, the default port and the fragment are omitted,
// an empty path is "/", unreserved characters are not escaped, and the hex digits of escapes are in
// upper case. The error is a *url.Error without a password.
func Normalize(raw string) (key, host string, err error) {
	u, err := weburl.Parse(raw)
	if err != nil {
		return "", "", redact.ParseError(err)
	}
	authority, err := dialect.AuthorityOf(u)
	if err != nil { // another scheme, or a host that no request can be sent to
		u.Fragment = ""
		u.RawFragment = ""
		return u.String(), strings.ToLower(u.Host), nil
	}
	key = authority.Scheme + "://" + userOf(u) + strings.TrimPrefix(authority.String(), authority.Scheme+"://") +
		weburl.DecodeUnreserved(dialect.Target(u))
	if strings.IndexByte(u.Host, ';') >= 0 { // the semicolon and what follows is now in the path
		return Normalize(key)
	}
	return key, authority.Host, nil
}

// userOf returns the user information of u with the @ after it, or "" if there is none.
func userOf(u *url.URL) string {
	if u.User == nil {
		return ""
	}
	return u.User.String() + "@"
}
