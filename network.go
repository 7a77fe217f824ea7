package collyrobots

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A PrivateNetworkError says that a public site would have sent the crawler to an address that is
// not public: private, loopback, link-local and the like. The request was not sent. It is in the
// error of OnError and Visit for a redirect or a page that a sitemap lists, and in the log for
// robots.txt and sitemaps. See AllowPrivateNetworks.
type PrivateNetworkError struct {
	URL     string // that was not asked for, without its password
	Address string // where it would have gone
	From    string // the host that led there
}

// Error returns the URL, its address and the host that led there.
func (e *PrivateNetworkError) Error() string {
	return fmt.Sprintf("collyrobots: %s leads to %s at %s, %v", e.From, e.URL, e.Address, errPrivate)
}

// Unwrap returns what is the same in all of them: that the address is not public.
func (e *PrivateNetworkError) Unwrap() error { return errPrivate }

var errPrivate error = notForSite("which is no public address: the option AllowPrivateNetworks allows it")

// networks tell public hosts from private ones, which have an address that is not public. Names are
// those of pace.Host: in normal form, with the port unless it is the default one.
//
// Where a host is, its connections show. A host that was seen at a public address is public from
// then on, whatever its name resolves to later: otherwise DNS rebinding would make it private.
type networks struct {
	allowed bool // all networks are
	host    func(name string) seenHost

	mu      sync.RWMutex
	refused map[string]refusal // hosts that a public site led to
}

// A seenHost remembers bits about a host. It is a *pace.Host.
type seenHost interface {
	Name() string
	First(what uint8) bool
	Told(what uint8) bool
}

// A refusal is remembered for a while, so that a thousand Sitemap lines do not mean as many
// connections that are made and not used.
type refusal struct {
	address netip.Addr
	until   time.Time
}

const refusedFor = time.Minute

// maxRefused bounds the number of refusals that are remembered.
const maxRefused = 1 << 15

// refuse notes that a host that was led to is at a private address.
func (n *networks) refuse(host string, address netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused == nil || len(n.refused) >= maxRefused {
		n.refused = make(map[string]refusal)
	}
	n.refused[strings.Clone(host)] = refusal{address, time.Now().Add(refusedFor)}
}

// refusedAt returns where a host was when it was refused, if that is not long ago.
func (n *networks) refusedAt(host string) (address string, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	r, ok := n.refused[host]
	return r.address.String(), ok && time.Now().Before(r.until)
}

// private reports whether a host is private, by its name or by its connections.
func (n *networks) private(host string) bool {
	if _, private := privateName(nameOf(host)); private {
		return true
	}
	h := n.host(host)
	return h.Told(seenPrivate) && !h.Told(seenPublic)
}

// guard returns the error for the request u on the host to, where the host from leads, in case the
// connection shows that to is private; nil if it may be. The error says that to is known to be
// private.
func (n *networks) guard(from, to string, u *url.URL) (*PrivateNetworkError, error) {
	if from == "" || n.allowed || n.private(from) {
		return nil, nil
	}
	g := &PrivateNetworkError{URL: u.Redacted(), From: from}
	if address, private := privateName(nameOf(to)); private {
		g.Address = address
		return nil, g
	}
	if address, refused := n.refusedAt(to); refused {
		g.Address = address
		return nil, g
	}
	return g, nil
}

// meet notes the address of a connection to a host. It returns an error if the request must not be
// sent on it, because of its guard.
func (n *networks) meet(h seenHost, addr net.Addr, guard *PrivateNetworkError) error {
	ip, private := peerIsPrivate(addr)
	switch {
	case !private:
		if !h.Told(seenPublic) {
			h.First(seenPublic)
		}
	case guard == nil || n.leadsToItself(guard.From, h) || n.private(guard.From):
		h.First(seenPrivate)
	default:
		n.refuse(h.Name(), ip)
		err := *guard
		err.Address = ip.String()
		return &err
	}
	return nil
}

// leadsToItself reports whether from is the host h, perhaps at another port, and was never seen at a
// public address. Such a site is where the program has gone, although no connection has shown that
// yet, because its first page came from a cache.
func (n *networks) leadsToItself(from string, h seenHost) bool {
	if nameOf(from) != nameOf(h.Name()) || h.Told(seenPublic) {
		return false
	}
	return !n.host(from).Told(seenPublic)
}

// nameOf returns a host without its port.
func nameOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return host
}

// privateName reports whether a host is not public by its name: an address, or localhost (RFC 6761,
// section 6.3).
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

// peerIsPrivate reports whether addr is one that is not public. What is no IP address, such as a
// pipe's, is not.
func peerIsPrivate(addr net.Addr) (netip.Addr, bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	ip := tcp.AddrPort().Addr().Unmap()
	return ip, isPrivate(ip)
}

// isPrivate reports whether an address is not one of the public internet.
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

// notPublic is what package netip has no name for.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // "this network" (RFC 791)
	netip.MustParsePrefix("100.64.0.0/10"), // shared by the customers of a carrier (RFC 6598)
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments (RFC 6890)
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, and broadcast (RFC 1112)
	netip.MustParsePrefix("fec0::/10"),     // site-local, once (RFC 3879)
}

// Ways of writing an IPv4 address as one of IPv6.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour  = netip.MustParsePrefix("2002::/16")    // RFC 3056
	compatible = netip.MustParsePrefix("::/96")        // RFC 4291, section 2.5.5.1
)

// embedded returns the IPv4 address that an IPv6 address stands for.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() || addr.IsUnspecified() || addr.IsLoopback() {
		return addr, false
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr), compatible.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return addr, false
}

// forbidden reports whether u is on one of the domains, which are names without a port.
func forbidden(domains []string, u *url.URL) bool {
	if len(domains) == 0 {
		return false
	}
	name := func(host string) string {
		a, err := dialect.AuthorityOf(&url.URL{Scheme: "http", Host: host})
		if err != nil {
			return strings.ToLower(host)
		}
		return nameOf(a.Host)
	}
	at := name(u.Host)
	return slices.ContainsFunc(domains, func(d string) bool { return d == u.Hostname() || name(d) == at })
}

// isHop reports whether hop, "host:port", is the host itself and not a proxy to it.
func isHop(host, hop string) bool {
	if port, ok := strings.CutPrefix(hop, host); ok && (port == "" || port == ":80" || port == ":443") {
		return true
	}
	for _, scheme := range [...]string{"https", "http"} {
		if a, err := dialect.AuthorityOf(&url.URL{Scheme: scheme, Host: hop}); err == nil && a.Host == host {
			return true
		}
	}
	return false
}
