package collyrobots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gocolly/colly/v2"
	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/store/urlstore"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// An Option sets one property of a Plugin. If an option is given twice, the later one applies,
// except for ForHosts, HostOptions, OnDenied, OnEvent and OnEveryEvent, which may be given several
// times. A zero number or duration, or false, switches an option off. A negative number is a fault.
// Two options that contradict each other in one list are also a fault. New logs the options in force
// at debug level. A nil Option is not valid.
type Option interface {
	// String returns the option as a call, such as "MinDelay(1s)". Functions, keys, the text of
	// robots.txt files and other long values are left out: "SignRequests(...)".
	String() string

	given() choice
}

// A HostOption is an Option that ForHosts and HostOptions also take. The zero HostOption is not valid.
type HostOption struct{ choice }

// A choice is an Option, as the function that returns it has made it.
type choice struct {
	name    string  // the name of the function
	args    string  // its arguments; see with
	faults  []error // the *OptionErrors that New returns for it
	set     func(*config)
	setHost func(*judge.HostSettings) // nil unless it is a HostOption
	off     bool                      // whether it is a flag that is switched off

	onlyPerHost bool     // whether it must be given inside ForHosts or HostOptions
	parts       []choice // the options that it consists of; nil if it is not a preset
}

func (o choice) given() choice { return o }

// String returns the option as a call.
func (o choice) String() string {
	if o.set == nil {
		return "HostOption{}"
	}
	return o.name + "(" + o.args + ")"
}

// given returns the choices of a list. That of a nil Option is zero.
func given[O Option](opts []O) []choice {
	all := make([]choice, len(opts))
	for i, o := range opts {
		if any(o) != nil {
			all[i] = o.given()
		}
	}
	return all
}

// An unquoted is a text that with adds as it is.
type unquoted string

// omitted stands for an argument that is long, or that may be secret.
const omitted unquoted = "..."

// with returns o with the text of its arguments.
func (o choice) with(args ...any) choice {
	texts := make([]string, len(args))
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			texts[i] = strconv.Quote(s)
			continue
		}
		texts[i] = fmt.Sprint(arg)
	}
	o.args = strings.Join(texts, ", ")
	return o
}

// typeOf returns the type of an argument that has no text of its own.
func typeOf(arg any) unquoted { return unquoted(fmt.Sprintf("%T", arg)) }

// withAll is with for a list of arguments.
func withAll[T any](o choice, args []T) choice {
	all := make([]any, len(args))
	for i, arg := range args {
		all[i] = arg
	}
	return o.with(all...)
}

// A config holds the values of all options.
type config struct {
	judge.Settings
	dryRun   bool
	maxPages int
	shadows  []dialect.Dialect
	feed     *Feed // nil without FollowSitemaps
	onDenied onDenied
	onEvent  []func(*Event)

	onEveryEvent []func(*Event)

	store  store.Store
	log    *slog.Logger
	client *http.Client

	privateNetworks netguard.Access

	maxRate  rate.Limit // 0 without MaxRate
	burst    int        // of MaxRate
	pacer    pacer.Pacer
	shard    judge.Shard
	frontier urlstore.Store // nil without Frontier

	signer *webbotauth.Signer // nil if no request is signed

	emptyPatterns []string // the patterns of ForHosts without options
}

// configure applies opts and returns all of their faults.
func configure(opts []choice) (*config, error) {
	c := &config{log: slog.Default()}
	faults := c.apply(opts)
	faults = append(faults, contradictions(opts, &c.HostSettings)...)
	for _, o := range opts {
		if o.onlyPerHost {
			faults = append(faults, fault(o.name, "can only be used inside ForHosts or HostOptions"))
		}
	}
	if c.store == nil && !typednil.Is(c.frontier) {
		if records := c.frontier.Records(); records != nil {
			c.store = &boundedStore{Store: records}
		}
	}
	if c.feed != nil && c.feed.Resume && c.store == nil {
		faults = append(faults, fault("FollowSitemaps", "Resume needs the option Store or Frontier"))
	}
	c.Settings.Complete(c.dryRun)
	faults = append(faults, c.settingsFaults()...)
	return c, errors.Join(faults...)
}

// settingsFaults returns the faults of options that need others, which may be given for more hosts.
func (c *config) settingsFaults() []error {
	faults := c.hostFaults(&c.HostSettings)
	if len(faults) > 0 {
		return faults
	}
	for _, r := range c.Rules {
		if r.ByHost {
			continue
		}
		s := c.HostSettings
		r.Apply("", &s)
		for _, err := range c.hostFaults(&s) {
			faults = append(faults, insideForHosts(r.Pattern, err))
		}
	}
	return faults
}

// hostFaults returns the faults of options of a host that need others.
func (c *config) hostFaults(s *judge.HostSettings) (faults []error) {
	if s.EnforceUsage && s.Purpose == 0 {
		faults = append(faults, fault("EnforceUsage", "needs the option Purpose"))
	}
	if s.Revalidate && c.store == nil && !c.dryRun {
		faults = append(faults, fault("Revalidate", "needs the option Store or Frontier"))
	}
	return faults
}

// noEffect lists options that have no effect together with another one in the same list.
var noEffect = []struct{ option, with string }{
	{policy.OptionRobotsTxt, "IgnoreRobots"},
	{policy.OptionWhenUnreachable, "RobotsTxt"},
	{policy.OptionWhenForbidden, "RobotsTxt"},
}

