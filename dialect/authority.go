package dialect

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// An Authority is the range of validity of a robots.txt: a scheme, a host and a port (RFC 9309,
// section 2.3; Google, "File location and range of validity"). It is in normal form, so two URLs
// have the same robots.txt if their authorities are equal. Authorities are comparable with == and
// can be keys of a map. No URL has the zero value as its authority.
type Authority struct {
	Scheme string // "http", "https" or "ftp"
	Host   string // lower-case punycode, with the port unless it is the default port of the scheme
}

// AuthorityOf returns the authority of u. If the host of u is already in normal form, as most are,
// AuthorityOf does not allocate, and Host shares the memory of u.Host. If the scheme is not http,
// https or ftp, or if no request can be sent to the host or the port, the error is a *URLError.
func AuthorityOf(u *url.URL) (Authority, error) {
	if scheme := knownScheme(u.Scheme); scheme != "" && isNormalHost(scheme, u.Host) {
		return Authority{scheme, u.Host}, nil
	}
	scheme := knownScheme(strings.ToLower(u.Scheme))
	if scheme == "" {
		return Authority{}, &URLError{URL: u.Redacted(), Reason: "the scheme is not http, https or ftp"}
	}
	host, err := asciiHost(u.Hostname())
	if err != nil {
		return Authority{}, &URLError{URL: u.Redacted(), Reason: err.Error()}
	}
	if p := u.Port(); p != "" {
		port, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return Authority{}, &URLError{URL: u.Redacted(), Reason: fmt.Sprintf("the port %.20s is above 65535", p)}
		}
		if uint16(port) != defaultPort(scheme) {
			host += ":" + strconv.FormatUint(port, 10)
		}
	}
	return Authority{scheme, host}, nil
}

// A URLError says why no request can be sent to a URL. Such a URL has no robots.txt, and another
// attempt cannot succeed.
type URLError struct {
	URL    string // without its password
	Reason string // such as "the port 99999 is above 65535"
}

// Error returns the URL and the reason.
func (e *URLError) Error() string {
	return fmt.Sprintf("dialect: no request can be sent to %s: %s", e.URL, e.Reason)
}

// String returns the authority as a URL without a path, such as "https://example.com:8443".
func (a Authority) String() string {
	return a.Scheme + "://" + strings.Replace(a.Host, "%", "%25", 1) // the zone of an address (RFC 6874)
}

// RobotsURL returns the URL of the authority's robots.txt.
func (a Authority) RobotsURL() string { return a.String() + "/robots.txt" }

// knownScheme returns scheme if a robots.txt can be fetched for it, and "" otherwise. It returns a
// constant, so that the result does not share memory with a URL.
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

// Locate returns the URL of the robots.txt that applies to u: it has the same scheme, host and port
// and the path /robots.txt. The URL is in normal form, so it is the same for all URLs with the same
// authority: letters are in lower case, an internationalized name is in punycode, an IP address is
// in its shortest form, and a default port and user information are omitted. Locate fails like
// [AuthorityOf].
func Locate(u *url.URL) (*url.URL, error) {
	a, err := AuthorityOf(u)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: a.Scheme, Host: a.Host, Path: "/robots.txt"}, nil
}
