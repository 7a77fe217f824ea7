package netguard

import (
	"net"
	"net/netip"
	"strings"
)

// privateName reports whether the name of a host alone shows that the host is private: it is a
// private address, or localhost (RFC 6761, section 6.3).
func privateName(name string) (address string, private bool) {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return name, true
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	addr, err := netip.ParseAddr(name)
	if err != nil || !isPrivate(addr) {
		return "", false
	}
	return name, true
}

// privatePeer reports whether addr is the address of a private host. An addr that is not an IP
// address, for example that of a net.Pipe, counts as public.
func privatePeer(addr net.Addr) (ip netip.Addr, private bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	ip = tcp.AddrPort().Addr().Unmap()
	return ip, isPrivate(ip)
}

// isPrivate reports whether addr is not an address of the public internet.
func isPrivate(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	if inner, ok := embedded(addr); ok {
		addr = inner
	}
	if addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
		return true
	}
	for _, p := range notPublic {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// notPublic are the ranges that no method of netip.Addr checks.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // "this network" (RFC 791)
	netip.MustParsePrefix("100.64.0.0/10"), // shared by the customers of a carrier (RFC 6598)
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments (RFC 6890)
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, and broadcast (RFC 1112)
	netip.MustParsePrefix("fec0::/10"),     // formerly site-local (RFC 3879)
}

// The ranges of IPv6 addresses that contain an IPv4 address.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour  = netip.MustParsePrefix("2002::/16")    // RFC 3056
	compatible = netip.MustParsePrefix("::/96")        // RFC 4291, section 2.5.5.1
)

// embedded returns the IPv4 address that an IPv6 address contains. ok is false if it contains none.
func embedded(addr netip.Addr) (ipv4 netip.Addr, ok bool) {
	if !addr.Is6() || addr.IsUnspecified() || addr.IsLoopback() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr), compatible.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