// contradictions returns the faults of options that contradict each other in one list: those of New,
// or those of one ForHosts. s has the values of the list. An option inside ForHosts may undo one
// that is given to New.
func contradictions(opts []choice, s *judge.HostSettings) []error {
	given := make(map[string]bool)
	for _, o := range opts {
		given[o.name] = !o.off
	}
	var faults []error
	for _, pair := range noEffect {
		if given[pair.option] && given[pair.with] {
			faults = append(faults, fault(pair.option, "has no effect with %s; remove one of them", pair.with))
		}
	}
	least := s.Pace.MinDelay
	if s.Caps(least) {
		faults = append(faults, fault("MaxCrawlDelay", "%v is shorter than MinDelay, %v", s.MaxCrawlDelay, least))
	}
	if s.Skips(least) {
		faults = append(faults, fault("SkipCrawlDelayAbove", "%v is shorter than MinDelay, %v", s.SkipCrawlDelayAbove, least))
	}
	if s.SkipCrawlDelayAbove > 0 && s.MaxCrawlDelay >= s.SkipCrawlDelayAbove {
		faults = append(faults, fault("MaxCrawlDelay", "%v is not shorter than SkipCrawlDelayAbove, %v, so it caps no delay", s.MaxCrawlDelay, s.SkipCrawlDelayAbove))
	}
	return faults
}

// logOptions logs the options in force. If an option was given twice, the later one is in force,
// except for the options that may be given several times.
func logOptions(log *slog.Logger, opts []choice) {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	var attrs []any
	index := make(map[string]int)
	for _, o := range expanded(opts) {
		i, again := index[o.name]
		if !again {
			index[o.name] = len(attrs)
			attrs = append(attrs, slog.String(o.name, o.args))
			continue
		}
		text := o.args
		if o.repeats() {
			text = attrs[i].(slog.Attr).Value.String() + "; " + text
		}
		attrs[i] = slog.String(o.name, text)
	}
	log.Debug("options of the plugin", slog.Group("options", attrs...))
}

// expanded returns opts with the options of each preset in place of the preset.
func expanded(opts []choice) (all []choice) {
	for _, o := range opts {
		if o.parts != nil {
			all = append(all, o.parts...)
			continue
		}
		all = append(all, o)
	}
	return all
}

// repeats reports whether o may be given several times.
func (o choice) repeats() bool {
	switch o.name {
	case "ForHosts", "HostOptions", "OnDenied", "OnEvent", "OnEveryEvent":
		return true
	}
	return false
}

// warnings calls warn for each value that is valid but most likely a mistake.
func (c *config) warnings(warn func(what string, args ...any)) {
	for _, s := range c.All() {
		c.delayWarnings(s, warn)
		s.RobotsTxtWarnings(warn)
		if until := s.Permission.Until; !until.IsZero() && !s.IgnoresRobots(time.Now()) {
			warn("the permission of IgnoreRobots has ended, so robots.txt is obeyed", "until", until)
		}
	}
	if !c.Permission.Until.IsZero() {
		warn("IgnoreRobots applies to all hosts; use it inside ForHosts, for hosts whose owner has agreed")
	}
	for _, pattern := range c.emptyPatterns {
		warn("ForHosts has no options and changes nothing", "pattern", pattern)
	}
	if c.feed != nil && c.feed.Since.After(time.Now()) {
		warn("Feed.Since is in the future, so every page with a date is skipped", "since", c.feed.Since)
	}
	if c.shard.Of > 1 && c.pacer == nil && slices.ContainsFunc(c.All(), func(s *judge.HostSettings) bool { return s.Grouping != exchange.Alone }) {
		warn("ShardByHost assigns the hosts of one group of PaceBy to different processes, and each keeps a pace of its own; use SharedPace")
	}
	for _, d := range c.shadows {
		if !slices.ContainsFunc(c.All(), func(s *judge.HostSettings) bool { return s.Dialect != d }) {
			warn("Shadow names the dialect in force, so there is nothing to compare", "dialect", d)
		}
	}
}

// shortDelay is the shortest delay that is not likely to be a mistake.
const shortDelay = time.Millisecond

// delayWarnings calls warn for delays that are most likely a mistake.
func (c *config) delayWarnings(s *judge.HostSettings, warn func(what string, args ...any)) {
	least := s.Pace.MinDelay
	if least > 0 && least < shortDelay {
		warn("MinDelay is shorter than a millisecond; a plain number is in nanoseconds, so write MinDelay(time.Second) for one second", "delay", least)
	}
	if s.Caps(least) {
		warn("MinDelay is longer than MaxCrawlDelay, so MinDelay applies to every host", "delay", least, "limit", s.MaxCrawlDelay)
	}
	if s.Skips(least) {
		warn("MinDelay is longer than SkipCrawlDelayAbove, so hosts are skipped that ask for less than MinDelay", "delay", least, "limit", s.SkipCrawlDelayAbove)
	}
	if s.SkipCrawlDelayAbove > 0 && s.MaxCrawlDelay >= s.SkipCrawlDelayAbove {
		warn("MaxCrawlDelay is not shorter than SkipCrawlDelayAbove, so it caps no delay; hosts that ask for more are skipped", "delay", s.MaxCrawlDelay, "limit", s.SkipCrawlDelayAbove)
	}
}

// apply sets the values of opts and returns their faults. It continues after a fault, to find all
// of them. If there is a fault, c must not be used.
func (c *config) apply(opts []choice) (faults []error) {
	for i, o := range opts {
		if o.set == nil {
			faults = append(faults, fault("Option", "number %d is nil or zero", i+1))
			continue
		}
		o.set(c)
		faults = append(faults, o.faults...)
	}
	return faults
}

// applyToHost sets the values of opts in the settings of a host.
func applyToHost(opts []choice, s *judge.HostSettings) {
	for _, o := range opts {
		if o.setHost != nil {
			o.setHost(s)
		}
	}
}

// option returns an option that applies to the whole crawl. New reports those of the faults that
// are not nil.
func option(name string, set func(*config), faults ...error) choice {
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	if len(faults) == 0 {
		faults = nil
	}
	return choice{name: name, faults: faults, set: set}
}

