package collyrobots

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

// An Option sets one thing about a Plugin. Where one is given twice, the later one holds. The zero Option is refused.
type Option struct{ set func(*config) error }

// An OptionError names the option that New refuses, and why. New joins all of them with errors.Join.
type OptionError struct {
	Option string // its name in this package: "MinDelay"
	Reason string
}

func (e *OptionError) Error() string { return "collyrobots: " + e.Option + ": " + e.Reason }

// config is what the options say. Its zero value is a Plugin without options.
type config struct {
	dialect         dialect.Dialect
	tokens          []string
	pacing          pacing
	maxDelay        time.Duration // 0: every delay is honoured
	over            Over
	honorCrawlDelay bool
	feed            *Feed
	onDenied        func(*colly.Request, error)
	store           store.Store
	log             *slog.Logger
	client          *http.Client
}

// configure applies opts and reports every fault at once.
func configure(opts []Option) (config, error) {
	c := config{onDenied: func(*colly.Request, error) {}, log: slog.Default()}
	var faults []error
	for i, o := range opts {
		if o.set == nil {
			faults = append(faults, &OptionError{"Option", fmt.Sprintf("number %d is the zero Option", i+1)})
			continue
		}
		if err := o.set(&c); err != nil {
			faults = append(faults, err)
		}
	}
	return c, errors.Join(faults...)
}

// productTokens returns the names to look for in robots.txt, with userAgent as the crawler's first.
func (c *config) productTokens(userAgent string) []string {
	if c.tokens != nil {
		return c.tokens
	}
	if c.dialect == dialect.Temoto() {
		return []string{userAgent} // the built-in check looks the whole of it up
	}
	return []string{dialect.ProductToken(userAgent)}
}

// option makes an Option that New refuses under its name where fault is not empty.
func option(name, fault string, set func(*config)) Option {
	return Option{func(c *config) error {
		if fault != "" {
			return &OptionError{name, fault}
		}
		set(c)
		return nil
	}}
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
	return option("Dialect", "", func(c *config) { c.dialect = d })
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
	tokens = append([]string(nil), tokens...)
	return option("ProductToken", fault, func(c *config) { c.tokens = tokens })
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
	return option("MinDelay", faultIf(d < 0, "%v is negative", d), func(c *config) { c.pacing.minDelay = d })
}

// DelayFromEnd counts every delay from the end of a response instead of the start of its request: a server that takes long is
// asked less. At most one request of a host is then in flight while a delay is in force.
func DelayFromEnd() Option {
	return option("DelayFromEnd", "", func(c *config) { c.pacing.fromEnd = true })
}

// MaxInFlight sets how many requests of one host may be on the wire at once, from the start until the response's body was read.
// Without it, one while a delay is in force, and as many as Colly sends where there is none.
func MaxInFlight(n int) Option {
	return option("MaxInFlight", faultIf(n < 1, "%d is less than one", n), func(c *config) { c.pacing.inFlight = n })
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
	return option("MaxDelay", fault, func(c *config) { c.maxDelay, c.over = d, over })
}

// HonorCrawlDelay keeps Crawl-delay also under a dialect that ignores the line, read as RFC 9309's dialect reads it.
func HonorCrawlDelay() Option {
	return option("HonorCrawlDelay", "", func(c *config) { c.honorCrawlDelay = true })
}

// FollowSitemaps crawls what the sitemaps list that the robots.txt files of the crawled sites name.
func FollowSitemaps(f Feed) Option {
	fault := faultIf(f.Window < 0, "Window %d is negative", f.Window)
	if fault == "" {
		fault = faultIf(f.MaxURLs < 0, "MaxURLs %d is negative", f.MaxURLs)
	}
	return option("FollowSitemaps", fault, func(c *config) { c.feed = &f })
}

// OnDenied sets a function that is told of each request of a collector that was not sent, and why: a *DisallowedError, or the
// cause of the collector's context. OnRequest can only abort, and then Visit returns nil; this is where it becomes known.
// A redirect that was refused comes here as well as to OnError. The function runs on the request's goroutine, so it may
// take the time it needs, and may call r.Retry.
func OnDenied(f func(r *colly.Request, err error)) Option {
	return option("OnDenied", faultIf(f == nil, "the function is nil"), func(c *config) { c.onDenied = f })
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
