package collyrobots

import (
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
)

// newWire returns what all requests of a new plugin share. http and https of a host are one host.
// Another port is another host. With the option PaceBy, several hosts share one pace.
//
// Package golang.org/x/time/rate is used for MaxRate, the limit of all hosts together. A host has a
// pace.Host instead of a rate.Limiter, because a token bucket cannot keep a gap that begins when the
// headers of a request are written: it counts from the moment when a token is taken. A rate.Limiter
// also has no place for a Retry-After, for crawl hours, or for a lease of other processes.
func newWire(config *config, r *reporter.Reporter) *exchange.Wire {
	s := &config.Settings
	hosts := pace.New(func(host string) *pace.Rules { return &s.Of(host).Pace })
	if config.maxRate > 0 && config.maxRate < rate.Inf {
		hosts.LimitRate(config.maxRate, config.burst)
	}
	w := exchange.NewWire(hosts, s.Groupings(), r)
	w.Client = config.client
	w.Networks = netguard.New(func(name string) netguard.Host { return hosts.At(time.Now(), name) }, config.privateNetworks)
	w.Quota = netguard.NewQuota(hostname.Registrable, feed.ErrElsewhere)
	w.ErrLate = ErrLeaseEnded
	if config.signer != nil {
		w.Sign(config.signer)
	}
	if config.pacer != nil {
		w.Share(config.pacer)
	}
	return w
}

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
// requests than a server with one name. The default is ByHost: each host has its own pace.
//
// The longest delay of all hosts of the group applies to each of them, and a response with status
// 429 or 503 of one host slows all of them down. Their waiting pages take turns. With SharedPace,
// the name that Pacer.Acquire gets is that of the group. With ByAddress, the plugin looks up the
// name of a host before the first request to it. If that fails, or if the requests go through a
// proxy, the host has its own pace. Any other value of g is an OptionError. See docs/one-pace.md.
func PaceBy(g Grouping) HostOption {
	return HostOption{hostOption("PaceBy", func(s *judge.HostSettings) { s.Grouping = exchange.Sharing(g) },
		faultIf(g > ByAddress, "PaceBy", "there is no %v", g)).with(g)}
}