// hostOption returns an option that may differ between hosts.
func hostOption(name string, set func(*judge.HostSettings), faults ...error) choice {
	o := option(name, func(c *config) { set(&c.HostSettings) }, faults...)
	o.setHost = set
	return o
}

// flag returns a HostOption that switches something on or off.
func flag(name string, on bool, set func(*judge.HostSettings)) HostOption {
	o := hostOption(name, set).with(on)
	o.off = !on
	return HostOption{o}
}

// fault returns an *OptionError.
func fault(option, reason string, args ...any) error {
	return &OptionError{Option: option, Reason: fmt.Sprintf(reason, args...)}
}

// faultIf returns an *OptionError if bad is true. Otherwise it returns nil.
func faultIf(bad bool, option, reason string, args ...any) error {
	if !bad {
		return nil
	}
	return fault(option, reason, args...)
}

// Polite sets the options for sites that you do not own: MinDelay(time.Second), Jitter(0.25),
// AdaptiveDelay(1), StopAfterRefusals(5) and RetryThrottled(3). It also replaces such options that
// are given before it. Options after it override it: Polite(), MinDelay(5*time.Second) sets
// another minimum, and Polite(), Jitter(0) switches the random share off. See docs/delays.md.
func Polite() HostOption {
	parts := given([]HostOption{
		MinDelay(time.Second),
		Jitter(0.25),
		AdaptiveDelay(1),
		StopAfterRefusals(5),
		RetryThrottled(3),
	})
	o := hostOption("Polite", func(s *judge.HostSettings) { applyToHost(parts, s) })
	o.parts = parts
	return HostOption{o}
}

// Dialect sets the dialect that robots.txt is read in. The default is dialect.RFC9309. See
// docs/dialects.md.
func Dialect(d dialect.Dialect) HostOption {
	return HostOption{hostOption("Dialect", func(s *judge.HostSettings) { s.Dialect = d }).with(d)}
}

// ProductToken sets the names to look for in robots.txt, the most specific first: "Googlebot-News",
// "Googlebot". By default, the name is the product token of the user agent of each request; see
// dialect.TokenOf.
//
// A token is a name such as ExampleBot, without version, blanks and slashes. New returns an
// OptionError for any other text, and logs a warning if the dialect can never find a group for the
// name. Under dialect.Temoto the token replaces the user agent that the built-in check passes to
// temoto. See docs/robots-txt.md.
func ProductToken(tokens ...string) HostOption {
	faults := []error{faultIf(len(tokens) == 0, "ProductToken", "names no token")}
	for _, t := range tokens {
		faults = append(faults, faultIf(!isName(t), "ProductToken", "%q is not a product token: want a name such as ExampleBot, without version or blanks", t))
	}
	tokens = slices.Clone(tokens)
	return HostOption{withAll(hostOption("ProductToken", func(s *judge.HostSettings) { s.Tokens = tokens }, faults...), tokens)}
}

// isName reports whether s can be the name of a crawler. Such a name is an HTTP token (RFC 9110,
// section 5.6.2) other than "*".
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

// MinDelay sets a minimum time between the starts of two requests to one host, whatever its
// robots.txt asks for. The default is zero: a host without a Crawl-delay gets requests as fast as
// Colly sends them. Most sites ask for no delay, so set about a second for sites that you do not
// own. The option applies from the first request, which is the one for robots.txt. A negative d is
// an OptionError. See docs/delays.md.
func MinDelay(d time.Duration) HostOption {
	return HostOption{hostOption("MinDelay", func(s *judge.HostSettings) { s.Pace.MinDelay = d },
		faultIf(d < 0, "MinDelay", "%v is negative", d)).with(d)}
}

// ForHosts sets options for the hosts that match pattern. The options of the whole crawl also apply to
// these hosts, unless opts change them. If several patterns match a host, all of their options apply,
// and the later one wins.
//
// A pattern is a host name in lower-case ASCII, with the port unless it is that of the scheme. In
// it, "*" stands for any characters, including dots, and "?" for one character: "*.example.com",
// "*:8080". See docs/reference/options.md.
func ForHosts(pattern string, opts ...HostOption) Option {
	list := given(opts)
	faults := []error{patternFault(pattern)}
	for _, err := range faultsForHost(list) {
		faults = append(faults, insideForHosts(pattern, err))
	}
	args := []any{pattern}
	for _, o := range opts {
		args = append(args, o)
	}
	return option("ForHosts", func(c *config) {
		if len(opts) == 0 {
			c.emptyPatterns = append(c.emptyPatterns, pattern)
		}
		c.Rules = append(c.Rules, judge.HostRule{Pattern: pattern, Apply: func(_ string, s *judge.HostSettings) (bool, error) {
			applyToHost(list, s)
			return true, nil
		}})
	}, faults...).with(args...)
}

// faultsForHost returns the faults of the options of one host, or of one ForHosts.
func faultsForHost(opts []choice) []error {
	own := new(config)
	return append(own.apply(opts), contradictions(opts, &own.HostSettings)...)
}

// HostOptions sets options for single hosts, for lists that are too long for ForHosts, or that grow
// during the crawl. f returns the options of a host, whose name is written as in ForHosts, with the
// port unless it is that of the scheme. They apply like those of a ForHosts at the same place. Most
// hosts have none: f then returns nil.
//
// f is called when the plugin first needs the options of a host, and again after it has forgotten them,
// which it does only if it has those of 100,000 other hosts. f must be fast, may be called by any
// goroutine, also by several at once, and must not call the plugin. If an option is not valid, or if f
// panics, each request to the host fails with an *OptionError. See docs/reference/options.md.
func HostOptions(f func(host string) []HostOption) Option {
	return option("HostOptions", func(c *config) {
		c.Rules = append(c.Rules, judge.HostRule{ByHost: true, Apply: func(host string, s *judge.HostSettings) (bool, error) {
			return c.applyForHost(f, host, s)
		}})
	}, faultIf(f == nil, "HostOptions", "the function is nil")).with(omitted)
}

