package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

// An Option sets one thing about a Plugin. If one is given twice, the later one counts, but for
// ForHosts, which adds. The zero Option is refused.
type Option struct {
	name    string
	faults  []error // why New refuses it: each an *OptionError
	set     func(*config)
	perHost bool // ForHosts takes it
}

// config is what the options say. Its zero value is a Plugin without options.
type config struct {
	settings
	dryRun   bool
	shadows  []dialect.Dialect
	feed     *Feed
	onDenied func(*colly.Request, error)
	heard    bool // onDenied is the user's
	onEvent  func(Event)
	store    store.Store
	log      *slog.Logger
	client   *http.Client

	privateNetworks bool

	pacer Pacer
	shard shard

	emptyPatterns []string // of ForHosts without options
}

// configure applies opts and reports every fault at once.
func configure(opts []Option) (*config, error) {
	c := &config{onDenied: func(*colly.Request, error) {}, log: slog.Default()}
	faults := c.apply(opts)
	if c.feed != nil && c.feed.Resume && c.store == nil {
		faults = append(faults, fault("FollowSitemaps", "Resume needs the option Store"))
	}
	for i, s := range c.all() {
		s.index = i
		s.pace.Free = c.dryRun
		s.pace.MaxDelay = s.longestDelay()
	}
	return c, errors.Join(faults...)
}

// warnings calls warn for each value that is valid and yet most likely a mistake.
func (c *config) warnings(warn func(what string, args ...any)) {
	for _, s := range c.all() {
		c.delayWarnings(s, warn)
	}
	if c.ignoreRobots {
		warn("IgnoreRobotsWithPermission applies to all hosts; use it inside ForHosts, for hosts whose owner has agreed")
	}
	for _, pattern := range c.emptyPatterns {
		warn("ForHosts has no options and changes nothing", "pattern", pattern)
	}
	if c.feed != nil && c.feed.Since.After(time.Now()) {
		warn("Feed.Since is in the future, so no page with a date is new", "since", c.feed.Since)
	}
	for _, d := range c.shadows {
		if !slices.ContainsFunc(c.all(), func(s *hostSettings) bool { return s.dialect != d }) {
			warn("Shadow names the dialect in force, which never differs from itself", "dialect", d)
		}
	}
}

// shortDelay is the shortest delay that a user is likely to mean.
const shortDelay = time.Millisecond

// delayWarnings calls warn for delays that are most likely a mistake.
func (c *config) delayWarnings(s *hostSettings, warn func(what string, args ...any)) {
	least := s.pace.MinDelay
	if least > 0 && least < shortDelay {
		warn("MinDelay is shorter than a millisecond; a plain number counts nanoseconds, so write MinDelay(time.Second) for one second", "delay", least)
	}
	if s.caps(least) {
		warn("MinDelay is longer than MaxDelay, so MinDelay applies to every host", "delay", least, "limit", s.maxDelay)
	}
	if s.skips(least) {
		warn("MinDelay is longer than SkipAbove, so hosts are skipped whose crawl delay MinDelay would keep", "delay", least, "limit", s.skipAbove)
	}
	if s.skipAbove > 0 && s.maxDelay >= s.skipAbove {
		warn("MaxDelay is not shorter than SkipAbove, so it caps no delay: hosts that ask for more are skipped", "delay", s.maxDelay, "limit", s.skipAbove)
	}
}

// apply sets what opts say, and returns their faults: with one, what is set is of no use but to
// find more.
func (c *config) apply(opts []Option) (faults []error) {
	for i, o := range opts {
		if o.set == nil {
			faults = append(faults, fault("Option", "number %d is the zero Option", i+1))
			continue
		}
		o.set(c)
		faults = append(faults, o.faults...)
	}
	return faults
}

// option makes an Option about the whole crawl, hostOption one that ForHosts takes too. New refuses
// it for each of the faults that is not nil.
func option(name string, set func(*config), faults ...error) Option {
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	if len(faults) == 0 {
		faults = nil
	}
	return Option{name: name, faults: faults, set: set}
}

