package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/fed"
	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/nofollow"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/revalidate"
	"github.com/collyrobots/collyrobots/internal/track"
)

// A Plugin contains the robots.txt files of one crawl and the pace of each host. It serves any
// number of collectors, which share both. All methods may be called from any goroutine. Get a
// Plugin from New or WithRobots. With the zero Plugin, Attach, Check, Acquire, Pages and
// SitemapQueue return an error, and so does each RoundTrip of Transport.
type Plugin struct {
	*core
	controller *controller
	clients    gate.Clients // the controller of http.Clients

	// mu protects the fields below it. Close holds it while it releases the collectors.
	mu    sync.Mutex
	hooks []weak.Pointer[hooks] // of the attached collectors, which the plugin does not keep alive
	owner *hooks                // of the collector of WithRobots, kept alive for the plugin's own requests
}

// New returns a Plugin. The error joins an *OptionError for each fault of the options.
func New(opts ...Option) (*Plugin, error) {
	list := given(opts)
	config, err := configure(list)
	if err != nil {
		return nil, err
	}
	r := reporter.New(config.log)
	config.warnings(r.Warn)
	logOptions(config.log, list)
	for _, f := range config.onEvent {
		r.Events.Listen(f)
	}
	for _, f := range config.onEveryEvent {
		r.Events.ListenToAll(f)
	}
	w := newWire(config, r)
	policies := judge.NewPolicies(&config.Settings, config.shadows, config.store, w)
	j := judge.New(&config.Settings, w, policies)
	j.DryRun = config.dryRun
	j.MaxPages = config.maxPages
	j.Shard = config.shard
	c := &core{
		judge:     j,
		onDenied:  config.onDenied,
		started:   time.Now(),
		bubbled:   inBubble(),
		tracked:   track.NewRequests[arrival](),
		untracked: newUntracked(),
	}
	c.kept, _ = config.store.(*boundedStore)
	c.gate = gate.New(j, root{core: c})
	c.gate.Shadows = judge.NewShadows(config.shadows)
	if config.feed != nil {
		c.sitemaps = newSitemaps(c, *config.feed)
		c.gate.Offer = c.sitemaps.offer
		c.fed.Use()
	}
	if config.revalidates() {
		c.revalidation = revalidate.NewPages(config.store, r)
	}
	if config.frontier != nil {
		c.frontier = newFrontier(config.frontier, c)
		w.AddStore(config.frontier)
	}
	ctl := gate.NewController(c.gate)
	return &Plugin{
		core:       c,
		controller: &controller{Controller: ctl, core: c},
		clients:    gate.Clients{Controller: ctl},
	}, nil
}

// A core is the state that the collectors of one plugin share.
type core struct {
	judge    *judge.Judge
	gate     *gate.Gate
	sitemaps *sitemaps // nil if they are not followed

	onDenied  onDenied
	unsent    reporter.UnsentCounts
	started   time.Time
	bubbled   bool // it was made in a bubble of testing/synctest
	tracked   *track.Requests[arrival]
	retries   track.Retries
	debuggers debuggers
	fed       fed.Pages
	links     nofollow.Pages   // pages with links that must not be followed
	untracked *arrivals.Visits // wraps the storages of collectors without Frontier
	tagCounts tagCounts
	frontier  *frontier // nil without the option Frontier
	closed    atomic.Bool
	ended     atomic.Pointer[time.Time] // the time of the first Close; nil before it

	revalidation *revalidate.Pages // nil without the option Revalidate
	kept         *boundedStore     // nil without the options Store and Frontier
}

// inBubble reports whether the caller runs in a bubble of testing/synctest, where times have no
// monotonic clock reading.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}

// usable returns an error if p is zero, or if either p or the caller is in a bubble of
// testing/synctest and the other is not.
func (p *Plugin) usable() error {
	if p == nil || p.core == nil {
		return errZero
	}
	if p.bubbled != inBubble() {
		return errBubble
	}
	return nil
}