// applyForHost applies the options that f returns to the settings of a host.
func (c *config) applyForHost(f func(string) []HostOption, host string, s *judge.HostSettings) (changes bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = insideHostOptions(host, fmt.Errorf("the function has panicked: %v", v))
		}
	}()
	list := given(f(host))
	faults := faultsForHost(list)
	if len(faults) == 0 {
		applyToHost(list, s)
		faults = c.hostFaults(s)
	}
	for i, err := range faults {
		faults[i] = insideHostOptions(host, err)
	}
	return len(list) > 0, errors.Join(faults...)
}

// patternFault returns the fault of a pattern of ForHosts, or nil.
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

// insideForHosts returns the fault of ForHosts for the fault err of one of its options.
func insideForHosts(pattern string, err error) error { return inside("ForHosts", pattern, err) }

// insideHostOptions returns the fault of HostOptions for the fault err of one of the options of a host.
func insideHostOptions(host string, err error) error { return inside("HostOptions", host, err) }

func inside(option, hosts string, err error) error {
	reason := fmt.Sprintf("%q: %s", hosts, strings.TrimPrefix(err.Error(), prefix))
	return &OptionError{Option: option, Reason: reason, Err: err}
}

// A Permission says that the owner of some hosts lets the crawler ignore their robots.txt files.
type Permission = report.Permission

// IgnoreRobots allows every request until p.Until without requesting robots.txt. Use it inside
// ForHosts, for hosts whose owner has agreed. From p.Until on, robots.txt is requested and obeyed, also
// for pages that wait. Decision.Permission is p for the requests that it allows. The options about
// delays still apply, such as MinDelay. RobotsTxt cannot be given in the same ForHosts.
//
// All fields of p are required. New returns an OptionError if p.By or p.Reference is not one line of 1
// to 500 bytes, and logs a warning if p has ended. See docs/robots-txt.md.
func IgnoreRobots(p Permission) HostOption {
	p.Until = p.Until.Round(0) // the clock of the wall decides
	o := hostOption("IgnoreRobots", func(s *judge.HostSettings) {
		s.Permission = p
		s.RobotsTxt = nil
	},
		faultIf(!isLine(p.By), "IgnoreRobots", "By is %q: want one line that says who has agreed", p.By),
		faultIf(!isLine(p.Reference), "IgnoreRobots", "Reference is %q: want one line that says where the permission can be found", p.Reference),
		faultIf(p.Until.IsZero(), "IgnoreRobots", "Until is zero: want the time when the permission ends"))
	return HostOption{o.with(p)}
}