func hostOption(name string, set func(*hostSettings), faults ...error) Option {
	o := option(name, func(c *config) { set(&c.hostSettings) }, faults...)
	o.perHost = true
	return o
}

func fault(option, reason string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(reason, args...)}
}

// faultIf returns a fault if bad holds, else nil.
func faultIf(bad bool, option, reason string, args ...any) error {
	if !bad {
		return nil
	}
	return fault(option, reason, args...)
}

// Dialect sets which reading of robots.txt is obeyed. Without it, that of RFC 9309.
func Dialect(d dialect.Dialect) Option {
	return hostOption("Dialect", func(s *hostSettings) { s.dialect = d })
}

// ProductToken sets the names that robots.txt may address this crawler by, the most specific first:
// "Googlebot-News", "Googlebot". Without it, the name is taken from the user agent of each request
// (see dialect.ProductToken).
//
// A token is a name, not a user agent: no blanks, slashes or version. RFC 9309, section 2.2.1,
// allows letters, "_" and "-". Names in use have digits and dots as well; they are accepted, and
// logged as a warning where the dialect can never find a group for them. Under dialect.Temoto the
// token stands for the user agent that the built-in check hands to temoto.
func ProductToken(tokens ...string) Option {
	faults := []error{faultIf(len(tokens) == 0, "ProductToken", "names no token")}
	for _, t := range tokens {
		faults = append(faults, faultIf(!isName(t), "ProductToken", "%q is not a product token: want a name such as ExampleBot, without version or blanks", t))
	}
	tokens = slices.Clone(tokens)
	return hostOption("ProductToken", func(s *hostSettings) { s.tokens = tokens }, faults...)
}

// isName reports whether s can be a crawler's name: an HTTP token (RFC 9110, section 5.6.2) that is
// not robots.txt's "*".
func isName(s string) bool {
	const punctuation = "!#$%&'+-.^_`|~"
	for i := range len(s) {
		c := s[i] | 0x20
		if !('a' <= c && c <= 'z' || '0' <= s[i] && s[i] <= '9' || strings.IndexByte(punctuation, s[i]) >= 0) {
			return false
		}
	}
	return s != ""
}

// MinDelay sets a floor between the starts of two requests to one host, whatever its robots.txt
// asks for, from the first request (robots.txt itself) on. Zero, the default, is none.
func MinDelay(d time.Duration) Option {
	return hostOption("MinDelay", func(s *hostSettings) { s.pace.MinDelay = d },
		faultIf(d < 0, "MinDelay", "%v is negative", d))
}

// ForHosts gives the hosts that match pattern options of their own, on top of those given before
// it: Dialect, ProductToken, MinDelay, MaxDelay, SkipAbove, HonorCrawlDelay, DelayFromEnd,
// MaxInFlight, MaxBackOff, RetryThrottled and IgnoreRobotsWithPermission. If several patterns match
// a host, the first one applies.
//
// A pattern is a host name in lower-case ASCII ("xn--..." for others), with the port if it is not
// the scheme's own, in which "*" stands for any characters, dots included, and "?" for one:
// "*.example.com", "*:8080".
func ForHosts(pattern string, opts ...Option) Option {
	faults := []error{patternFault(pattern)}
	for _, err := range new(config).apply(opts) {
		faults = append(faults, insideForHosts(pattern, err))
	}
	for _, o := range opts {
		if o.set != nil && !o.perHost {
			faults = append(faults, insideForHosts(pattern, fault(o.name, "is not about single hosts")))
		}
	}
	return option("ForHosts", func(c *config) {
		own := config{settings: settings{hostSettings: c.hostSettings}}
		own.apply(opts)
		if len(opts) == 0 {
			c.emptyPatterns = append(c.emptyPatterns, pattern)
		}
		c.perHost = append(c.perHost, hostRule{pattern, own.hostSettings})
	}, faults...)
}