// WithRobots makes an existing collector obey robots.txt. It calls New and Attach. Until Close, the
// Plugin keeps the collector in memory, because Check and Pages need its client and its user agent.
func WithRobots(c *colly.Collector, opts ...Option) (*Plugin, error) {
	p, err := New(opts...)
	if err != nil {
		return nil, err
	}
	if err := p.Attach(c); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner = p.hooks[0].Value()
	return p, nil
}

// Listen calls f for each Event from now on, until stop is called or the plugin is closed. The
// events of one host arrive in chronological order, within 50 ms if f is fast enough. Calls of f do
// not overlap.
//
// f may be slow: up to 4,096 events wait for it. Further events are dropped, and an report.EventMissed
// reports their number. f may call any method of the plugin, but see Close. If f panics, it misses
// that event, and the first panic is logged.
//
// stop does not wait for a call of f that is under way. After stop, no call begins.
func (p *Plugin) Listen(f func(*Event)) (stop func()) {
	if p == nil || p.core == nil || f == nil {
		return func() {}
	}
	return p.judge.Report.Events.Listen(f)
}

// Close ends the plugin at once. Requests that wait, and the reading of robots.txt files and
// sitemaps, end with ErrClosed, and so do all further requests of attached collectors. A page that
// waits in a urlstore.Store stays there for a later run. Close does not wait for requests that are
// under way: they go on, but their redirects are denied, and Close does not record the progress that
// they make in a sitemap. Shutdown waits for them.
//
// Close writes the robots.txt files and the progress of sitemaps to the Store, and returns the errors
// of all records that the Store, or the urlstore.Store of Frontier, could not write since New, joined.
// It does not close the stores. Close may be called at any time, several times and concurrently. A
// further call changes nothing, and returns the errors again.
//
// Close waits up to five seconds until all events are delivered to the functions of OnEvent and
// Listen, and up to five seconds for each event for those of OnEveryEvent. It waits for no other
// function of the user, with one exception: while a robots.txt is being fetched, it waits for the
// slog.Handler and the http.RoundTripper that the fetch uses.
//
// Close may be called in a function that the plugin calls. In a function of OnEvent or Listen it
// takes the five seconds, because it also waits for that function, and in such a handler or
// RoundTripper it may wait for itself. Start a goroutine for Close there.
func (p *Plugin) Close() error {
	if p == nil || p.core == nil {
		return nil
	}
	p.stop()
	p.frontier.close()
	p.judge.Policies.Close()
	p.sitemaps.flush()
	p.judge.Report.Events.Close()
	if p.gate.Empty() {
		p.debuggers.deliver()
	}
	p.tracked.Close()
	p.release()
	return errors.Join(p.kept.failures(), p.frontier.storeError())
}

// Shutdown waits for the requests that are under way and then ends the plugin like Close. From the
// call on, no request starts, as after Close. Shutdown waits until the responses of all requests on the
// wire are read, the callbacks of pages that a sitemap lists or that Frontier has recorded have run, and
// the walks of sitemaps have ended. Their results are in the stores when Shutdown returns. For the
// callbacks of other pages, use Collector.Wait.
//
// If ctx ends first, Shutdown stops waiting, calls Close, and returns the cause of ctx, joined with the
// errors of Close. The requests under way go on. Otherwise it returns what Close returns.
//
// Shutdown may be called several times and concurrently, also with Close. In a callback of a collector
// and between Acquire and Turn.End it would wait for its caller until ctx ends. Start a goroutine
// for Shutdown there.
func (p *Plugin) Shutdown(ctx context.Context) error {
	if p == nil || p.core == nil {
		return nil
	}
	p.stop()
	return errors.Join(p.awaitIdle(ctx), p.Close())
}

// idlePoll is how often Shutdown looks whether something is under way.
const idlePoll = 10 * time.Millisecond

// awaitIdle waits until no request is in flight, no result of a page is missing, and no sitemap is being
// read. It returns the cause of ctx if that ends first. It looks at each host once, because after stop
// no host becomes busy again.
func (c *core) awaitIdle(ctx context.Context) error {
	for host := range c.judge.Wire.Hosts.All() {
		err := poll(ctx, func() bool { return !host.Stats(time.Now()).Busy })
		if err != nil {
			return err
		}
	}
	return poll(ctx, func() bool { return c.frontier.isIdle() && c.sitemaps.isIdle() })
}