// isLine reports whether s can be written to a report: it is one line of valid UTF-8.
func isLine(s string) bool {
	const most = 500
	return strings.TrimSpace(s) != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// DryRun makes the plugin decide and report, but enforce nothing: every request is sent at once.
// OnDenied is called for the requests that would not have been sent, and Stats has the delays that
// would have been kept. The default is false. See docs/built-in-check.md.
func DryRun(on bool) Option {
	return option("DryRun", func(c *config) { c.dryRun = on }).with(on)
}

// Shadow also computes the decisions of other dialects about each page, without obeying them. Stats
// lists the URLs whose decisions differ from those of the dialect in force. Use it before a spider
// changes to another dialect. New returns an OptionError if there is no dialect.
//
// Shadow causes no requests. docs/built-in-check.md says what it costs.
func Shadow(dialects ...dialect.Dialect) Option {
	dialects = slices.Clone(dialects)
	o := option("Shadow", func(c *config) { c.shadows = dialects },
		faultIf(len(dialects) == 0, "Shadow", "names no dialect"))
	return withAll(o, dialects)
}

// DelayFromEnd counts every delay from the end of a response instead of the start of its request. A
// slow server then gets fewer requests. While a delay is in force, at most one request of a host is
// in flight. The default is false. See docs/delays.md.
func DelayFromEnd(on bool) HostOption {
	return flag("DelayFromEnd", on, func(s *judge.HostSettings) { s.Pace.FromEnd = on })
}

// MaxInFlightPerHost sets how many requests of one host may be in flight at once. A request is in
// flight from its start until the body of its response has been read. By default, or if n is zero,
// one request is in flight while a delay is in force, and otherwise as many as Colly sends.
//
// By default, a request counts for at most a minute, or for ten delays if that is longer, because
// its body may never end. Under MaxInFlightPerHost, each request counts until its end, so the
// collector should have a request timeout. A negative n is an OptionError. See docs/delays.md.
func MaxInFlightPerHost(n int) HostOption {
	return HostOption{hostOption("MaxInFlightPerHost", func(s *judge.HostSettings) { s.Pace.MaxInFlightPerHost = n },
		faultIf(n < 0, "MaxInFlightPerHost", "%d is negative", n)).with(n)}
}

// MaxCrawlDelay caps crawl delays at d: a host that asks for a longer delay is crawled faster than
// it asks, and a warning is logged. By default, or if d is zero, every crawl delay is kept, however
// long it is. A host whose crawl delay is longer than SkipCrawlDelayAbove is skipped, also if
// MaxCrawlDelay is set. New returns an OptionError if d is negative, shorter than MinDelay, or not
// shorter than SkipCrawlDelayAbove. See docs/delays.md.
func MaxCrawlDelay(d time.Duration) HostOption {
	return HostOption{hostOption("MaxCrawlDelay", func(s *judge.HostSettings) { s.MaxCrawlDelay = d },
		faultIf(d < 0, "MaxCrawlDelay", "%v is negative", d)).with(d)}
}

// SkipCrawlDelayAbove skips hosts that ask for a longer crawl delay than d: their pages are denied
// with report.ReasonDelay, and a warning is logged. By default, or if d is zero, no host is
// skipped. New returns an OptionError if d is negative or shorter than MinDelay.
//
// A skipped host still gets requests for its robots.txt, at least d apart, so that it is crawled
// once it asks for less. If only one of the robots.txt files of a host asks for more than d, such
// as the one for http, the pages of the other file are fetched, at least d apart. See
// docs/delays.md.
func SkipCrawlDelayAbove(d time.Duration) HostOption {
	return HostOption{hostOption("SkipCrawlDelayAbove", func(s *judge.HostSettings) { s.SkipCrawlDelayAbove = d },
		faultIf(d < 0, "SkipCrawlDelayAbove", "%v is negative", d)).with(d)}
}

// MaxRate limits how many requests to all hosts together start: r per second, and burst of them at
// once. All requests count, also robots.txt and sitemaps. Each host has its own delay as well, which
// never becomes shorter: a request waits for the rate when its host lets it start. Hosts take turns.
// With SharedPace, the limit holds for each process. A dry run does not wait. If r is 0 or rate.Inf,
// there is no limit. See docs/limits.md.
func MaxRate(r rate.Limit, burst int) Option {
	valid := r >= 0
	return option("MaxRate", func(c *config) {
		c.maxRate = r
		c.burst = burst
	},
		faultIf(!valid, "MaxRate", "%v is negative or not a number", float64(r)),
		faultIf(burst < 0 || 0 < r && r < rate.Inf && burst == 0, "MaxRate", "the burst %d is less than one, so no request could start", burst)).with(float64(r), burst)
}

// Jitter makes each gap between two requests to a host longer than the delay by a random share of
// it, which is between 0 and f. With MinDelay(time.Second) and Jitter(0.25), the gaps are between 1
// and 1.25 seconds. No gap becomes shorter. The option applies to every delay, but not to a
// Retry-After or to CrawlHours. The default is zero, which means no random share. New returns an
// OptionError if f is not between 0 and 1. See docs/delays.md.
func Jitter(f float64) HostOption {
	valid := f >= 0 && f <= 1
	return HostOption{hostOption("Jitter", func(s *judge.HostSettings) { s.Pace.Jitter = f },
		faultIf(!valid, "Jitter", "%v is not between 0 and 1", f)).with(f)}
}

// AdaptiveDelay makes the delay of each host at least factor times its response time, so that a
// host that becomes slow gets fewer requests. With a factor of 1, a host works on one request at a
// time on average. With 0.5, it works on two requests, and with 2, on one for half of the time. By
// default, or if factor is zero, the response time has no effect.
//
// The longest of this delay, Crawl-delay, MinDelay and the back-off applies. MaxBackOff limits this
// delay. At most 1/factor requests of a host, rounded up, are in flight, unless MaxInFlightPerHost
// is set. A negative or infinite factor is an OptionError. See docs/back-off.md.
func AdaptiveDelay(factor float64) HostOption {
	valid := factor >= 0 && !math.IsInf(factor, 1)
	return HostOption{hostOption("AdaptiveDelay", func(s *judge.HostSettings) { s.Pace.Adaptive = factor },
		faultIf(!valid, "AdaptiveDelay", "%v is negative, infinite or not a number", factor)).with(factor)}
}

// MaxBackOff limits the delay that responses with status 429 and 503 cause. It does not shorten a
// Retry-After. The default is five minutes. If d is zero, such responses cause no delay, and the
// rate is not reduced after a Retry-After has passed. A negative d is an OptionError. See
// docs/back-off.md.
func MaxBackOff(d time.Duration) HostOption {
	limit := d
	if limit == 0 {
		limit = -1 // the value of pace.Rules for no back-off
	}
	return HostOption{hostOption("MaxBackOff", func(s *judge.HostSettings) { s.Pace.MaxBackOff = limit },
		faultIf(d < 0, "MaxBackOff", "%v is negative", d)).with(d)}
}

// RetryThrottled requests a page that was answered with status 429 or 503 again, up to n times,
// before the spider sees the response. The default is zero, which means no retries. A negative n is
// an OptionError.
//
// The retries keep the pace of the host. The page holds its LimitRule slot while it waits. If the
// host may not be requested for more than five minutes, or if the body of the request cannot be
// read twice, the spider gets the response instead. See docs/back-off.md.
func RetryThrottled(n int) HostOption {
	return HostOption{hostOption("RetryThrottled", func(s *judge.HostSettings) { s.Retries = judge.ThrottledRetries(n) },
		faultIf(n < 0, "RetryThrottled", "%d is negative", n)).with(n)}
}

// StopAfterRefusals stops a host that has refused n requests in a row. Its pages are then denied
// with report.ReasonRefused, also those that already wait. After an hour, one page is sent as a
// probe. If the host refuses it, the next probe follows after two hours, and so on up to a day. By
// default, or if n is zero, refusals are counted, and no host is stopped. A negative n is an
// OptionError.
//
// A refusal is a response with status 401, 403 or 451, a challenge of Cloudflare or AWS WAF, or a
// connection that is reset right after the request. 429 and 503 are not refusals. Responses to
// robots.txt and sitemaps do not count. Each process counts for itself. See docs/back-off.md.
func StopAfterRefusals(n int) HostOption {
	return HostOption{hostOption("StopAfterRefusals", func(s *judge.HostSettings) { s.StopAfterRefusals = n },
		faultIf(n < 0, "StopAfterRefusals", "%d is negative", n)).with(n)}
}

// MaxPages sends at most n pages of all hosts together. Further pages are denied with
// report.ReasonBudget. By default, or if n is zero, there is no limit. A negative n is an OptionError.
//
// A page counts as for MaxPagesPerHost, but only once if it is redirected to another host. See
// docs/limits.md.
func MaxPages(n int) Option {
	return option("MaxPages", func(c *config) { c.maxPages = n }, faultIf(n < 0, "MaxPages", "%d is negative", n)).with(n)
}

// MaxPagesPerHost sends at most n pages of a host. Further pages are denied with
// report.ReasonBudget, also those that already wait. By default, or if n is zero, there is no
// limit. A negative n is an OptionError.
//
// A page counts when it is sent, and once if it is sent again after 429, 503 or a lost connection,
// or if it is redirected within its host. robots.txt, sitemaps and pages that are not requested do
// not count. All collectors and clients of the Plugin count together. The count starts at zero in
// each run, and is not shared with other processes. See docs/limits.md.
func MaxPagesPerHost(n int) HostOption {
	return HostOption{hostOption("MaxPagesPerHost", func(s *judge.HostSettings) { s.MaxPagesPerHost = n },
		faultIf(n < 0, "MaxPagesPerHost", "%d is negative", n)).with(n)}
}

// HonorDelays keeps the Crawl-delay, Request-rate and Visit-time of a robots.txt also under a
// dialect that ignores them. By default, or if on is false, the dialect decides: dialect.RFC9309
// and dialect.CocCoc have Crawl-delay, dialect.Seznam has Request-rate, and no dialect has
// Visit-time.
//
// "Request-rate: 10/1m" lets one request start every six seconds. MaxCrawlDelay limits it, and
// SkipCrawlDelayAbove does not compare it. "Visit-time: 2200-0559" lets requests start only
// between 22:00 and 6:00 UTC. At other times, pages wait, and only robots.txt is requested. See
// docs/dialects.md.
func HonorDelays(on bool) HostOption {
	return flag("HonorDelays", on, func(s *judge.HostSettings) { s.HonorDelays = on })
}

// FollowSitemaps also crawls the pages of the sitemaps that the robots.txt files of the crawled
// sites name. By default, sitemaps are not read. New returns an OptionError for each fault of f.
// See docs/sitemaps.md.
func FollowSitemaps(f Feed) Option {
	return option("FollowSitemaps", func(c *config) { c.feed = &f }, feedFaults(f)...).with(omitted)
}

// feedFaults returns the faults of a Feed as those of FollowSitemaps.
func feedFaults(f Feed) (faults []error) {
	for _, reason := range f.faults() {
		faults = append(faults, fault("FollowSitemaps", "%s", reason))
	}
	return faults
}

// OnDenied sets a function that is called once for each request of a collector that is not sent.
// err is the reason: a *DeniedError, a *PrivateNetworkError, a *ShardError, a
// *PaceError, ErrRedirectWait, ErrClosed, or the cause of the collector's context. Such a
// request fails like any other, and OnError is also called.
//
// The function is called on the goroutine of the request, which holds no slot of a LimitRule, so it
// may visit other pages, and may call r.Retry. In a dry run, it is called when the response has
// arrived. OnDenied may be given several times. A nil f is an OptionError. See docs/faq.md.
func OnDenied(f func(r *colly.Request, err error)) Option {
	return option("OnDenied", func(c *config) { c.onDenied = append(c.onDenied, f) }, faultIf(f == nil, "OnDenied", "the function is nil")).with(omitted)
}

// OnEvent sets a function that is called for each Event of the crawl; see Plugin.Listen. Events are
// dropped while f is too slow. If OnEvent is given several times, each function gets all events,
// independently of the others. A nil f is an OptionError. See docs/troubleshooting.md.
func OnEvent(f func(*Event)) Option {
	return option("OnEvent", func(c *config) { c.onEvent = append(c.onEvent, f) }, faultIf(f == nil, "OnEvent", "the function is nil")).with(omitted)
}

// OnEveryEvent is like OnEvent, but no event is dropped: while more than 4,096 events, or more than
// 16 MiB of robots.txt files, wait for f, the crawl waits. It is the option for an audit log. f
// gets the events of one host in chronological order. f must not wait for a request of the plugin,
// and must not call Check or Acquire, because they may wait for f.
//
// OnEveryEvent may be given several times. Close waits until each function was called with all
// events. It gives a function up, and logs that, if no call of it ends within five seconds. A nil f
// is an OptionError. See docs/troubleshooting.md.
func OnEveryEvent(f func(*Event)) Option {
	return option("OnEveryEvent", func(c *config) { c.onEveryEvent = append(c.onEveryEvent, f) }, faultIf(f == nil, "OnEveryEvent", "the function is nil")).with(omitted)
}

// Store keeps robots.txt files, the pace of each host, the progress of Feed.Resume, and the records
// of Revalidate in s, so that a later process can use them. By default, they are kept in the
// urlstore.Store of Frontier, or else in memory. Several plugins may share a store. The caller closes
// the store, after the plugins. A nil s is an OptionError.
//
// A process that is started again, also after a kill, keeps the delay, the back-off and the
// Retry-After of each host in the store. The store does not contain the time of each request, so the
// first request to such a host waits for one delay after New. The context of each call of the store
// ends after ten seconds; the crawl then continues without the record. See docs/reference/options.md.
func Store(s store.Store) Option {
	return option("Store", func(c *config) { c.store = &boundedStore{Store: s} }, faultIf(typednil.Is(s), "Store", "the store is nil")).with(typeOf(s))
}

// A boundedStore limits the time of calls, so that a database that does not answer cannot stop the
// crawl. It keeps the errors of the records that could not be written, for Close.
type boundedStore struct {
	store.Store

	// mu protects the fields below it.
	mu        sync.Mutex
	unwritten map[string]error // by key
	more      int              // the failed writes of further keys
}

// storePatience is the longest time that a call of a store may take.
const storePatience = 10 * time.Second

// mostUnwritten is the largest number of keys in unwritten.
const mostUnwritten = 100

// Get implements store.Store.
func (s *boundedStore) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	value, err := s.Store.Get(ctx, key)
	return value, typednil.Error(err)
}