// patternFault returns what is wrong with a pattern of ForHosts, or nil.
func patternFault(pattern string) error {
	if strings.Contains(pattern, "://") {
		return fault("ForHosts", "pattern %q is a URL: want a host, not a URL", pattern)
	}
	isOutside := func(r rune) bool { return r > '~' || r <= ' ' || 'A' <= r && r <= 'Z' }
	if pattern == "" || strings.ContainsFunc(pattern, isOutside) {
		return fault("ForHosts", "pattern %q is not a host name in lower-case ASCII", pattern)
	}
	_, err := path.Match(pattern, "")
	if err != nil || strings.Contains(pattern, "/") {
		return fault("ForHosts", "pattern %q is malformed", pattern)
	}
	return nil
}

// insideForHosts is the fault of ForHosts whose option has the fault err.
func insideForHosts(pattern string, err error) error {
	return &OptionError{"ForHosts", fmt.Sprintf("%q: %s", pattern, strings.TrimPrefix(err.Error(), "collyrobots: ")), err}
}

// IgnoreRobotsWithPermission crawls without asking for robots.txt. Use it in ForHosts, for hosts
// whose owner has agreed: your own, or a customer's. MinDelay still holds.
func IgnoreRobotsWithPermission() Option {
	return hostOption("IgnoreRobotsWithPermission", func(s *hostSettings) { s.ignoreRobots = true })
}

// DryRun decides and reports, and enforces nothing: OnDenied gets the requests that would not have
// been sent, Stats has the delays that would have been kept, and everything is sent at once.
func DryRun() Option {
	return option("DryRun", func(c *config) { c.dryRun = true })
}

// Shadow also asks other dialects about each page, without obeying them, and lists in Stats the
// URLs on which they differ from the one in force, for a spider that is to change from one reading
// to another. Each costs the memory of one more policy for every site and the time of one more
// decision for every page, but no request. A decision takes less than a microsecond for most files
// and a few milliseconds for the worst ones. Under [dialect.Temoto] it takes milliseconds for a file
// with hundreds of wildcards, and up to a second for the worst ones.
func Shadow(dialects ...dialect.Dialect) Option {
	dialects = slices.Clone(dialects)
	return option("Shadow", func(c *config) { c.shadows = dialects },
		faultIf(len(dialects) == 0, "Shadow", "names no dialect"))
}

// DelayFromEnd counts every delay from the end of a response instead of the start of its request: a
// slow server is asked less. At most one request of a host is then in flight while a delay is in
// force.
func DelayFromEnd() Option {
	return hostOption("DelayFromEnd", func(s *hostSettings) { s.pace.FromEnd = true })
}

// MaxInFlight sets how many requests of one host may be on the wire at once, each from its start
// until the body of its response is read; under a collector with callbacks in OnResponseHeaders,
// until those are called, since they may visit the host. Without it, one while a Crawl-delay or
// MinDelay is in force, else as many as Colly sends. That one counts for a minute, or ten delays if
// that is longer, since its body may never end. Under MaxInFlight each counts to its end: keep a
// request timeout.
func MaxInFlight(n int) Option {
	return hostOption("MaxInFlight", func(s *hostSettings) { s.pace.MaxInFlight = n },
		faultIf(n < 1, "MaxInFlight", "%d is less than one", n))
}

// MaxDelay caps crawl delays at d. A host that asks for a longer one is crawled faster than it asks,
// which is logged as a warning. Without MaxDelay and SkipAbove, every crawl delay is kept, however
// long it is. A host whose crawl delay is longer than SkipAbove is skipped, also if MaxDelay is set.
func MaxDelay(d time.Duration) Option {
	return hostOption("MaxDelay", func(s *hostSettings) { s.maxDelay = d },
		faultIf(d <= 0, "MaxDelay", "%v is not a positive duration", d))
}

// SkipAbove skips hosts that ask for a longer crawl delay than d, which is logged as a warning. Their
// pages are denied with ReasonDelay. Crawl delays up to d are kept, or capped by MaxDelay.
//
// A skipped host still gets requests for its robots.txt, at least d apart, so that it is crawled once
// it asks for less. If only some of the robots.txt files that apply to a host ask for more than d,
// such as that of http and not that of https, the pages of the others are fetched, at least d apart.
func SkipAbove(d time.Duration) Option {
	return hostOption("SkipAbove", func(s *hostSettings) { s.skipAbove = d },
		faultIf(d <= 0, "SkipAbove", "%v is not a positive duration", d))
}

