package dialect

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// asciiHost returns the normal form of a host. It omits the dot at the end of a fully qualified
// name, because the name without the dot means the same host.
func asciiHost(host string) (string, error) {
	host, _, _ = strings.Cut(host, ";") // see targetPrefix
	if strings.Trim(host, ".") == "" {
		return "", errors.New("the host is empty")
	}
	if len(host) > longestHost {
		return "", fmt.Errorf("the host has %d bytes, and at most %d are possible", len(host), longestHost)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addressHost(addr)
	}
	if isPlainHost(host) {
		return strings.TrimRight(host, "."), nil
	}
	ascii, err := toASCII(host)
	if err != nil {
		return "", fmt.Errorf("the host is not a valid name (%w)", err)
	}
	ascii = strings.TrimRight(ascii, ".")
	if again, err := toASCII(ascii); err != nil || again != ascii || ascii == "" || strings.ContainsFunc(ascii, isForbiddenInHost) {
		return "", errors.New("the host is not a valid name")
	}
	return ascii, nil
}

// longestHost is the maximum length of a host name. A limit is necessary because the time to
// convert a name grows with the square of its length. No valid name is longer: DNS allows 253 bytes
// of punycode, and each of them stands for at most four bytes of UTF-8.
const longestHost = 1024

// addressHost returns an IP address in the form that it has in a URL. A zone is the name of a
// network interface (RFC 6874).
func addressHost(addr netip.Addr) (string, error) {
	if addr.Is4() {
		return addr.String(), nil
	}
	for i := 0; i < len(addr.Zone()); i++ {
		if c := addr.Zone()[i]; !isLetter(c) && (c < '0' || '9' < c) && strings.IndexByte("-._~", c) < 0 {
			return "", fmt.Errorf("the zone of the address contains %q", c)
		}
	}
	return "[" + addr.String() + "]", nil
}

// isPlainHost reports whether a host is a name in normal form, except that it may end in a dot.
// Most hosts are.
func isPlainHost(host string) bool {
	for i := 0; i < len(host); i++ {
		if c := host[i]; (c < 'a' || 'z' < c) && (c < '0' || '9' < c) && c != '.' && (c != '-' || i > 1 && host[i-1] == '-') {
			return false
		}
	}
	return true
}

// isForbiddenInHost reports whether a host cannot contain c. These are the "forbidden domain code
// points" (URL Standard, section 3.5), the characters that net/url does not accept in a host, and
// the semicolon, because some other characters are mapped to it.
func isForbiddenInHost(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune("#/:;<>?@[\\]^|%`{}", c)
}

// isNormalHost reports whether host is in the normal form of [AuthorityOf]. It may return false for
// a host in normal form, but never true for another host.
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

// isNormalName reports whether name consists of labels of lower-case letters, digits and single
// hyphens between them. If the last label begins with a digit, name must be an IPv4 address.
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

// Limits of DNS (RFC 1035, section 2.3.4).
const longestLabel, longestName = 63, 253

// defaultPort returns the port of a scheme that a URL may omit.
func defaultPort(scheme string) uint16 {
	switch scheme {
	case "https":
		return 443
	case "ftp":
		return 21
	}
	return 80
}
