package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/handoff"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/internal/weburl"
)

// A Plugin holds what one crawl knows of robots.txt files and of when each host was asked last. It
// serves any number of collectors, which then share policies and pace. All methods may be called
// from any goroutine. Get one from New or WithRobots: with the zero Plugin, Attach, Check, Pages
// and SitemapQueue return an error.
type Plugin struct {
	*core
	governor *transport

	mu    sync.Mutex
	hooks []weak.Pointer[hooks] // of the attached collectors, which nothing here keeps alive
}

// New makes a Plugin. The error joins an *OptionError for every fault of the options.
func New(opts ...Option) (*Plugin, error) {
	config, err := configure(opts)
	if err != nil {
		return nil, err
	}
	report := &report{log: config.log, onDenied: config.onDenied, heard: config.heard, events: newEvents(config.log)}
	config.warnings(report.warn)
	if config.onEvent != nil {
		report.events.Listen(config.onEvent)
	}
	limiter := newLimiter(&config.settings, config.client, config.privateNetworks, report)
	policies := newPolicies(len(config.all()), config.shadows, config.store, report)
	policies.found, policies.private = limiter.found, limiter.private
	policies.read = limiter.learn
	if config.pacer != nil {
		limiter.share(&sharedPace{pacer: config.pacer, report: report})
	}
	j := &judge{
		settings: &config.settings,
		dryRun:   config.dryRun,
		shard:    config.shard,
		limiter:  limiter,
		policies: policies,
		report:   report,
		decided:  newDecisions(),
	}
	c := &core{
		gate:     gate{judge: j},
		started:  time.Now(),
		bubbled:  inBubble(),
		requests: handoff.New(func(q *request) { q.giveBack() }),
		shadows:  newShadows(config.shadows),
	}
	if config.feed != nil {
		c.sitemaps = newSitemaps(j, *config.feed, config.store, config.log)
		c.fed.inUse.Store(true)
	}
	return &Plugin{core: c, governor: &transport{core: c}}, nil
}

// A core is the state that the collectors of one plugin share.
type core struct {
	gate
	started   time.Time
	bubbled   bool // it was made in a bubble of testing/synctest
	requests  *handoff.Table[request]
	denials   track.Denials
	shadows   shadows
	debuggers debuggers
	fed       fedPages
	closed    atomic.Bool
}

// inBubble reports whether the caller runs in a bubble of testing/synctest, where times have no
// monotonic clock reading.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// usable returns why no method of p can work here, or nil.
func (p *Plugin) usable() error {
	if p == nil || p.core == nil {
		return errZero
	}
	if p.bubbled != inBubble() {
		return errBubble
	}
	return nil
}

// WithRobots makes an existing collector obey robots.txt: New and Attach in one.
func WithRobots(c *colly.Collector, opts ...Option) (*Plugin, error) {
	p, err := New(opts...)
	if err != nil {
		return nil, err
	}
	if err := p.Attach(c); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Attach makes c obey robots.txt. Call it before the first Visit, after the OnRequest callbacks
// that may abort requests or change them; later ones work too, but a request that they abort costs
// its host one delay. It turns Colly's built-in check off. A second Attach of the same collector
// does nothing, unless Collector.Init has come between. A clone made by Colly's own Clone has no
// callbacks and must be attached itself; until then its requests wait while they hold a LimitRule
// slot, and each counts as in flight only until the headers of its response are there.
//
// Attach does not touch the http.Client that c was given, but puts one of its own in its place,
// which c shares with its clones: none of them may have requests under way when the first is
// attached. Collectors that were not attached, and are no clones of such, are left alone, whatever
// they share.
//
// A debugger of c hears of every Event as one of Colly's own, with the Type "robots." and the Kind.
// It is called by the callbacks of c, on the goroutines on which Colly calls it, so it needs no lock
// if it needs none without the plugin. It hears of an event that happens between two callbacks when
// the next one is called, or in Close.
//
// Attach returns ErrAttached if c has another plugin that is not closed, ErrNilCollector if c is
// nil, and another error if this package does not know the version of Colly that made c. After an
// error c is unchanged.
//
// Attach one plugin to a collector, and keep it. Colly cannot remove callbacks, so each further
// plugin, after the Close of the one before, adds five callbacks to c that cost time for each page.
// A program with many jobs makes one collector per job, or one plugin for all jobs.
func (p *Plugin) Attach(c *colly.Collector) error {
	if err := p.usable(); err != nil {
		return err
	}
	if c == nil {
		return ErrNilCollector
	}
	handle, err := backend.Open(c)
	if err != nil {
		return fmt.Errorf("collyrobots: Attach: %w", err)
	}
	seam, fresh, err := handle.Install(p.governor)
	if errors.Is(err, backend.ErrOwned) {
		return ErrAttached
	}
	if !c.IgnoreRobotsTxt {
		c.IgnoreRobotsTxt = true
	}
	p.warnOfUncheckedRequests(c)
	if !backend.Marked(c.Context, p.governor) && !backend.TakeOver(c.Context, p.governor, isClosed) {
		c.Context = backend.Mark(c.Context, p.governor)
	}
	if !fresh || p.hooksOf(c) != nil { // Collector.Init has undone the rest
		return nil
	}
	h := &hooks{core: p.core, governor: p.governor, c: c, handle: handle}
	h.inPlace.Store(seam)
	p.remember(h)
	h.attach()
	h.debugger.Store(p.debuggers.add(handle, p.report))
	return nil
}

// warnOfUncheckedRequests warns if c has sent requests before any plugin was attached to it.
func (p *Plugin) warnOfUncheckedRequests(c *colly.Collector) {
	var n int
	fmt.Sscanf(c.String(), "Requests made: %d", &n) // Colly has no other getter
	if n > 0 && !backend.EverMarked(c.Context) {
		p.report.warn("Attach was called after the first Visit: the requests that the collector had made by then were not checked", "count", n)
	}
}

// isClosed reports whether g is of a plugin that is closed.
func isClosed(g backend.Governor) bool {
	t, ok := g.(*transport)
	return ok && t.closed.Load()
}

// remember notes a collector, and forgets those that are gone.
func (p *Plugin) remember(h *hooks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.hooks); n > 0 && n&(n-1) == 0 { // now and then
		alive := p.hooks[:0]
		for _, w := range p.hooks {
			if w.Value() != nil {
				alive = append(alive, w)
			}
		}
		p.hooks = alive
	}
	p.hooks = append(p.hooks, weak.Make(h))
}