// poll waits until isIdle returns true, and returns the cause of ctx if that ends first.
func poll(ctx context.Context, isIdle func() bool) error {
	for !isIdle() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(idlePoll):
		}
	}
	return nil
}

// stop lets no further request start, and ends the waits of all others.
func (p *Plugin) stop() {
	now := time.Now()
	p.ended.CompareAndSwap(nil, &now) // before closed, so that a closed plugin has the time
	p.closed.Store(true)
	p.judge.Policies.Stop() // before the hosts are closed: otherwise a fetch whose wait ends would count as failed
	p.judge.Wire.Close()
	p.frontier.stop()
}

// release gives the collectors their clients back, if no request of them is under way.
func (p *Plugin) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.hooks {
		if h := w.Value(); h != nil {
			h.handle.Release(p.controller, p.gate.Empty)
		}
	}
	p.hooks = nil
	p.owner = nil
}

// Attach makes c obey robots.txt. It also turns off Colly's built-in check.
//
// Call Attach before the first Visit, and after the registration of OnRequest callbacks that may
// abort requests or change them. Callbacks that are registered later also work, but each request
// that they abort costs its host one delay. A second Attach of the same collector has no effect,
// unless Collector.Init was called in between.
//
// A clone made by Colly's own Clone has no callbacks, and must be attached itself: see docs/faq.md.
//
// Attach does not change the user's http.Client. It gives the collector a client of the plugin
// instead. A collector and its clones have one client together, so none of them may have requests
// under way when the first of them is attached. Other collectors are not affected, even if they
// share a client or a transport with c.
//
// A debugger of c also receives each Event, with the Type "robots." and the Kind. The plugin calls
// it in the callbacks of c, on the goroutines on which Colly calls it, so the debugger needs no
// more locks than without the plugin. An event that happens between two callbacks is delivered in
// the next one, or in Close.
//
// Attach returns ErrAttached if c has another plugin that is not closed, ErrNilCollector if c is
// nil, and an error that wraps ErrUnsupportedColly and says what is missing if c does not have the
// unexported fields that the plugin reads. After an error c is unchanged.
//
// Attach one plugin to a collector, and keep it, because Colly cannot remove callbacks. A program
// with many jobs makes one collector per job, or one plugin for all jobs.
func (p *Plugin) Attach(c *colly.Collector) error {
	if err := p.usable(); err != nil {
		return err
	}
	if c == nil {
		return ErrNilCollector
	}
	handle, err := backend.Open(c)
	if err != nil {
		return err
	}
	seam, fresh, err := handle.Install(p.controller)
	if errors.Is(err, backend.ErrControlled) {
		return ErrAttached
	}
	if !c.IgnoreRobotsTxt {
		c.IgnoreRobotsTxt = true
	}
	p.warnOfUncheckedRequests(c)
	if !backend.Marked(c.Context, p.controller) && !backend.TakeOver(c.Context, p.controller, isClosed) {
		c.Context = backend.Mark(c.Context, p.controller)
	}
	if h := p.hooksOf(c); !fresh || h != nil { // if Collector.Init has undone the rest, the callbacks are still there
		h.watchStorage()
		p.frontier.watch(h)
		return nil
	}
	h := &hooks{core: p.core}
	h.collectorClient.init(p.controller, c, handle, seam)
	h.enforcesTags = p.judge.Settings.IsForAny(func(s *judge.HostSettings) bool { return s.EnforceNofollow })
	h.watchStorage()
	h.addRevalidation()
	p.frontier.add(h)
	p.remember(h)
	h.attach()
	h.debugger.Store(p.debuggers.add(handle, p.judge.Report))
	return nil
}