// Update implements store.Store.
func (s *boundedStore) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	err := typednil.Error(s.Store.Update(ctx, key, ttl, f))
	s.note(key, err)
	return err
}

// note keeps err until a later write of key succeeds.
func (s *boundedStore) note(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.unwritten, key)
		return
	}
	if s.unwritten == nil {
		s.unwritten = make(map[string]error)
	}
	if _, isKnown := s.unwritten[key]; !isKnown && len(s.unwritten) >= mostUnwritten {
		s.more++
		return
	}
	s.unwritten[key] = err
}

// failures returns the errors of the records that could not be written, joined in the order of their
// keys. It returns nil if s is nil.
func (s *boundedStore) failures() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, key := range slices.Sorted(maps.Keys(s.unwritten)) {
		all = append(all, fmt.Errorf("collyrobots: the Store has not written the record %q: %w", key, s.unwritten[key]))
	}
	if s.more > 0 {
		all = append(all, fmt.Errorf("collyrobots: the Store has failed %d more times to write other records", s.more))
	}
	return errors.Join(all...)
}

// Logger sets the logger for everything that no call returns. The default is the value of
// slog.Default when New is called. A nil l is an OptionError. The levels are:
//
//	Error  lost records, a Pacer that fails
//	Warn   unreadable robots.txt files, capped delays, skipped hosts, hosts that throttle or refuse, sitemaps with errors
//	Info   changed robots.txt files, long waits, the first denied URL of each host
//	Debug  the other denied URLs, the options of the plugin
//
// See docs/faq.md.
func Logger(l *slog.Logger) Option {
	return option("Logger", func(c *config) { c.log = l }, faultIf(l == nil || typednil.Is(l.Handler()), "Logger", "the logger or its handler is nil")).with(omitted)
}

