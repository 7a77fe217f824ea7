package frontier

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/weburl"
)

// normalize returns the normal form of a URL and its host. Two URLs with the same normal form cause
// the same request, except for different spellings of it that RFC 3986, section 6.2.2, calls
// equivalent: the scheme and the host are in lower case, an international name is in punycode, the
// default port and the fragment are omitted, an empty path is "/", unreserved characters are not
// escaped, and the hex digits of escapes are in upper case.
func normalize(raw string) (key, host string, err error) {
	u, err := weburl.Parse(raw)
	if err != nil {
		return "", "", fmt.Errorf("frontier: %w", redact.ParseError(err))
	}
	authority, err := dialect.AuthorityOf(u)
	if err != nil { // another scheme, or a host to which no request can be sent
		u.Fragment = ""
		u.RawFragment = ""
		return u.String(), strings.ToLower(u.Host), nil
	}
	key = authority.Scheme + "://" + userOf(u) + strings.TrimPrefix(authority.String(), authority.Scheme+"://") +
		decodeUnreserved(dialect.Target(u))
	if strings.IndexByte(u.Host, ';') >= 0 { // the semicolon and what follows is now in the path
		return normalize(key)
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

// decodeUnreserved decodes the escapes of letters, digits, "-", ".", "_" and "~" (RFC 3986, section
// 2.3). The hex digits of escapes must be in upper case.
func decodeUnreserved(s string) string {
	var b []byte // nil until there is something to decode
	done := 0
	for i := strings.IndexByte(s, '%'); i >= 0 && i+2 < len(s); {
		if c := unhex(s[i+1])<<4 | unhex(s[i+2]); isUnreserved(c) {
			b = append(b, s[done:i]...)
			b = append(b, c)
			done = i + 3
		}
		next := strings.IndexByte(s[i+1:], '%')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if b == nil {
		return s
	}
	return string(append(b, s[done:]...))
}

// unhex returns the value of an upper-case hex digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'A' + 10
}

func isUnreserved(c byte) bool {
	lower := c | 0x20
	return 'a' <= lower && lower <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