// MaxBackOff bounds the delay that answers with status 429 and 503 may bring. It does not shorten a
// Retry-After. Zero: they bring none, not even a slower pace after a Retry-After has passed.
// Without it, five minutes.
func MaxBackOff(d time.Duration) Option {
	most := d
	if most == 0 {
		most = -1 // as pace.Rules says it
	}
	return hostOption("MaxBackOff", func(s *hostSettings) { s.pace.MaxBackOff = most }, faultIf(d < 0, "MaxBackOff", "%v is negative", d))
}

// RetryThrottled asks again for a page that was answered 429 or 503, up to n times, at the pace
// that the host then has, before the spider sees the answer. The page holds its LimitRule slot
// while it waits; where the host is not to be asked for more than five minutes, the spider gets the
// answer. Zero, the default: never. A request whose body cannot be read twice is not sent again.
func RetryThrottled(n int) Option {
	return hostOption("RetryThrottled", func(s *hostSettings) { s.retryThrottled = n }, faultIf(n < 0, "RetryThrottled", "%d is negative", n))
}

// HonorCrawlDelay keeps Crawl-delay also under a dialect that ignores the line, read as RFC 9309's
// dialect reads it.
func HonorCrawlDelay() Option {
	return hostOption("HonorCrawlDelay", func(s *hostSettings) { s.honorCrawlDelay = true })
}

// FollowSitemaps also crawls the pages of the sitemaps that the robots.txt files of the crawled
// sites name.
func FollowSitemaps(f Feed) Option {
	return option("FollowSitemaps", func(c *config) { c.feed = &f }, feedFaults(f)...)
}

func feedFaults(f Feed) (faults []error) {
	for _, reason := range f.faults() {
		faults = append(faults, fault("FollowSitemaps", "%s", reason))
	}
	return faults
}

// OnDenied sets the function to call for each request of a collector that is not sent, with the
// reason: a *DisallowedError, a *PrivateNetworkError, a *ShardError, a *PaceError, ErrRedirectWait,
// ErrClosed, or the cause of the collector's context. Such a request fails as any other: Visit
// returns an error that wraps the reason, unless the collector is Async, and OnError is called. The
// function is called once, on the goroutine of the request, when that holds no slot of a LimitRule.
// So it may take the time it needs, and may visit other pages. In a dry run it is called when the
// response is there.
//
// It may also call r.Retry. A request that robots.txt denies is denied again until the file has been
// read again, at Decision.Expires. A request and its retries are denied at most ten times for the
// same reason by the same reading of the file. The next retry is aborted, which ends a loop, and
// logged once. If the reason may pass, because a robots.txt could not be read, the Pacer failed, or a
// redirect led to what is denied, the next retries wait for a second each instead, and the function
// is not called for them.
//
// If Collector.CheckHead makes two requests of a Visit, the function is called for the first of
// them, which may be the HEAD.
func OnDenied(f func(r *colly.Request, err error)) Option {
	return option("OnDenied", func(c *config) { c.onDenied, c.heard = f, true }, faultIf(f == nil, "OnDenied", "the function is nil"))
}

// OnEvent calls f for each Event of the crawl: see Plugin.Listen.
func OnEvent(f func(Event)) Option {
	return option("OnEvent", func(c *config) { c.onEvent = f }, faultIf(f == nil, "OnEvent", "the function is nil"))
}

// Store keeps what was learnt of robots.txt files, and how far Feed.Resume has come, beyond this
// process. Without it, robots.txt files are kept in memory. A store may serve several plugins. The
// caller closes it, after them.
//
// When a host was asked last is not in it. So a host that is known to the store, but not yet to
// this plugin, is first asked one delay after New: an earlier process may have asked it until then.
//
// A call of the store whose context has ended, which it has after ten seconds, is to return: the
// crawl goes on without the record.
func Store(s store.Store) Option {
	return option("Store", func(c *config) { c.store = boundedStore{s} }, faultIf(s == nil, "Store", "the store is nil"))
}

