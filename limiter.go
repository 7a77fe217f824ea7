package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A limiter keeps the pace of all hosts. http and https of a host are one host. Another port is
// another host. With the option PaceBy, several hosts share one pace.
type limiter struct {
	*exchange.Wire
	stores atomic.Pointer[[]urlstore.Store] // get the pace of each host; nil if there are none
}

func newLimiter(config *config, r *reporter.Reporter) *limiter {
	s := &config.Settings
	hosts := pace.New(func(host string) *pace.Rules { return &s.Of(host).Pace })
	w := exchange.NewWire(hosts, s.Groupings(), r)
	w.Client = config.client
	w.Networks = netguard.New(func(name string) netguard.Host { return hosts.At(time.Now(), name) }, config.privateNetworks)
	w.Quota = netguard.NewQuota(hostname.Registrable, feed.ErrElsewhere)
	w.ErrLate = ErrLeaseEnded
	if config.signer != nil {
		w.Sign(config.signer, config.signWhenAsked)
	}
	if config.pacer != nil {
		w.Share(&sharedPace{pacer: config.pacer, report: r})
	}
	return &limiter{Wire: w}
}

// A sharedPace adapts the user's Pacer for package pace. It turns errors and panics of the Pacer
// into *PaceErrors and logs them.
type sharedPace struct {
	pacer  pacer.Pacer
	report *reporter.Reporter

	// mu protects the fields below it.
	mu     sync.Mutex
	since  time.Time // the first of the failures in a row; zero if the last call succeeded
	logged time.Time // when a failure was last logged
}

// Acquire implements pace.Pacer.
func (s *sharedPace) Acquire(ctx context.Context, host string, delay time.Duration) (pace.Lease, error) {
	lease, err := s.acquire(ctx, host, delay)
	switch {
	case err == nil:
		s.succeeded()
		return lease, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, s.failed(host, err)
}

var (
	errNoLease      = errors.New("the Pacer returned neither a lease nor an error")
	errExpiredLease = errors.New("the Pacer returned an expired lease")
)

// acquire calls the Pacer. If the lease that it returns has expired, acquire tries twice more.
func (s *sharedPace) acquire(ctx context.Context, host string, delay time.Duration) (_ pace.Lease, err error) {
	defer recovered(&err)
	for range 3 {
		lease, err := s.pacer.Acquire(ctx, host, delay)
		if err != nil {
			return nil, err
		}
		if lease == nil {
			return nil, errNoLease
		}
		l := &sharedLease{lease: lease, pace: s, host: host, deadline: lease.Deadline()}
		if lease.Valid() {
			return l, nil
		}
		l.Release(false, 0, time.Time{})
	}
	return nil, errExpiredLease
}

// recovered turns a panic into an error.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v", v)
	}
}

// failed records a failure of the Pacer, logs it at most once a minute, and returns the error for
// the user.
func (s *sharedPace) failed(host string, err error) error {
	since, log := s.addFailure(time.Now())
	if log {
		s.report.Log.Error("Pacer failed, nothing is sent", "host", host, "error", err)
	}
	return &PaceError{Host: host, Since: since, Err: err}
}

// addFailure records a failure at now. It returns the time of the first of the failures in a row,
// and whether to log this one.
func (s *sharedPace) addFailure(now time.Time) (since time.Time, log bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = now
	}
	if s.logged.IsZero() || now.Sub(s.logged) >= time.Minute {
		s.logged = now
		log = true
	}
	return s.since, log
}

func (s *sharedPace) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// A sharedLease is a Lease of the user's Pacer. Its panics count as failures of the Pacer.
type sharedLease struct {
	lease    pacer.Lease
	pace     *sharedPace
	host     string
	deadline time.Time
	panicked atomic.Pointer[error] // the panic of Valid, which Release logs; nil if there was none
}

// Deadline implements pace.Lease.
func (l *sharedLease) Deadline() time.Time { return l.deadline }

// Valid implements pace.Lease. It does not log a panic, because its caller may hold a lock. Instead
// it reports false, so that the lease is released, and Release logs the panic.
func (l *sharedLease) Valid() (valid bool) {
	err := guarded(func() { valid = l.lease.Valid() })
	if err != nil {
		l.panicked.Store(&err)
	}
	return valid
}

// Release implements pace.Lease.
func (l *sharedLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	if err := l.panicked.Load(); err != nil {
		l.pace.failed(l.host, *err)
	}
	err := guarded(func() { l.lease.Release(sent, delay, notBefore) })
	if err != nil {
		l.pace.failed(l.host, err)
	}
}

// guarded calls f. If f panics, it returns the panic as an error.
func guarded(f func()) (err error) {
	defer recovered(&err)
	f()
	return nil
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
	return hostOption("PaceBy", func(s *judge.HostSettings) { s.Grouping = exchange.Sharing(g) },
		faultIf(g > ByAddress, "PaceBy", "there is no %v", g))
}
