package exchange

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/report"
)

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

// A Sharing says which hosts share one pace. Its values are those of Grouping.
type Sharing uint8

const (
	Alone Sharing = iota
	withDomain
	withAddress
)

// A groupings finds the groups of hosts for PaceBy.
type groupings struct {
	of      func(host string) Sharing // nil if no hosts share their pace
	slots   chan struct{}             // holds a value for each lookup in progress
	closing context.Context
	close   context.CancelFunc
}

func newGroupings(of func(host string) Sharing) *groupings {
	g := &groupings{of: of, slots: make(chan struct{}, maxLookups)}
	g.closing, g.close = context.WithCancel(context.Background())
	return g
}

// inUse reports whether some hosts may share their pace.
func (g *groupings) inUse() bool { return g.of != nil }

// lookup asks the resolver of the system.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// An addresses is the pace.Assignment.Basis of a host whose addresses are known or were looked up.
type addresses struct {
	known []netip.Addr
	met   bool // the last one comes from a connection
}

// Join finds the group of a host that may share its pace, unless it is known. It is called before a
// request for u waits for the host. through is the transport that will send it, or nil if the
// program sends it.
func (w *Wire) Join(ctx context.Context, host *pace.Host, through http.RoundTripper, u *url.URL) {
	if !host.Rules().Shares {
		return
	}
	now := time.Now()
	known := host.Assignment()
	if now.Before(known.Until) {
		return
	}
	switch w.groupings.of(host.Name()) {
	case withDomain:
		host.Join(pace.Assignment{Name: hostname.Registrable(host.Name()), Until: now.Add(always)})
	case withAddress:
		w.joinByAddress(ctx, host, through, u, known)
	}
}

// joinByAddress finds the group of a host by its address. known is the group so far, which the host
// keeps if the address cannot be found again.
func (w *Wire) joinByAddress(ctx context.Context, host *pace.Host, through http.RoundTripper, u *url.URL, known pace.Assignment) {
	name := hostname.WithoutPort(host.Name())
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	switch {
	case backend.MayProxy(through, u):
		host.Join(pace.Assignment{Until: time.Now().Add(addressTime)})
		return
	case err == nil:
		host.Join(groupAt([]netip.Addr{addr}, always))
		return
	}
	found, err := w.groupings.find(ctx, name)
	if err == nil && len(found) > 0 {
		host.Join(groupAt(found, addressTime))
		return
	}
	if ctx.Err() != nil {
		return
	}
	if w.Report.MarkLogged("no address") {
		w.Report.Log.Info("the address of a host could not be found, so it is paced alone until a connection shows the address",
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
		return nil, report.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	stop := context.AfterFunc(g.closing, cancel)
	defer stop()
	return lookup(ctx, name)
}

// groupAt returns the group of a host at these addresses.
func groupAt(found []netip.Addr, lifetime time.Duration) pace.Assignment {
	known := make([]netip.Addr, len(found))
	for i, addr := range found {
		known[i] = addr.WithZone("").Unmap()
	}
	lowest := slices.MinFunc(known, netip.Addr.Compare) // IPv4 comes before IPv6
	return pace.Assignment{Name: lowest.String(), Until: time.Now().Add(lifetime), Basis: &addresses{known: known}}
}

// met is called with the address of a connection for a request to a host. target is "host:port" of
// the host or of a proxy.
func (w *Wire) met(host *pace.Host, target string, addr net.Addr) {
	if !host.Rules().Shares || w.groupings.of(host.Name()) != withAddress {
		return
	}
	known := host.Assignment()
	if !hostname.IsServer(host.Name(), target) {
		if known.Name != "" {
			host.Join(pace.Assignment{Until: time.Now().Add(addressTime)})
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