// A boundedStore ends the context of calls that take too long: a database that hangs is not to hold
// up the crawl.
type boundedStore struct{ store.Store }

// storePatience is how long a call of a store may take.
const storePatience = 10 * time.Second

// Get implements store.Store.
func (s boundedStore) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	return s.Store.Get(ctx, key)
}

// Update implements store.Store.
func (s boundedStore) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	return s.Store.Update(ctx, key, ttl, f)
}

// Logger sets the logger for events that no call returns: lost records (errors), unreadable
// robots.txt files, capped delays, skipped hosts, sitemaps with errors (warnings), changed robots.txt
// files and the first denied URL of each host (info), the others (debug). Without it, what
// slog.Default() is when New is called.
func Logger(l *slog.Logger) Option {
	return option("Logger", func(c *config) { c.log = l }, faultIf(l == nil, "Logger", "the logger is nil"))
}

// HTTPClient sets the client that fetches robots.txt and sitemaps, instead of the collector's own.
// Its Transport and Timeout are used, the latter for robots.txt; its cookie jar and redirect
// handler are not. No header of a page is sent through it.
func HTTPClient(client *http.Client) Option {
	return option("HTTPClient", func(c *config) { c.client = client }, faultIf(client == nil, "HTTPClient", "the client is nil"))
}

// SharedPace keeps the pace of each host together with other processes that use the same Pacer: at
// least the host's delay lies between the end of one request and the start of the next, whichever
// process sends it. What the delay means in this process holds as well. Redirect hops, robots.txt,
// sitemaps and second attempts ask the Pacer, too. While a delay is in force anywhere, a host has
// one request in flight, whatever MaxInFlight says; its response must have ended by the Lease's
// Deadline, else it fails with ErrLeaseEnded. Back-off and Retry-After reach all processes with the
// Release of the request that was answered so.
//
// When the Pacer fails nothing is sent: requests fail with a *PaceError until it works again.
// Together with a Store that the processes share, one of them fetches robots.txt and the others
// find it there. In a dry run the Pacer is not asked.
func SharedPace(p Pacer) Option {
	return option("SharedPace", func(c *config) { c.pacer = p }, faultIf(p == nil, "SharedPace", "the Pacer is nil"))
}

// ShardByHost makes this process the i-th of n, counted from 0, each of which crawls the hosts that
// are its own by ShardOf: so pace and policies need not be shared. Requests for other hosts are
// refused with a *ShardError that names the process to hand the URL to, redirect hops and dry runs
// included. Visit and Check return the error. Pages of such hosts that sitemaps list
// are not judged here, but go to Feed.Sink, to the loop over Pages or to the collector as others
// do; the collector refuses them. Sitemaps on such hosts are not read. A robots.txt that redirects
// to one is read from there.
func ShardByHost(n, i int) Option {
	return option("ShardByHost", func(c *config) { c.shard = shard{n, i} },
		faultIf(n < 1, "ShardByHost", "%d shards are less than one", n),
		faultIf(i < 0 || i >= n, "ShardByHost", "there is no shard %d among %d, which count from 0", i, n))
}

// AllowPrivateNetworks lets public sites send the crawler to private, loopback and link-local
// addresses, and to others that are not part of the public internet. Without it, the plugin follows
// no redirect, Sitemap line or entry of a sitemap from a public host to such an address, whether the
// URL contains the address or a name that resolves to it. Pages get a *PrivateNetworkError, also in a
// dry run. What the program visits itself is not checked, and hosts at private addresses may lead to
// others.
//
// A host that was seen at a public address stays public. If its name resolves to a private address
// later, it must not lead to itself either.
//
// Names are checked when they have been resolved and the transport reports the connection, as an
// http.Transport does. A RoundTripper around one must pass the context of its request on. Names that
// a proxy resolves are not checked.
func AllowPrivateNetworks() Option {
	return option("AllowPrivateNetworks", func(c *config) { c.privateNetworks = true })
}
