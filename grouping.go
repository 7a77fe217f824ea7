package collyrobots

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/pace"
)

// A Grouping says which hosts share one pace; see PaceBy.
type Grouping uint8

const (
	// ByHost gives each host its own pace.
	ByHost Grouping = iota
	// ByDomain gives one pace to all hosts of a registrable domain, such as example.co.uk, with any
	// port. The list of public suffixes is that of golang.org/x/net/publicsuffix. A host whose name
	// is an address belongs to the group of that address.
	ByDomain
	// ByAddress gives one pace to all hosts that have the same IP address, with any port. See
	// PaceBy for how the address is found.
	ByAddress
)

// String returns "host", "domain" or "address".
func (g Grouping) String() string {
	switch g {
	case ByHost:
		return "host"
	case ByDomain:
		return "domain"
	case ByAddress:
		return "address"
	}
	return "Grouping(" + strconv.Itoa(int(g)) + ")"
}

// PaceBy makes the hosts of a group share one pace, so that a server with many names gets no more
// requests than a server with one name. The default is ByHost.
//
// The longest delay of all hosts of the group applies to each of them, and a response with status
// 429 or 503 of one host slows all of them down. If ForHosts gives the hosts different settings,
// the group uses the longest MinDelay, MaxDelay, MaxBackOff and AdaptiveDelay, the smallest
// MaxInFlight, and DelayFromEnd if one host has it. The group is open while the CrawlHours of all
// hosts allow requests. If these hours have no time in common, nothing is requested. The waiting
// pages take turns: one page of each host, then the next page of each host. Requests for
// robots.txt, sitemaps and redirects go first, as they do for one host. With SharedPace, the name
// that Pacer.Acquire gets is that of the group.
//
// With ByAddress, the plugin looks up the name of a host with net.DefaultResolver before the first
// request to it. A look-up takes at most five seconds, and at most 32 names are looked up at once.
// After an hour, the name is looked up again when no request of the host waits or is in flight. If
// a name has several addresses, the group is that of the lowest IPv4 address or, if there is none,
// of the lowest IPv6 address. So two hosts that share only some of their addresses may belong to
// different groups.
//
// In two cases the group is not known, and the host has its own pace:
//
//   - Its requests go through a proxy. The plugin assumes this if the Proxy function of the
//     transport is http.ProxyFromEnvironment and chooses a proxy, if it is another function, or if
//     a connection leads to a proxy. The plugin does not look up the names of such hosts.
//   - The look-up fails. It is tried again after a minute. If the transport reports the address of
//     a connection, as an http.Transport does, that address determines the group from then on. This
//     also holds if the transport has its own dialer and uses an address that the look-up has not
//     returned.
func PaceBy(g Grouping) Option {
	return hostOption("PaceBy", func(s *hostSettings) { s.grouping = g },
		faultIf(g > ByAddress, "PaceBy", "there is no %v", g))
}

// How long the group of a host is kept before it is found again.
const (
	addressTime = time.Hour                  // if its address is known
	failureTime = time.Minute                // if its address could not be found
	always      = 100 * 365 * 24 * time.Hour // if the name alone determines the group
)

const (
	// lookupTime limits the time of one lookup.
	lookupTime = 5 * time.Second
	// maxLookups is the number of lookups at the same time.
	maxLookups = 32
)

// A groupings finds the groups of hosts for PaceBy.
type groupings struct {
	settings *settings
	slots    chan struct{} // holds a value for each lookup in progress
	closing  context.Context
	close    context.CancelFunc
}

func newGroupings(s *settings) *groupings {
	g := &groupings{settings: s, slots: make(chan struct{}, maxLookups)}
	g.closing, g.close = context.WithCancel(context.Background())
	return g
}

// inUse reports whether some hosts may share their pace.
func (g *groupings) inUse() bool {
	return slices.ContainsFunc(g.settings.all(), func(s *hostSettings) bool { return s.grouping != ByHost })
}

// lookup asks the resolver of the system.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// An addresses is the pace.Group.Basis of a host whose addresses are known or were looked up.
type addresses struct {
	known []netip.Addr
	met   bool // the last one comes from a connection
}

// join finds the group of a host that may share its pace, unless it is known. It is called before a
// request for u waits for the host. through is the transport that will send it, or nil if the
// program sends it.
func (l *limiter) join(ctx context.Context, host *pace.Host, through http.RoundTripper, u *url.URL) {
	if !host.Rules().Shares {
		return
	}
	now := time.Now()
	known := host.Group()
	if now.Before(known.Until) {
		return
	}
	switch l.groupings.settings.of(host.Name()).grouping {
	case ByDomain:
		host.Join(pace.Group{Name: feed.Registrable(host.Name()), Until: now.Add(always)})
	case ByAddress:
		l.joinByAddress(ctx, host, through, u, known)
	}
}

// joinByAddress finds the group of a host by its address. known is the group so far, which the host
// keeps if the address cannot be found again.
func (l *limiter) joinByAddress(ctx context.Context, host *pace.Host, through http.RoundTripper, u *url.URL, known pace.Group) {
	name := nameOf(host.Name())
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	switch {
	case backend.MayProxy(through, u):
		host.Join(pace.Group{Until: time.Now().Add(addressTime)})
		return
	case err == nil:
		host.Join(groupAt([]netip.Addr{addr}, always))
		return
	}
	found, err := l.groupings.find(ctx, name)
	if err == nil && len(found) > 0 {
		host.Join(groupAt(found, addressTime))
		return
	}
	if ctx.Err() != nil {
		return
	}
	if l.report.markLogged("no address") {
		l.report.log.Info("the address of a host could not be found, so it is paced alone until a connection shows the address",
			"host", host.Name(), "error", err)
	}
	known.Until = time.Now().Add(failureTime)
	host.Join(known)
}

// find looks up the addresses of a name.
func (g *groupings) find(ctx context.Context, name string) ([]netip.Addr, error) {
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-g.closing.Done():
		return nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	stop := context.AfterFunc(g.closing, cancel)
	defer stop()
	return lookup(ctx, name)
}

// groupAt returns the group of a host at these addresses.
func groupAt(found []netip.Addr, lifetime time.Duration) pace.Group {
	known := make([]netip.Addr, len(found))
	for i, addr := range found {
		known[i] = addr.WithZone("").Unmap()
	}
	lowest := slices.MinFunc(known, netip.Addr.Compare) // IPv4 comes before IPv6
	return pace.Group{Name: lowest.String(), Until: time.Now().Add(lifetime), Basis: &addresses{known: known}}
}

// met is called with the address of a connection for a request to a host. target is "host:port" of
// the host or of a proxy.
func (l *limiter) met(host *pace.Host, target string, addr net.Addr) {
	if !host.Rules().Shares || l.groupings.settings.of(host.Name()).grouping != ByAddress {
		return
	}
	known := host.Group()
	if !isServer(host.Name(), target) {
		if known.Name != "" {
			host.Join(pace.Group{Until: time.Now().Add(addressTime)})
		}
		return
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return
	}
	ip := tcp.AddrPort().Addr().WithZone("").Unmap()
	basis, _ := known.Basis.(*addresses)
	if basis != nil && (basis.met || slices.Contains(basis.known, ip)) {
		return // the addresses of some names change with each lookup, but the group should not
	}
	group := groupAt([]netip.Addr{ip}, addressTime)
	group.Basis.(*addresses).met = true
	host.Join(group)
}
