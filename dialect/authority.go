package dialect

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// An Authority is what one robots.txt governs: a scheme, a host and a port (RFC
// 9309, section 2.3; Google, "File location and range of validity"). It is in
// normal form, so two URLs have the same robots.txt if their authorities are
// equal, and it is comparable: a key for a map. The zero value governs nothing.
type Authority struct {
	Scheme string // "http", "https" or "ftp"
	Host   string // lower-case punycode, with the port unless it is the scheme's own
}

// AuthorityOf returns the authority of u. It does not allocate for a URL whose
// host is in normal form, as nearly all are; Host is then a part of u.Host, and
// keeps it alive. It fails where [Locate] does.
func AuthorityOf(u *url.URL) (Authority, error) {
	if scheme := knownScheme(u.Scheme); scheme != "" && isNormalHost(scheme, u.Host) {
		return Authority{scheme, u.Host}, nil
	}
	scheme := knownScheme(strings.ToLower(u.Scheme))
	if scheme == "" {
		return Authority{}, fmt.Errorf("dialect: no robots.txt for the scheme of %q", u.Redacted())
	}
	host, err := asciiHost(u.Hostname())
	if err != nil {
		return Authority{}, fmt.Errorf("dialect: no robots.txt for the host of %q: %w", u.Redacted(), err)
	}
	if p := u.Port(); p != "" {
		port, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return Authority{}, fmt.Errorf("dialect: no robots.txt for the port of %q: %w", u.Redacted(), err)
		}
		if uint16(port) != defaultPort(scheme) {
			host += ":" + strconv.FormatUint(port, 10)
		}
	}
	return Authority{scheme, host}, nil
}

// String returns the authority as a URL without a path:
// "https://example.com:8443".
func (a Authority) String() string {
	return a.Scheme + "://" + strings.Replace(a.Host, "%", "%25", 1) // the zone of an address (RFC 6874)
}

// RobotsURL returns the URL of the authority's robots.txt.
func (a Authority) RobotsURL() string { return a.String() + "/robots.txt" }

// knownScheme returns scheme if there is a robots.txt for it, else "". What it
// returns is a constant, which keeps no URL alive.
func knownScheme(scheme string) string {
	switch scheme {
	case "https":
		return "https"
	case "http":
		return "http"
	case "ftp":
		return "ftp"
	}
	return ""
}

// Locate returns the URL of the robots.txt that governs u: same scheme, host
// and port, path /robots.txt. URLs with the same authority have the same
// robots.txt URL: letters are lower case, an internationalised name is in
// punycode, an IP address in its shortest form, a default port is left out,
// user information is dropped. It is an error if the scheme is not http, https
// or ftp, or the host is none that a request could be sent to.
func Locate(u *url.URL) (*url.URL, error) {
	a, err := AuthorityOf(u)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: a.Scheme, Host: a.Host, Path: "/robots.txt"}, nil
}
