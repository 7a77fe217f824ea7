package dialect

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// asciiHost returns the one spelling of a host. The dot that ends a fully
// qualified name is left out: the name means the same host without it.
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

// hosts maps names as browsers do, with underscores and with hyphens anywhere.
var hosts = idna.New(
	idna.MapForLookup(), idna.BidiRule(),
	idna.StrictDomainName(false), idna.CheckHyphens(false), idna.Transitional(false),
)

// longestHost is more than any name needs: DNS takes 253 octets of punycode,
// each of which stands for at most four of UTF-8. The time to convert a name
// grows with the square of its length.
const longestHost = 1024

// addressHost returns an IP address as a URL has it. A zone is the name of a
// network interface (RFC 6874).
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

// isNoHostOctet reports whether c can be in no host: a "forbidden domain code
// point" (URL Standard, section 3.5), one that net/url takes in no host, or a
// semicolon, which some characters are mapped to.
func isNoHostOctet(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune("#/:;<>?@[\\]^|%`{}", c)
}

// isNormalHost reports whether host is plainly as [AuthorityOf] would write it.
// It errs on the side of no.
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
