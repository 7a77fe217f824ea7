package dialect

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// Locate returns the URL of the robots.txt that governs u: same scheme, host and
// port, path /robots.txt. URLs with the same authority have the same robots.txt
// URL: letters are lower case, an internationalised name is in punycode, an IP
// address in its shortest form, a default port is left out, user information is
// dropped. It is an error if the scheme is not http, https or ftp, or the host is
// none that a request could be sent to.
func Locate(u *url.URL) (*url.URL, error) {
	a, err := AuthorityOf(u)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: a.Scheme, Host: a.Host, Path: "/robots.txt"}, nil
}

// hosts maps names as browsers do, with underscores and with hyphens anywhere.
var hosts = idna.New(
	idna.MapForLookup(), idna.BidiRule(),
	idna.StrictDomainName(false), idna.CheckHyphens(false), idna.Transitional(false),
)

// longestHost is more than any name needs: DNS takes 253 octets of punycode, each
// of which stands for at most four of UTF-8. The time to convert a name grows with
// the square of its length.
const longestHost = 1024

// asciiHost returns the one spelling of a host. The dot that ends a fully qualified
// name is left out: the name means the same host without it.
func asciiHost(host string) (string, error) {
	host, _, _ = strings.Cut(host, ";") // see targetPrefix
	if strings.Trim(host, ".") == "" {
		return "", errors.New("it is empty")
	}
	if len(host) > longestHost {
		return "", fmt.Errorf("it has %d octets", len(host))
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addressHost(addr)
	}
	if isPlainHost(host) {
		return strings.TrimRight(host, "."), nil
	}
	ascii, err := hosts.ToASCII(host)
	if err != nil {
		return "", err
	}
	ascii = strings.TrimRight(ascii, ".")
	if again, err := hosts.ToASCII(ascii); err != nil || again != ascii || ascii == "" || strings.ContainsFunc(ascii, isNoHostOctet) {
		return "", errors.New("no such host can be")
	}
	return ascii, nil
}

// addressHost returns an IP address as a URL has it. A zone is the name of a network
// interface (RFC 6874).
func addressHost(addr netip.Addr) (string, error) {
	if addr.Is4() {
		return addr.String(), nil
	}
	for i := 0; i < len(addr.Zone()); i++ {
		if c := addr.Zone()[i]; !isLetter(c) && (c < '0' || '9' < c) && strings.IndexByte("-._~", c) < 0 {
			return "", fmt.Errorf("its zone has the octet %q", c)
		}
	}
	return "[" + addr.String() + "]", nil
}

// isPlainHost reports whether a host is spelt as it must be: most are.
func isPlainHost(host string) bool {
	for i := 0; i < len(host); i++ {
		if c := host[i]; (c < 'a' || 'z' < c) && (c < '0' || '9' < c) && c != '.' && (c != '-' || i > 1 && host[i-1] == '-') {
			return false
		}
	}
	return true
}

func isNoHostOctet(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`#/:<>?@[\]^|%`, c)
}

// Target returns what rules are matched against: the path and query of u as they
// go on the wire, "/" if the path is empty, without the fragment. Octets of the
// query that are not ASCII, and blanks, are escaped. It does not allocate if u
// has no query and its path is written as net/url would write it.
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

// targetPrefix is what a path gets from a host with parameters: Google's matcher
// ends the host of "http://example.com;p" before the semicolon.
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

// isAbsolute reports whether s is a URL with a scheme and a host.
func isAbsolute(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" || rest == "" || strings.IndexByte("/?#", rest[0]) >= 0 {
		return false
	}
	for i := 0; i < len(scheme); i++ {
		c := scheme[i]
		if !isLetter(c) && (i == 0 || c < '0' || c > '9') && (i == 0 || strings.IndexByte("+-.", c) < 0) {
			return false
		}
	}
	return true
}
