package collyrobots

import (
	"errors"
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

var errPrivate = errors.New("which is no public address: the option AllowPrivateNetworks allows it")

// networks tell public hosts from others. Names are as pace.Host has them: in normal form, with the
// port unless it is the default one.
type networks struct {
	allowed bool // everything is

	mu      sync.RWMutex
	private [2]map[string]bool // hosts that were met at such an address: of late, and before that
	refused map[string]refusal // hosts that were led to
}

// A refusal is remembered for a while, so that a thousand Sitemap lines do not mean as many
// connections that are made and not used.
type refusal struct {
	address netip.Addr
	until   time.Time
}

const refusedFor = time.Minute

// maxPrivate bounds each half of what is remembered. A crawl through a proxy on this machine that
// looks like the hosts themselves meets all of them here.
const maxPrivate = 1 << 15

// meet notes that a host is at an address that is not public.
func (n *networks) meet(host string) {
	if n.known(host) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.private[0] == nil || len(n.private[0]) >= maxPrivate {
		n.private[1], n.private[0] = n.private[0], make(map[string]bool)
	}
	n.private[0][strings.Clone(host)] = true
}

// refuse notes that a host that was led to is at such an address.
func (n *networks) refuse(host string, address netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused == nil || len(n.refused) >= maxPrivate {
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

func (n *networks) known(host string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.private[0][host] || n.private[1][host]
}

// guard returns what is to be returned if the host to, where from leads to u, turns out not to be
// public; nil: it may be anything. The error is that it is known not to be.
func (n *networks) guard(from, to string, u *url.URL) (*PrivateNetworkError, error) {
	if from == "" || n.allowed || from == to || nameOf(from) == nameOf(to) {
		return nil, nil
	}
	if _, private := privateName(nameOf(from)); private || n.known(from) {
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
	for _, scheme := range [...]string{"https", "http"} {
		if a, err := dialect.AuthorityOf(&url.URL{Scheme: scheme, Host: hop}); err == nil && a.Host == host {
			return true
		}
	}
	return false
}