// RobotsClient sets the client that fetches robots.txt and sitemaps. The default is the client of
// the collector. The plugin uses the Transport of the client and, for robots.txt, its Timeout, but
// not the cookie jar and CheckRedirect. It sends no header of a page through this client. A nil
// client is an OptionError. See docs/robots-txt.md.
func RobotsClient(client *http.Client) Option {
	return option("RobotsClient", func(c *config) { c.client = client },
		faultIf(client == nil, "RobotsClient", "the client is nil"),
		faultIf(client != nil && client.Transport != nil && typednil.Is(client.Transport), "RobotsClient", "the Transport of the client is a nil pointer")).with(omitted)
}

// SharedPace shares the pace of each host with all processes that use the same Pacer: at least the
// delay of the host passes between the end of one request and the start of the next one, whichever
// process sends it. Every request asks the Pacer, including redirects, robots.txt and sitemaps. By
// default, each process keeps its own pace. A nil p is an OptionError. A dry run does not use p.
//
// While a delay is in force, a host has one request in flight. If its response has not ended at the
// Deadline of the Lease, the request fails with ErrLeaseEnded. If the Pacer fails, nothing is sent:
// requests fail with a *PaceError. See docs/many-processes.md.
func SharedPace(p pacer.Pacer) Option {
	return option("SharedPace", func(c *config) { c.pacer = p }, faultIf(typednil.Is(p), "SharedPace", "the Pacer is nil")).with(typeOf(p))
}

// ShardByHost makes this process number i of n processes, counted from 0. Each process crawls the
// hosts that ShardOf assigns to it. A request for another host fails with a *ShardError,
// also a redirect and in a dry run. The default is ShardByHost(1, 0). New returns an OptionError if
// n is less than one, or if i is not between 0 and n-1.
//
// Sitemaps on hosts of other shards are not read. If a sitemap lists pages of other shards,
// Feed.Sink and Pages get them, and the collector fails with a *ShardError for each. See
// docs/many-processes.md.
func ShardByHost(n, i int) Option {
	return option("ShardByHost", func(c *config) { c.shard = judge.Shard{Of: n, Index: i} },
		faultIf(n < 1, "ShardByHost", "%d is not a number of shards", n),
		faultIf(n > 0 && (i < 0 || i >= n), "ShardByHost", "there is no shard %d of %d: want 0 to %d", i, n, n-1)).with(n, i)
}

// PrivateNetworks says which requests to private, loopback and link-local addresses, and to others
// that are not part of the public internet, are sent. By default, the program may visit them, and
// public sites may not lead the crawler there with a redirect, a Sitemap line or an entry of a
// sitemap. With DenyAll, no request is sent to them, for services that crawl the URLs of strangers.
// With AllowAll, all requests are sent. A request that is not sent fails with a
// *PrivateNetworkError, also in a dry run. Any other value of a is an OptionError.
//
// Names are checked when a connection is made, unless a proxy resolves them. See
// docs/limits.md.
func PrivateNetworks(a Access) Option {
	return option("PrivateNetworks", func(c *config) { c.privateNetworks = netguard.Access(a) },
		accessFault("PrivateNetworks", a)).with(a)
}

