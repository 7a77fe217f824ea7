package dialect

import (
	"fmt"
	"net/netip"
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

// AuthorityOf returns the authority of u. It does not allocate for a URL whose host is
// in normal form, as nearly all are; Host is then a part of u.Host, and keeps it
// alive. It fails where [Locate] does.
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

// String returns the authority as a URL without a path: "https://example.com:8443".
func (a Authority) String() string { return a.Scheme + "://" + a.Host }

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

// defaultPort is the port that need not be written.
func defaultPort(scheme string) uint16 {
	switch scheme {
	case "https":
		return 443
	case "ftp":
		return 21
	}
	return 80
}

// isNormalHost reports whether host is plainly as [AuthorityOf] would write it. It
// errs on the side of no.
func isNormalHost(scheme, host string) bool {
	name, port, hasPort := strings.Cut(host, ":")
	return isNormalName(name) && (!hasPort || isNormalPort(scheme, port))
}

func isNormalPort(scheme, port string) bool {
	if port == "" || port[0] == '0' {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && uint16(n) != defaultPort(scheme)
}

// isNormalName reports whether name is labels of lower-case letters, digits and
// single hyphens between them, the last one no number, or four decimal octets.
func isNormalName(name string) bool {
	last := 0 // where the last label begins
	before := byte('.')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
		case c == '-' && before != '.' && before != '-':
		case c == '.' && before != '.' && before != '-' && i-last <= longestLabel:
			last = i + 1
		default:
			return false
		}
		before = name[i]
	}
	if before == '.' || before == '-' || len(name) > longestName || len(name)-last > longestLabel {
		return false
	}
	if c := name[last]; '0' <= c && c <= '9' {
		ip, err := netip.ParseAddr(name)
		return err == nil && ip.Is4()
	}
	return true
}

// What DNS allows (RFC 1035, section 2.3.4).
const longestLabel, longestName = 63, 253
