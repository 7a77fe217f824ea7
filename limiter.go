package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
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
	s := &config.settings
	hosts := pace.New(func(host string) *pace.Rules { return &s.of(host).pace })
	w := exchange.NewWire(hosts, s.groupings(), r)
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

// groupings returns a function that returns the Grouping of a host. The function is nil if no hosts
// share their pace.
func (s *settings) groupings() func(host string) exchange.Sharing {
	if !s.isForAny(func(s *hostSettings) bool { return s.grouping != exchange.Alone }) {
		return nil
	}
	return func(host string) exchange.Sharing { return s.of(host).grouping }
}

// A delays applies the delays that robots.txt files request to their hosts.
type delays struct{ *exchange.Wire }

// learn applies the crawl delay of a robots.txt that was just read to its host. It is called before
// the last request for the file gives its place back, so that no other request comes in between.
func (l delays) learn(s *hostSettings, reader string, pol *policy.Policy) {
	now := time.Now()
	server, _ := policy.Server(pol.Authority)
	host := l.Hosts.At(now, server)
	l.setCrawlDelay(now, host, s, reader, pol)
	if pol.LastSchedule() == nil {
		host.SetSchedule(now, sourceOf(pol.Authority, reader, 0), nil, pol.Expires()) // a file before it may have had one
	}
}

// found is called for a site whose robots.txt is in the Store, because another process, such as an
// earlier run, has put it there. private says that the file came from a private address.
func (l delays) found(a dialect.Authority, private bool) {
	server, _ := policy.Server(a)
	host := l.Hosts.At(time.Now(), server)
	if private {
		l.Networks.SetPrivate(host)
	}
	if !l.IsShared {
		host.AskedBefore() // the Store does not say when
	}
}

// private reports whether the server of an authority is at a private address.
func (l delays) private(a dialect.Authority) bool {
	server, _ := policy.Server(a)
	return l.Networks.Private(server)
}

// setCrawlDelay applies the crawl delay of a robots.txt to its host, and returns its source, or the
// zero Source if the file requests no delay and the host has never had one. If the file cannot be
// read now, the delay of the last one that was read applies.
func (l delays) setCrawlDelay(now time.Time, host *pace.Host, s *hostSettings, reader string, pol *policy.Policy) pace.Source {
	delay, line, known := pol.LastCrawlDelay()
	schedule := pol.LastSchedule()
	if delay == 0 && schedule == nil && host.Plain() {
		return pace.Source{} // most hosts have no delay from any source
	}
	source := sourceOf(pol.Authority, reader, line)
	if !known {
		return source
	}
	changed := host.SetCrawlDelay(now, source, delay, pol.Expires())
	if changed {
		l.warnOfDelay(s, fileOf(pol), delay)
	}
	if schedule != nil {
		host.SetSchedule(now, source, (*timetable)(schedule), pol.Expires())
	}
	return source
}

// A timetable is the schedule of a robots.txt as package pace uses it.
type timetable dialect.Schedule

// At implements pace.Schedule.
func (s *timetable) At(t time.Time) pace.Slot {
	rate, open, until := (*dialect.Schedule)(s).At(t)
	slot := pace.Slot{Delay: rate.Delay, DelayLine: rate.Line, Closed: !open, Until: until}
	if len(s.Visits) > 0 {
		slot.OpenLine = s.Visits[0].Line
	}
	return slot
}

// warnOfDelay warns of a crawl delay that is longer than the options accept.
func (l delays) warnOfDelay(s *hostSettings, file string, delay time.Duration) {
	switch {
	case s.skips(delay):
		l.Report.Log.Warn("crawl delay is longer than SkipAbove, host is skipped", "robots", file, "delay", delay, "limit", s.skipAbove)
	case s.caps(delay):
		l.Report.Log.Warn("crawl delay is longer than MaxDelay, capped", "robots", file, "delay", delay, "limit", s.maxDelay)
	}
}

// sourceOf returns the source of a crawl delay. The sites that one server has under several names
// are separate sources. The longest of their delays applies.
func sourceOf(a dialect.Authority, reader string, line int) pace.Source {
	if policy.IsVirtual(a) {
		reader += " " + a.Host
	}
	return pace.Source{Scheme: a.Scheme, Reader: reader, Line: line}
}

// longWait is the wait for a host after which its pages are logged as waiting.
const longWait = 10 * time.Second

// logLongWait logs, once for each host and cause, that the pages of a host wait for long. It is
// called when one more page is about to wait.
func (l delays) logLongWait(now time.Time, host *pace.Host, pol *policy.Policy) {
	if !host.BusyFor(now, longWait) {
		return
	}
	s := host.Stats(now)
	cause, option, first := l.causeOfWait(host, s.Cause)
	if !first {
		return
	}
	l.Report.Log.Info("pages wait long for their host because of "+cause, "host", s.Host, "robots", fileOf(pol),
		"count", s.Waiting+1, "delay", s.Delay, "until", s.NextStart, option)
}

// causeOfWait returns the name of the cause of a delay and the option that changes it, if there is
// one. first reports whether the cause was not logged before. From now on it counts as logged.
func (l delays) causeOfWait(host *pace.Host, c pace.Cause) (cause string, option slog.Attr, first bool) {
	switch c {
	case pace.RetryAfter:
		return "Retry-After", slog.Attr{}, host.MarkPace(reporter.LoggedRetryAfter) // no option shortens it
	case pace.BackOff:
		return "status 429 or 503", slog.String("option", "MaxBackOff"), host.MarkPace(reporter.LoggedBackOff)
	case pace.RequestRate:
		return "Request-rate", slog.String("option", "MaxDelay"), host.MarkPace(reporter.LoggedRequestRate)
	case pace.VisitTime:
		return "Visit-time", slog.Attr{}, host.MarkPace(reporter.LoggedVisitTime) // no option shortens it
	case pace.Hours:
		return "CrawlHours", slog.String("option", "CrawlHours"), l.Report.MarkLogged("CrawlHours") // it may apply to all hosts
	case pace.Adaptive:
		return "their response time", slog.String("option", "AdaptiveDelay"), l.Report.MarkLogged("AdaptiveDelay")
	case pace.MinDelay:
		return "MinDelay", slog.String("option", "MinDelay"), l.Report.MarkLogged("MinDelay") // it applies to all hosts
	}
	return "Crawl-delay", slog.String("option", "MaxDelay"), host.MarkPace(reporter.LoggedCrawlDelay)
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
	return hostOption("PaceBy", func(s *hostSettings) { s.grouping = exchange.Sharing(g) },
		faultIf(g > ByAddress, "PaceBy", "there is no %v", g))
}