// hooksOf returns the hooks of a collector, or nil.
func (p *Plugin) hooksOf(c *colly.Collector) *hooks {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.hooks {
		if h := w.Value(); h != nil && h.c == c {
			return h
		}
	}
	return nil
}

// first returns the hooks of the first collector that is still there, or nil.
func (p *Plugin) first() *hooks {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.hooks {
		if h := w.Value(); h != nil {
			return h
		}
	}
	return nil
}

// Check returns what the plugin would decide about a GET of rawURL, reading robots.txt if that is
// not known yet. It uses the first attached collector's client and user agent, and waits for
// nothing but the fetch. It is an error if rawURL is not an http or https URL, if ctx ends, a
// *ShardError or *PaceError where the file may not be asked for, and ErrClosed after Close. A
// robots.txt that cannot be read is a Decision, not an error. Like Colly, Check escapes a percent sign
// that does not begin an escape, such as in /100%.
func (p *Plugin) Check(ctx context.Context, rawURL string) (Decision, error) {
	if err := p.usable(); err != nil {
		return Decision{}, err
	}
	u, err := weburl.Parse(rawURL)
	if err != nil {
		return Decision{}, fmt.Errorf("collyrobots: Check: %w", redact.ParseError(err))
	}
	if u.Scheme == "" {
		return Decision{}, fmt.Errorf("collyrobots: Check: %q: missing scheme, write it as https://%s", u.Redacted(), strings.TrimLeft(u.Redacted(), "/"))
	}
	if !hasRobots(u) {
		return Decision{}, fmt.Errorf("collyrobots: Check: %q is not an http or https URL", u.Redacted())
	}
	ctx, userAgent, f := p.own(ctx)
	v, err := p.decide(ctx, time.Now(), target{url: u, userAgent: userAgent}, f)
	if err != nil {
		return Decision{}, err
	}
	return v.decision(u), nil
}

// own returns what the plugin's own requests are made with. The context also has the values of the
// collector's context, which a transport may need.
func (p *Plugin) own(ctx context.Context) (_ context.Context, userAgent string, f fetcher) {
	if h := p.first(); h != nil {
		return policy.WithValues(ctx, h.c.Context), h.c.UserAgent, fetcher{limiter: p.limiter, client: h}
	}
	return ctx, nobody, fetcher{limiter: p.limiter, client: seamClient{}}
}

// Listen calls f for each Event from now on, until stop is called or the plugin is closed. f is
// called from one goroutine at a time, in the order in which the events happened to each host,
// within 50 ms as long as it keeps up. It may take its time, since up to 4,096 events wait for it;
// more are dropped, and an EventMissed says how many. It may call any method of the plugin, but see
// Close. A panic of f is logged, the first time, and costs it that event.
//
// stop does not wait for a call of f that is under way. After it no other begins.
func (p *Plugin) Listen(f func(Event)) (stop func()) {
	if p == nil || p.core == nil || f == nil {
		return func() {}
	}
	return p.report.events.Listen(f)
}

// Close ends the plugin. Requests that wait end at once, and so does the reading of robots.txt files
// and sitemaps. From then on all requests of attached collectors are denied with ErrClosed. Close
// does not end requests that are already on the wire. Call it after the crawl, because it writes what
// the plugin knows of robots.txt files to the Store. It waits up to five seconds until the functions
// of OnEvent and Listen have been called with all events, and for no other function of the user. It
// does not close the Store. A second call of Close does nothing.
//
// Close may be called in a function that the plugin calls. In a function of OnEvent or Listen it takes
// the five seconds, because it also waits for that function: start a goroutine for Close there. Do
// the same in a slog.Handler or an http.RoundTripper that the plugin uses while it fetches a
// robots.txt, because Close waits for that fetch.
func (p *Plugin) Close() error {
	if p == nil || p.core == nil {
		return nil
	}
	p.closed.Store(true)
	p.policies.stop() // first: a fetch that ended with its wait would be taken for one that failed
	p.limiter.hosts.Close(ErrClosed)
	err := p.policies.close()
	p.sitemaps.flush()
	p.report.events.Close()
	if p.requests.Empty() {
		p.debuggers.deliver()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.hooks {
		if h := w.Value(); h != nil {
			h.tracked.Close()
			h.handle.Release(p.governor, p.requests.Empty)
		}
	}
	p.hooks = nil
	return err
}
