// Package netguard limits where one site may lead the crawler. A public site must not lead it to a
// private network, and a site may cause only a limited number of requests to other sites.
//
// Hosts are given by name and port. The name is in lower case, and the port is left out if it is
// the default port of the scheme.
package netguard

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// A Guard keeps public hosts from leading the crawler to private hosts. A host is private if it has
// an address that is not on the public internet, such as 10.0.0.1 or the loopback address.
//
// The addresses of a host are known from the connections to it. A host that had a connection to a
// public address is public from then on, even if its name resolves to another address later.
// Otherwise a site could make itself private by DNS rebinding.
type Guard struct {
	access Access
	host   func(name string) Host

	// mu protects refused.
	mu      sync.RWMutex
	refused map[string]refusal // private hosts that public hosts have led to
}

// A Host remembers marks of a host. It is implemented by *pace.Host.
type Host interface {
	Name() string
	Mark(bit uint16) (isNew bool) // sets the mark and reports whether it was not set before
	HasMark(bit uint16) bool      // reports whether the mark is set
}

// The marks of a Host that belong to this package.
const (
	seenPublic  uint16 = 1 << 6 // a connection to the host had a public address
	seenPrivate uint16 = 1 << 7 // a connection to the host had a private address
)

// An Access says which requests to private hosts a Guard allows.
type Access uint8

const (
	// GuardLeads allows the requests that the program makes itself, or that a private host leads to.
	GuardLeads Access = iota
	// DenyAll allows no request to a private host.
	DenyAll
	// AllowAll allows all requests.
	AllowAll
)

// New returns a Guard. host returns the Host with a name.
func New(host func(name string) Host, access Access) *Guard {
	return &Guard{access: access, host: host}
}

// DeniesAll reports whether the Guard allows no request to a private host.
func (g *Guard) DeniesAll() bool { return g.access == DenyAll }

// A refusal is remembered for a while. Without it, each of a thousand Sitemap lines would open a
// connection only to find that it must not be used.
type refusal struct {
	address netip.Addr
	until   time.Time
}

const (
	// refusalTime is how long a refusal is remembered.
	refusalTime = time.Minute
	// maxRefusals bounds the number of refusals that are remembered.
	maxRefusals = 1 << 15
)

// Private reports whether a host is private, by its name or by the connections to it.
func (g *Guard) Private(host string) bool {
	if _, private := privateName(nameOf(host)); private {
		return true
	}
	h := g.host(host)
	return h.HasMark(seenPrivate) && !h.HasMark(seenPublic)
}

// SetPrivate records that h has a private address.
func (g *Guard) SetPrivate(h Host) { h.Mark(seenPrivate) }

// Check is called before a request to the host to, which the host from has led to. from is empty if
// the program has made the request itself. guarded reports whether the request must not go to a
// private address. If so, and to is known to be private, address is the private address, and the
// request must not be sent. Otherwise the caller has to call Connected with from.
func (g *Guard) Check(from, to string) (guarded bool, address string) {
	if g.access == AllowAll || !g.DeniesAll() && (from == "" || g.Private(from)) {
		return false, ""
	}
	if address, private := privateName(nameOf(to)); private {
		return true, address
	}
	return true, g.refusedAt(to)
}

// Connected is called with the address of a connection to h before a request is sent on it. from is
// the host that has led to h, if Check has reported that the request is guarded, and otherwise
// empty. If the request must not be sent, Connected returns the private address, otherwise "".
func (g *Guard) Connected(h Host, addr net.Addr, from string) (address string) {
	ip, private := privatePeer(addr)
	switch {
	case !private:
		if !h.HasMark(seenPublic) {
			h.Mark(seenPublic)
		}
	case !g.DeniesAll() && (from == "" || g.leadsToItself(from, h) || g.Private(from)):
		g.SetPrivate(h)
	default:
		g.refuse(h.Name(), ip)
		return ip.String()
	}
	return ""
}

// leadsToItself reports whether from is the host h, perhaps with another port, and has never had a
// connection to a public address. If so, the program has visited this private site on purpose. No
// connection has shown that yet if its first page came from a cache.
func (g *Guard) leadsToItself(from string, h Host) bool {
	if nameOf(from) != nameOf(h.Name()) || h.HasMark(seenPublic) {
		return false
	}
	return !g.host(from).HasMark(seenPublic)
}

// refuse records that a host has a private address, although a public host has led to it.
func (g *Guard) refuse(host string, address netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused == nil || len(g.refused) >= maxRefusals {
		g.refused = make(map[string]refusal)
	}
	g.refused[strings.Clone(host)] = refusal{address: address, until: time.Now().Add(refusalTime)}
}

// refusedAt returns the private address of a host that was refused because of it a short time ago.
// Otherwise it returns "".
func (g *Guard) refusedAt(host string) (address string) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	r, ok := g.refused[host]
	if !ok || !time.Now().Before(r.until) {
		return ""
	}
	return r.address.String()
}

// nameOf returns a host without its port.
func nameOf(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return host
}