// ShardOf returns the number of the process that requests the host of a URL under ShardByHost. The
// n processes are numbered from 0. ShardOf returns an error if n is less than one, or if the URL is
// not an http or https URL. If n grows by one, each host keeps its shard or moves to the new one.
//
// A program in another language can compute the same shard. The host is in lower-case ASCII,
// without scheme and port. An international name has its "xn--" form, and an IPv6 address has
// brackets. The key is the first eight bytes of the host's SHA-256, as a big-endian unsigned
// number. The shard is the jump consistent hash of the key (Lamping and Veach, "A Fast, Minimal
// Memory, Consistent Hash Algorithm", 2014):
//
//	b = -1; j = 0
//	while j < n:
//		b = j
//		key = (key * 2862933555777941757 + 1) mod 2^64
//		j = floor((b + 1) * (2^31 / ((key >> 33) + 1)))   in 64-bit floating point
//	return b
//
// For example, example.com belongs to shard 2 of 100.
func ShardOf(rawURL string, n int) (int, error) {
	u, err := weburl.Parse(rawURL)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", redact.ParseError(err))
	}
	if !weburl.IsWeb(u) {
		return 0, fmt.Errorf("collyrobots: ShardOf: %q is not an http or https URL", u.Redacted())
	}
	if n < 1 {
		return 0, fmt.Errorf("collyrobots: ShardOf: got %d shards, want at least 1", n)
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", err)
	}
	return judge.ShardOf(a.Host, n), nil
}

// An Access says what the options WhenUnreachable, WhenForbidden and PrivateNetworks allow. The zero
// Access is not valid.
type Access uint8

const (
	// DenyAll denies every page of a site, or every request to a private address.
	DenyAll Access = iota + 1
	// AllowAll allows them. If a robots.txt of the site was read before it became unreachable, its
	// rules still apply.
	AllowAll
)

// String returns "deny_all" or "allow_all".
func (a Access) String() string {
	if a == AllowAll {
		return "allow_all"
	}
	return "deny_all"
}

// accessFault returns the fault of an option with the Access a, or nil.
func accessFault(option string, a Access) error {
	return faultIf(a != DenyAll && a != AllowAll, option, "%d is not DenyAll or AllowAll", uint8(a))
}

// RobotsTxt uses body in place of the robots.txt of some hosts, which is then not requested. It can
// only be used inside ForHosts, for hosts whose owner has sent you rules that differ from the
// published file. All lines of body apply, in the dialect of the crawl, also Crawl-delay and
// Sitemap. Lines that the dialect ignores are logged. Decision.Option is "RobotsTxt" for such
// hosts.
//
// An empty body allows everything. A nil body is an OptionError, because it is most likely a file
// that could not be read. IgnoreRobots, WhenUnreachable and WhenForbidden cannot be given in the
// same ForHosts. See docs/robots-txt.md.
func RobotsTxt(body []byte) HostOption {
	body = bytes.Clone(body)
	o := hostOption(policy.OptionRobotsTxt, func(s *judge.HostSettings) {
		s.RobotsTxt = body
		s.Permission = Permission{}
	}, faultIf(body == nil, policy.OptionRobotsTxt, "the file is nil; an empty file, []byte{}, allows everything"))
	o.onlyPerHost = true
	return HostOption{o.with(omitted)}
}

// WhenUnreachable says how to treat a site with an unreachable robots.txt, in place of the dialect:
// there is no complete response, the status is 5xx, 429 or one that HTTP does not define, or a
// redirect cannot be followed (RFC 9309, section 2.3.1.4). With DenyAll, all pages are denied until
// the file can be read. With AllowAll, the last robots.txt that was read applies, or everything is
// allowed if there is none. The default depends on the dialect: see docs/dialects.md.
//
// Decision.Option is "WhenUnreachable" if this option has decided. Any other value of a is an
// OptionError. See docs/robots-txt.md.
func WhenUnreachable(a Access) HostOption {
	return HostOption{hostOption(policy.OptionWhenUnreachable, func(s *judge.HostSettings) { s.WhenUnreachable = policy.Access(a) },
		accessFault(policy.OptionWhenUnreachable, a)).with(a)}
}

// WhenForbidden says how to treat a site that answers the request for robots.txt with status 401 or
// 403. By default, such a site has no robots.txt, and everything is allowed (RFC 9309, section
// 2.3.1.3). DenyAll denies every page, as the specification of 1996 recommended.
//
// The decision holds as long as that response may be cached: one day, unless Cache-Control shortens
// that. Decision.Option is "WhenForbidden" if this option has decided. Any value other than DenyAll
// and AllowAll is an OptionError. See docs/robots-txt.md.
func WhenForbidden(a Access) HostOption {
	return HostOption{hostOption(policy.OptionWhenForbidden, func(s *judge.HostSettings) { s.WhenForbidden = policy.Access(a) },
		accessFault(policy.OptionWhenForbidden, a)).with(a)}
}

// CrawlHours lets the requests to each host start only in some hours of each day: from the time of
// day from until the time of day to, on a clock in loc. CrawlHours("22:00", "06:00", loc) starts
// requests from ten in the evening until six in the morning. By default, requests start at any
// time.
//
// At other times, pages, redirects and sitemaps wait, and only robots.txt is requested. If a
// Visit-time is honored as well, requests start only when both allow it. The hours follow daylight saving time. New returns an OptionError
// if from or to is not a time of day, if they are equal, or if loc is nil. See docs/limits.md.
func CrawlHours(from, to string, loc *time.Location) HostOption {
	opens, opensOK := timeOfDay(from)
	closes, closesOK := timeOfDay(to)
	const malformed = `%q is not a time of day: want "00:00" to "23:59"`
	return HostOption{hostOption("CrawlHours", func(s *judge.HostSettings) {
		s.Pace.Hours = &judge.CrawlHours{Opens: opens, Closes: closes, Loc: loc}
	},
		faultIf(!opensOK, "CrawlHours", malformed, from),
		faultIf(!closesOK, "CrawlHours", malformed, to),
		faultIf(opensOK && closesOK && opens == closes, "CrawlHours", "the window from %s to %s is empty", from, to),
		faultIf(loc == nil, "CrawlHours", "the location is nil: check the error of time.LoadLocation")).with(from, to, loc)}
}

// timeOfDay parses a time such as "22:00", and returns the time since midnight.
func timeOfDay(s string) (d time.Duration, ok bool) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, false
	}
	return judge.SinceMidnight(t), true
}
