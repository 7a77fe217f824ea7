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

	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/handoff"
	"github.com/collyrobots/collyrobots/internal/nofollow"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/internal/weburl"
)

// A Plugin contains the robots.txt files of one crawl and the pace of each host. It serves any
// number of collectors, which share both. All methods may be called from any goroutine. Get a
// Plugin from New or WithRobots. With the zero Plugin, Attach, Check, Acquire, Pages and
// SitemapQueue return an error, and so does each RoundTrip of Transport.
type Plugin struct {
	*core
	controller *controller

	// mu protects the fields below it. Close holds it while it releases the collectors.
	mu    sync.Mutex
	hooks []weak.Pointer[hooks] // of the attached collectors, which the plugin does not keep alive
	owner *hooks                // of the collector of WithRobots, kept alive for the plugin's own requests
}

// New returns a Plugin. The error joins an *OptionError for each fault of the options.
func New(opts ...Option) (*Plugin, error) {
	config, err := configure(opts)
	if err != nil {
		return nil, err
	}
	r := newReporter(config)
	j := newJudge(config, r)
	c := &core{
		gate:      gate{judge: j},
		started:   time.Now(),
		bubbled:   inBubble(),
		requests:  handoff.New((*request).abandon),
		shadows:   newShadows(config.shadows),
		untracked: newUntracked(),
	}
	if config.feed != nil {
		c.sitemaps = newSitemaps(j, *config.feed, config.store, config.log)
		c.fed.inUse.Store(true)
	}
	if config.revalidates() {
		c.revalidation = newRevalidation(config, r)
	}
	if config.frontier != nil {
		c.frontier = newFrontier(config.frontier, c)
		j.limiter.addStore(config.frontier)
	}
	return &Plugin{core: c, controller: &controller{core: c}}, nil
}

// A core is the state that the collectors of one plugin share.
type core struct {
	gate
	started   time.Time
	bubbled   bool // it was made in a bubble of testing/synctest
	requests  *handoff.Table[request]
	refused   track.Denials // counted before the OnError callbacks of the user, to end loops of retries
	denials   track.Denials // counted when OnDenied is due
	shadows   shadows
	debuggers debuggers
	fed       fedPages
	links     nofollow.Pages   // pages with links that must not be followed
	untracked *arrivals.Visits // wraps the storages of collectors without Frontier
	tagCounts tagCounts
	frontier  *frontier // nil without the option Frontier
	closed    atomic.Bool
	ended     atomic.Pointer[time.Time] // the time of the first Close; nil before it

	revalidation *revalidation // nil without the option Revalidate
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

// Check returns the decision about a GET of rawURL. If necessary, it fetches robots.txt and, with
// the option TDMRep, the TDMRep file. It does not wait for anything else. It uses the client and the
// user agent of the first attached collector. If no collector exists any longer, it uses
// http.DefaultClient and the user agent that robots.txt was last read for. Like Colly, Check escapes
// a percent sign that does not begin an escape, such as in /100%.
//
// Check returns an error if rawURL is not an http, https or ftp URL, and if ctx ends. If robots.txt
// must not be fetched, the error is a *ShardError or a *PaceError, and after Close it is ErrClosed.
// A robots.txt that cannot be read is a Decision and not an error.
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
		return Decision{}, fmt.Errorf("collyrobots: Check: %q is not an http, https or ftp URL", u.Redacted())
	}
	ctx, userAgent, f := p.own(ctx)
	f.readsTDM = true
	t := target{url: u, userAgent: userAgent}
	v, err := p.decide(ctx, time.Now(), t, f)
	if err != nil {
		return Decision{}, err
	}
	p.restrict(time.Now(), &v, exempt{})
	return v.decision(u), nil
}

// own returns the context, the user agent and the fetcher of the plugin's own requests. The context
// also has the values of the collector's context, which a transport may need.
func (p *Plugin) own(ctx context.Context) (_ context.Context, userAgent string, f fetcher) {
	if h := p.first(); h != nil {
		return policy.WithValues(ctx, h.c.Context), h.c.UserAgent, fetcher{limiter: p.limiter, client: h}
	}
	userAgent = p.policies.lastUserAgent()
	if userAgent == "" {
		userAgent = defaultUserAgent
	}
	return ctx, userAgent, fetcher{limiter: p.limiter, client: seamClient{}}
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
func (p *Plugin) Listen(f func(Event)) (stop func()) {
	if p == nil || p.core == nil || f == nil {
		return func() {}
	}
	return p.report.events.Listen(f)
}

// Close ends the plugin. Requests that wait end at once, and so does the reading of robots.txt
// files and sitemaps. All further requests of attached collectors are denied with ErrClosed. Close
// does not end requests that are already on the wire. Call it after the crawl, because it writes
// the robots.txt files to the Store. It does not close the Store. A second call of Close has no
// effect.
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
	now := time.Now()
	p.ended.CompareAndSwap(nil, &now) // before closed, so that a closed plugin has the time
	p.closed.Store(true)
	p.policies.stop() // before the hosts are closed: otherwise a fetch whose wait ends would count as failed
	p.limiter.hosts.Close(ErrClosed)
	p.limiter.groupings.close()
	p.frontier.close()
	p.policies.close()
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
			h.handle.Release(p.controller, p.requests.Empty)
		}
	}
	p.hooks = nil
	p.owner = nil
	return nil
}
