package collyrobots

import (
	"context"
	"net/netip"
)

// SetLookup sets the function that finds the addresses of hosts. Call it before the first request.
func (p *Plugin) SetLookup(lookup func(ctx context.Context, name string) ([]netip.Addr, error)) {
	p.limiter.groupings.lookup = lookup
}

// UnderRace reports whether the race detector is enabled.
func UnderRace() bool { return underRace }