// warnOfUncheckedRequests warns if c has sent requests before any plugin was attached to it.
func (p *Plugin) warnOfUncheckedRequests(c *colly.Collector) {
	var n int
	fmt.Sscanf(c.String(), "Requests made: %d", &n) // Colly has no other getter
	if n > 0 && !backend.EverMarked(c.Context) {
		p.judge.Report.Warn("Attach was called after the first Visit: the requests that the collector had made by then were not checked", "count", n)
	}
}

// isClosed reports whether ctl is the controller of a plugin that is closed.
func isClosed(ctl backend.Controller) bool {
	own, ok := ctl.(*controller)
	return ok && own.core.closed.Load()
}

// remember records a collector. From time to time it forgets those that are gone.
func (p *Plugin) remember(h *hooks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.hooks)
	if isPowerOfTwo := n > 0 && n&(n-1) == 0; isPowerOfTwo {
		p.hooks = slices.DeleteFunc(p.hooks, func(w weak.Pointer[hooks]) bool { return w.Value() == nil })
	}
	p.hooks = append(p.hooks, weak.Make(h))
}

// hooksOf returns the hooks of a collector, or nil.
func (p *Plugin) hooksOf(c *colly.Collector) *hooks {
	return p.find(func(h *hooks) bool { return h.c == c })
}

// userAgent returns that of the first collector that still exists. If none does, it returns the one
// that robots.txt was last read for, or "".
func (p *Plugin) userAgent() string {
	h := p.first()
	if h != nil {
		return h.c.UserAgent
	}
	return p.judge.Policies.LastUserAgent()
}

// first returns the hooks of the first collector that still exists, or nil.
func (p *Plugin) first() *hooks {
	return p.find(func(*hooks) bool { return true })
}

// find returns the first hooks that match accepts, or nil.
func (p *Plugin) find(match func(*hooks) bool) *hooks {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.hooks {
		h := w.Value()
		if h != nil && match(h) {
			return h
		}
	}
	return nil
}

// A Collector is a colly.Collector with the method WithRobots. Its clones are attached to the same
// plugin, and its Visit also reads the sitemaps that are still pending. All other methods and
// fields are those of the embedded collector. To pass it to a function that takes a
// *colly.Collector, pass c.Collector. Create a Collector with NewCollector or Wrap. WithRobots of
// the zero Collector returns an error, because it has no embedded collector.
type Collector struct {
	*colly.Collector
	robots *Plugin // nil before WithRobots
}

// NewCollector creates a collector like colly.NewCollector.
func NewCollector(options ...colly.CollectorOption) *Collector {
	return Wrap(colly.NewCollector(options...))
}

// Wrap returns a Collector that contains c.
func Wrap(c *colly.Collector) *Collector { return &Collector{Collector: c} }

// WithRobots makes the collector obey robots.txt. Call it once, before the first Visit and after
// the OnRequest callbacks that may abort or change requests. It returns the errors of New and
// Attach. After an error the collector is unchanged.
func (c *Collector) WithRobots(opts ...Option) (*Plugin, error) {
	p, err := WithRobots(c.Collector, opts...)
	if err != nil {
		return nil, err
	}
	c.robots = p
	return p, nil
}

// Visit is like colly.Collector.Visit. If Colly has called no callback at the end of the page, as
// for a character set that it does not know, Visit also reads the sitemaps that are still pending.
func (c *Collector) Visit(URL string) error {
	err := c.Collector.Visit(URL)
	if c.robots == nil || c.Async || !c.robots.sitemaps.pending() {
		return err
	}
	if h := c.robots.hooksOf(c.Collector); h != nil { // nil if a callback has closed the plugin
		h.readSitemaps()
	}
	return err
}

// Clone returns a clone without callbacks, like colly.Collector.Clone, and attaches it to the
// plugin of c. Both then share the robots.txt files and the pace of each host.
func (c *Collector) Clone() *Collector {
	if c.Collector == nil {
		return new(Collector)
	}
	clone := &Collector{Collector: c.Collector.Clone(), robots: c.robots}
	if c.robots != nil {
		if err := c.robots.Attach(clone.Collector); err != nil {
			c.robots.judge.Report.Log.Error("cannot attach a clone, its requests are judged on the wire", "error", err)
		}
	}
	return clone
}
