package collyrobots

import (
	"context"
	"net/netip"
)

// SetLookup sets the function that finds the addresses of hosts. Call it before the first request.
func (p *Plugin) SetLookup(lookup func(ctx context.Context, name string) ([]netip.Addr, error)) {
	p.limiter.groupings.lookup = lookup
}

// CountReason returns the counts of a new plugin that has made one decision with a Reason.
func CountReason(r Reason) map[Reason]int {
	d := newDecisions()
	d.add(r)
	return d.counts()
}
