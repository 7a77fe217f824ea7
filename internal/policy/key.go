package policy

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// key names an authority: a scheme and a host as [dialect.Locate] writes them.
type key struct{ scheme, host string }

// robotsURL returns the address of k's robots.txt: the string that old already has, if there is an old policy.
func robotsURL(k key, old *Policy) string {
	if old != nil {
		return old.RobotsURL
	}
	return k.scheme + "://" + k.host + robotsPath
}

// keyIn returns the key of the authority whose robots.txt is at robots. It shares that string's memory, where the host
// of a page's URL would keep the whole of that URL.
func keyIn(robots string) key {
	scheme, host, _ := strings.Cut(strings.TrimSuffix(robots, robotsPath), "://")
	return key{scheme, host}
}

// keyOf returns the key of the authority that governs u. Hosts that plainly are in normal form, which is nearly all,
// cost no allocation.
func keyOf(u *url.URL) (key, error) {
	if normal(u.Scheme, u.Host) {
		return key{u.Scheme, u.Host}, nil
	}
	robots, err := dialect.Locate(u)
	if err != nil {
		return key{}, err
	}
	return key{robots.Scheme, robots.Host}, nil
}

// normal reports whether Locate would return scheme and host as they are. It errs on the side of no.
func normal(scheme, host string) bool {
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort && !normalPort(scheme, port) {
		return false
	}
	return (scheme == "https" || scheme == "http") && normalName(name)
}

func normalPort(scheme, port string) bool {
	if len(port) == 0 || len(port) > 4 && port > "65535" || len(port) > 5 || port[0] == '0' {
		return false
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return false
		}
	}
	return port != defaultPort(scheme)
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// normalName reports whether name is labels of lower-case letters, digits and single hyphens between them, the last one
// no number, or four decimal octets.
func normalName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for rest, more := name, true; more; {
		var label string
		label, rest, more = strings.Cut(rest, ".")
		if !normalLabel(label) {
			return false
		}
		if !more && '0' <= label[0] && label[0] <= '9' {
			ip, err := netip.ParseAddr(name)
			return err == nil && ip.Is4()
		}
	}
	return true
}

func normalLabel(label string) bool {
	before := byte('-')
	for i := range len(label) {
		c := label[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' && before != '-') {
			return false
		}
		before = c
	}
	return before != '-' && len(label) <= 63
}
