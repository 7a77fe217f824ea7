package collyrobots

import (
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

// An Option sets one thing about a Plugin. Where one is given twice, the later one holds. The zero Option is refused.
type Option struct {
	name    string
	fault   string // why New refuses it; empty: it does not
	set     func(*config)
	perHost bool // ForHosts takes it
}

// An OptionError names the option that New refuses, and why. New joins all of them with errors.Join.
type OptionError struct {
	Option string // its name in this package: "MinDelay"
	Reason string
}

func (e *OptionError) Error() string { return "collyrobots: " + e.Option + ": " + e.Reason }

// config is what the options say. Its zero value is a Plugin without options.
type config struct {
	regime
	perHost   []hostRule // the first that matches a host replaces the regime
	dryRun    bool
	shadows   []dialect.Dialect
	feed      *Feed
	onDenied  func(*colly.Request, error)
	onChanged func(RobotsChange)
	store     store.Store
	log       *slog.Logger
	client    *http.Client
}

// configure applies opts and reports every fault at once.
func configure(opts []Option) (config, error) {
	c := config{onDenied: func(*colly.Request, error) {}, onChanged: func(RobotsChange) {}, log: slog.Default()}
	err := c.apply(opts, func(Option) string { return "" })
	if c.feed != nil && c.feed.Resume && c.store == nil {
		err = errors.Join(err, &OptionError{"FollowSitemaps", "Resume needs the option Store"})
	}
	for _, r := range c.regimes() {
		r.pacing.free = c.dryRun
	}
	return c, err
}

// apply sets what opts say, but for those that have a fault or in which refuse finds one.
func (c *config) apply(opts []Option, refuse func(Option) string) error {
	var faults []error
	for i, o := range opts {
		name, fault := o.name, o.fault
		if o.set == nil {
			name, fault = "Option", fmt.Sprintf("number %d is the zero Option", i+1)
		}
		if fault == "" {
			fault = refuse(o)
		}
		if fault != "" {
			faults = append(faults, &OptionError{name, fault})
			continue
		}
		o.set(c)
	}
	return errors.Join(faults...)
}

// option makes an Option about the whole crawl, hostOption one that ForHosts takes too. New refuses it where fault is not empty.
func option(name, fault string, set func(*config)) Option {
	return Option{name: name, fault: fault, set: set}
}

func hostOption(name, fault string, set func(*regime)) Option {
	return Option{name: name, fault: fault, set: func(c *config) { set(&c.regime) }, perHost: true}
}

// faultIf returns fault if bad holds, else nothing.
func faultIf(bad bool, fault string, args ...any) string {
	if !bad {
		return ""
	}
	return fmt.Sprintf(fault, args...)
}

// Dialect sets whose reading of robots.txt is obeyed. Without it, RFC 9309's.
func Dialect(d dialect.Dialect) Option {
	return hostOption("Dialect", "", func(r *regime) { r.dialect = d })
}

// ProductToken sets the names that robots.txt may address this crawler by, the most specific first: "Googlebot-News",
// "Googlebot". Without it, the name is taken from the user agent of the first request (see dialect.ProductToken).
//
// A token is a name, not a user agent: no blanks, slashes or version. RFC 9309, section 2.2.1, allows letters, "_" and "-".
// Names in use have digits and dots as well; they are accepted, and logged as a warning where the dialect can never find
// a group for them. Under dialect.Temoto the token stands for the user agent that the built-in check hands to temoto.
func ProductToken(tokens ...string) Option {
	fault := faultIf(len(tokens) == 0, "names no token")
	for _, t := range tokens {
		if fault == "" {
			fault = faultIf(!isName(t), "%q is not a product token: want a name such as ExampleBot, without version or blanks", t)
		}
	}
	tokens = slices.Clone(tokens)
	return hostOption("ProductToken", fault, func(r *regime) { r.tokens = tokens })
}

// isName tells whether s can be a crawler's name: an HTTP token (RFC 9110, section 5.6.2) that is not robots.txt's "*".
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

// MinDelay sets a floor between the starts of two requests to one host, whatever its robots.txt asks for, from the
// first request (robots.txt itself) on. Zero, the default, is none.
func MinDelay(d time.Duration) Option {
	return hostOption("MinDelay", faultIf(d < 0, "%v is negative", d), func(r *regime) { r.pacing.minDelay = d })
}

// ForHosts gives the hosts that match pattern options of their own, on top of those given before it: Dialect, ProductToken, MinDelay, MaxDelay,
// HonorCrawlDelay, DelayFromEnd, MaxInFlight and IgnoreRobotsWithOwnersLeave. Where several patterns match, the first holds.
//
// A pattern is a host name in lower-case ASCII ("xn--..." for others), with the port if it is not the scheme's own, in which "*" stands for any characters,
// dots included, and "?" for one: "*.example.com", "*:8080".
func ForHosts(pattern string, opts ...Option) Option {
	var own config
	fault := faultIf(pattern == "" || strings.ContainsFunc(pattern, func(r rune) bool { return r > '~' || r <= ' ' || 'A' <= r && r <= 'Z' }),
		"pattern %q is not a host name in lower-case ASCII", pattern)
	if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
		fault = fmt.Sprintf("pattern %q is malformed", pattern)
	}
	if fault == "" {
		if err := own.apply(opts, func(o Option) string { return faultIf(!o.perHost, "is not about single hosts") }); err != nil {
			fault = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
	}
	return option("ForHosts", fault, func(c *config) {
		own := config{regime: c.regime}
		own.apply(opts, func(Option) string { return "" })
		c.perHost = append(c.perHost, hostRule{pattern, own.regime})
	})
}

// IgnoreRobotsWithOwnersLeave crawls without asking for robots.txt. Use it in ForHosts, for hosts whose owner has agreed: your own, or a
// customer's. MinDelay still holds.
func IgnoreRobotsWithOwnersLeave() Option {
	return hostOption("IgnoreRobotsWithOwnersLeave", "", func(r *regime) { r.ignoreRobots = true })
}

// DryRun decides and reports, and enforces nothing: OnDenied is told of the requests that would not have been sent, Stats has the
// delays that would have been kept, and everything is sent at once.
func DryRun() Option {
	return option("DryRun", "", func(c *config) { c.dryRun = true })
}

// Shadow also asks other dialects about each page, without obeying them, and lists in Stats the URLs on which they differ from
// the one in force: what a spider that changes from one reading to another wants to see first. Each costs memory for one
// more policy of every site.
func Shadow(dialects ...dialect.Dialect) Option {
	dialects = slices.Clone(dialects)
	return option("Shadow", faultIf(len(dialects) == 0, "names no dialect"), func(c *config) { c.shadows = dialects })
}

// DelayFromEnd counts every delay from the end of a response instead of the start of its request: a server that takes long is
// asked less. At most one request of a host is then in flight while a delay is in force.
func DelayFromEnd() Option {
	return hostOption("DelayFromEnd", "", func(r *regime) { r.pacing.fromEnd = true })
}

// MaxInFlight sets how many requests of one host may be on the wire at once, from the start until the response's body was read.
// Without it, one while a delay is in force, and as many as Colly sends where there is none.
func MaxInFlight(n int) Option {
	return hostOption("MaxInFlight", faultIf(n < 1, "%d is less than one", n), func(r *regime) { r.pacing.inFlight = n })
}

// Over says what becomes of a host that asks for a longer crawl delay than MaxDelay.
type Over int

const (
	// Clamp crawls it at MaxDelay, faster than it asked, and logs that.
	Clamp Over = iota + 1
	// Skip does not crawl it: its URLs are denied with ReasonDelay.
	Skip
)

// MaxDelay bounds the crawl delay that is honoured. Without it every delay is, however long.
func MaxDelay(d time.Duration, over Over) Option {
	fault := faultIf(d <= 0, "%v is not a positive duration", d)
	if fault == "" {
		fault = faultIf(over != Clamp && over != Skip, "Over(%d) is neither Clamp nor Skip", int(over))
	}
	return hostOption("MaxDelay", fault, func(r *regime) { r.maxDelay, r.over = d, over })
}

// HonorCrawlDelay keeps Crawl-delay also under a dialect that ignores the line, read as RFC 9309's dialect reads it.
func HonorCrawlDelay() Option {
	return hostOption("HonorCrawlDelay", "", func(r *regime) { r.honorCrawlDelay = true })
}

// FollowSitemaps crawls what the sitemaps list that the robots.txt files of the crawled sites name.
func FollowSitemaps(f Feed) Option {
	return option("FollowSitemaps", f.fault(), func(c *config) { c.feed = &f })
}

// OnDenied sets a function that is told of each request of a collector that was not sent, and why: a *DisallowedError, or the
// cause of the collector's context. OnRequest can only abort, and then Visit returns nil; this is where it becomes known.
// A redirect that was refused comes here as well as to OnError. The function runs on the request's goroutine, so it may
// take the time it needs, and may call r.Retry.
func OnDenied(f func(r *colly.Request, err error)) Option {
	return option("OnDenied", faultIf(f == nil, "the function is nil"), func(c *config) { c.onDenied = f })
}

// OnRobotsChanged sets a function that is told when a robots.txt which was read again means something else than before: other
// rules, or none, or it can no longer be read. The new meaning is in force already, for requests that wait as well. The
// function runs on a goroutine of its own.
func OnRobotsChanged(f func(RobotsChange)) Option {
	return option("OnRobotsChanged", faultIf(f == nil, "the function is nil"), func(c *config) { c.onChanged = f })
}

// Store keeps what was learnt of robots.txt files beyond this process. Without it, they are kept in memory. The store
// may serve several plugins; closing it is the caller's.
func Store(s store.Store) Option {
	return option("Store", faultIf(s == nil, "the store is nil"), func(c *config) { c.store = s })
}

// Logger sets where the plugin says what nobody asked it: a robots.txt that cannot be read, a delay that was clamped, a
// sitemap with errors (warnings), each denied URL (debug). Without it, slog.Default().
func Logger(l *slog.Logger) Option {
	return option("Logger", faultIf(l == nil, "the logger is nil"), func(c *config) { c.log = l })
}

// HTTPClient sets the client that fetches robots.txt and sitemaps, instead of the collector's own. Its cookie jar and
// redirect handler are not used.
func HTTPClient(client *http.Client) Option {
	return option("HTTPClient", faultIf(client == nil, "the client is nil"), func(c *config) { c.client = client })
}
