// Package collyrobots makes Colly collectors obey robots.txt as a named crawler would read it, keeps each host's crawl delay on the wire, and
// crawls what the site's sitemaps list.
//
//	c := collyrobots.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
//	robots, err := c.WithRobots(collyrobots.Dialect(dialect.CocCoc()))
//
// An existing spider keeps its *colly.Collector and calls collyrobots.WithRobots(c, ...).
//
// Of every request, redirect hops included, the plugin resolves the policy of its authority (one fetch of robots.txt however many
// wait, kept for a day or as the dialect says), refuses what is disallowed, and lets the rest through no faster than the
// host's delay. What is promised is what the server sees.
package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// A Plugin holds what one crawl knows of robots.txt files and of when each host was asked last. It serves any number of
// collectors, which then share policies and pace. All methods may be called from any goroutine. Get one from New or WithRobots.
type Plugin struct {
	config config
	guard  *backend.Guard
	pace   pace
	feeder *feeder // nil: sitemaps are not followed

	mu       sync.Mutex
	attached map[weak.Pointer[colly.Collector]]struct{}
	first    *link         // the first collector: whose client and user agent Check uses
	policies *policy.Cache // nil until the product token is known
	closed   bool
}

// ErrClosed is why a request was denied after Close.
var ErrClosed = errors.New("collyrobots: the plugin is closed")

// New makes a Plugin. The error joins an *OptionError for every fault of the options.
func New(opts ...Option) (*Plugin, error) {
	config, err := configure(opts)
	if err != nil {
		return nil, err
	}
	p := &Plugin{
		config:   config,
		attached: make(map[weak.Pointer[colly.Collector]]struct{}),
		pace:     newPace(config.pacing),
	}
	p.guard = backend.NewGuard(wire{p})
	if config.feed != nil {
		p.feeder = newFeeder(p, *config.feed)
	}
	return p, nil
}

// WithRobots makes an existing collector obey robots.txt: New and Attach in one.
func WithRobots(c *colly.Collector, opts ...Option) (*Plugin, error) {
	p, err := New(opts...)
	if err != nil {
		return nil, err
	}
	if err := p.Attach(c); err != nil {
		return nil, err
	}
	return p, nil
}

// Attach makes c obey robots.txt. Call it before the first Visit, after the OnRequest callbacks that may abort requests or change
// them; later ones work too, but a request that they abort costs its host one delay. It turns Colly's built-in check off.
// A second Attach of the same collector does nothing. A clone made by Colly's own Clone has no callbacks and must be attached
// itself. The error says that c is nil or not a collector of the Colly this was written for.
func (p *Plugin) Attach(c *colly.Collector) error {
	handle, err := backend.Open(c)
	if err != nil {
		return fmt.Errorf("collyrobots: Attach: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := weak.Make(c)
	if _, ok := p.attached[key]; ok {
		return nil
	}
	p.attached[key] = struct{}{}
	l := newLink(p, c, handle.Client)
	if p.first == nil {
		p.first = l
	}
	c.IgnoreRobotsTxt = true
	c.OnRequest(l.onRequest)
	c.OnRequestHeaders(l.onRequestHeaders)
	c.OnResponseHeaders(l.onResponseHeaders)
	c.OnError(l.onError)
	c.OnScraped(l.onScraped)
	return nil
}

// Check says what the plugin would do with a GET of rawURL, reading robots.txt if that is not known yet. It uses the first
// attached collector's client and user agent, and waits for nothing but the fetch. Errors: rawURL is no http or https URL, ctx
// ended, or ErrClosed. A robots.txt that cannot be read is a Decision, not an error.
func (p *Plugin) Check(ctx context.Context, rawURL string) (Decision, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return Decision{}, fmt.Errorf("collyrobots: Check: %w", err)
	}
	if !governed(u) {
		return Decision{}, fmt.Errorf("collyrobots: Check: %q is not an http or https URL", rawURL)
	}
	l := p.anyLink()
	v, err := p.judge(ctx, u, l.userAgent(), l.do)
	if err != nil {
		return Decision{}, err
	}
	return v.decision(u), nil
}

// Close ends the plugin: requests of attached collectors are denied with ErrClosed from now on. Call it after the crawl, since what
// was learnt goes to the Store before it returns. The Store stays open.
func (p *Plugin) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.policies == nil {
		return nil
	}
	return p.policies.Close()
}

// A link joins a Plugin to one collector: the hooks of a request, in the order in which it meets them.
type link struct {
	plugin *Plugin
	c      *colly.Collector    // nil: the link of a plugin that is not attached
	client func() *http.Client // the one that the collector sends with now
	do     policy.Doer         // fetches robots.txt with it
}

func newLink(p *Plugin, c *colly.Collector, client func() *http.Client) *link {
	l := &link{plugin: p, c: c, client: client}
	l.do = func(req *http.Request) (*http.Response, error) { return p.exchange(l.client(), req, 0) }
	return l
}

// onRequest is the first stage. Nothing is held yet, so this is where a page waits.
func (l *link) onRequest(r *colly.Request) {
	p := l.plugin
	p.feeder.claim(r)
	if r.IsAbort() {
		p.feeder.release(r)
		return
	}
	if !governed(r.URL) {
		return
	}
	p.guard.Watch(l.client())
	v, err := p.judge(l.c.Context, r.URL, r.Headers.Get("User-Agent"), l.do)
	if err == nil {
		p.feeder.offer(v.policy)
		err = v.refusal(r.URL)
	}
	if err == nil {
		err = v.host.enter(l.c.Context, r)
	}
	if err != nil {
		l.refuse(r, err)
		l.finish(r) // Colly calls no further hook for an aborted request
		return
	}
	p.feeder.admitted(r)
}

// onRequestHeaders is the second stage: the last moment before the wire, with a LimitRule slot in hand. It looks again,
// since a later OnRequest callback may have changed URL or user agent, and robots.txt may have changed while the page waited.
func (l *link) onRequestHeaders(r *colly.Request) {
	if r.IsAbort() || !governed(r.URL) {
		return // aborted: OnError follows
	}
	p := l.plugin
	p.feeder.sent(r)
	p.guard.Watch(l.client())
	v, err := p.judge(l.c.Context, r.URL, r.Headers.Get("User-Agent"), l.do)
	if err == nil {
		err = v.refusal(r.URL)
	}
	if err == nil {
		err = v.host.send(l.c.Context, r, r.URL)
	}
	if err != nil {
		l.refuse(r, err)
	}
}

func (l *link) onResponseHeaders(r *colly.Response) {
	if governed(r.Request.URL) {
		l.plugin.pace.of(r.Request.URL).count(func(s *HostStats) { s.Pages++ })
	}
}

func (l *link) onError(r *colly.Response, err error) {
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) || errors.Is(err, ErrHopWait) {
		l.report(r.Request, err)
	}
	l.finish(r.Request)
}

func (l *link) onScraped(r *colly.Response) { l.finish(r.Request) }

// refuse aborts a request that may not be sent, and says why.
func (l *link) refuse(r *colly.Request, err error) {
	r.Abort()
	l.report(r, err)
}

// report tells the user and the log of a request that was not sent.
func (l *link) report(r *colly.Request, err error) {
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
		if u, err := url.Parse(denied.Decision.URL); err == nil {
			l.plugin.pace.of(u).count(func(s *HostStats) { s.Denied++ })
		}
	}
	l.plugin.config.log.Debug("request not sent", "url", r.URL.String(), "reason", err)
	l.plugin.config.onDenied(r, err)
}

// finish gives back what the request still holds, and uses its hook to feed sitemaps: c.Wait covers it.
func (l *link) finish(r *colly.Request) {
	if governed(r.URL) {
		host := l.plugin.pace.of(r.URL)
		host.release(r)
		host.ended(r.URL) // if it never got to the wire
	}
	l.plugin.feeder.release(r)
	l.plugin.feeder.run(l)
}

// hopPatience bounds how long a redirect hop waits for its host: it holds a LimitRule slot meanwhile.
const hopPatience = time.Minute

// ErrHopWait is why a redirect was not followed: its host could not be asked within a minute.
var ErrHopWait = errors.New("collyrobots: a redirect would wait too long for its host's crawl delay")

// A wire is the plugin at the collectors' transports, where redirect hops pass that no hook of Colly sees.
type wire struct{ *Plugin }

// Before judges and paces what has not been: redirect hops, what an OnRequestHeaders callback rewrote, and the requests of
// clones that are not attached.
func (p wire) Before(client *http.Client, req *http.Request) error {
	if !governed(req.URL) || req.Response == nil && p.pace.of(req.URL).launched(req.URL) {
		return nil
	}
	do := func(req *http.Request) (*http.Response, error) { return p.exchange(client, req, 0) }
	v, err := p.judge(req.Context(), req.URL, req.UserAgent(), do)
	if err != nil {
		return err
	}
	p.feeder.offer(v.policy)
	if err := v.refusal(req.URL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), hopPatience, ErrHopWait)
	defer cancel()
	return v.host.send(ctx, nil, req.URL)
}

// Answered lets the host slow the crawl down, and its authority count as one that answers.
func (p wire) Answered(req *http.Request, resp *http.Response) {
	if governed(req.URL) {
		p.answered(p.pace.of(req.URL), req.URL, resp)
		if policies, err := p.cache(""); err == nil {
			policies.Answered(req.URL)
		}
	}
}

// Ended gives the host its place on the wire back.
func (p wire) Ended(req *http.Request) {
	if governed(req.URL) {
		p.pace.of(req.URL).ended(req.URL)
	}
}

// userAgent is the collector's own, for requests that are not a page's.
func (l *link) userAgent() string {
	if l.c == nil {
		return "collyrobots (+https://github.com/collyrobots/collyrobots)"
	}
	return l.c.UserAgent
}

// cache returns the policies, read for the product token that the options name or else the first user agent.
func (p *Plugin) cache(userAgent string) (*policy.Cache, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.policies == nil {
		p.policies = policy.New(policy.Options{
			Dialect: p.config.dialect, Tokens: p.config.productTokens(userAgent),
			HonorCrawlDelay: p.config.honorCrawlDelay, Store: p.config.store, Log: p.config.log,
		})
	}
	return p.policies, nil
}

// anyLink returns the first collector's link, or one with a client of its own where there is none.
func (p *Plugin) anyLink() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first != nil {
		return p.first
	}
	return newLink(p, nil, func() *http.Client { return http.DefaultClient })
}

// governed tells whether robots.txt has a say about u.
func governed(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// A verdict is what the plugin makes of a URL.
type verdict struct {
	plugin *Plugin
	policy *policy.Policy
	rule   dialect.Decision
	reason Reason
	host   *turnstile
}

// judge resolves the policy that governs u and applies it. The error is the context's, or ErrClosed.
func (p *Plugin) judge(ctx context.Context, u *url.URL, userAgent string, do policy.Doer) (verdict, error) {
	policies, err := p.cache(userAgent)
	if err != nil {
		return verdict{}, err
	}
	pol, err := policies.Get(ctx, u, userAgent, do)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{plugin: p, policy: pol, host: p.pace.of(u)}
	crawlDelay := pol.CrawlDelay
	if p.config.maxDelay > 0 && crawlDelay > p.config.maxDelay {
		crawlDelay = p.config.maxDelay
		if p.config.over == Skip {
			v.reason = ReasonDelay
		}
	}
	if v.host.heed(u.Scheme, wish{pol.CrawlDelay, crawlDelay}) && crawlDelay < pol.CrawlDelay {
		p.config.log.Warn("crawl delay is over MaxDelay", "robots", pol.RobotsURL, "asked", pol.CrawlDelay, "max", p.config.maxDelay, "skipped", v.reason == ReasonDelay)
	}
	if v.reason == "" {
		v.reason, v.rule = p.read(pol, u)
	}
	return v, nil
}

// read applies a policy to a URL of its authority.
func (p *Plugin) read(pol *policy.Policy, u *url.URL) (Reason, dialect.Decision) {
	switch pol.Meaning {
	case policy.NoRestriction:
		return ReasonNoRobots, dialect.Decision{Allowed: true}
	case policy.Unreachable:
		return ReasonUnreachable, dialect.Decision{}
	case policy.SiteDown:
		return ReasonSiteDown, dialect.Decision{}
	}
	d := pol.Group.Decide(dialect.Target(u))
	if d.Rule.Line == 0 {
		return ReasonNoRule, d
	}
	return ReasonRule, d
}

// refusal returns nil if the URL may be fetched, else a *DisallowedError that says why not.
func (v verdict) refusal(u *url.URL) error {
	if v.rule.Allowed {
		return nil
	}
	return &DisallowedError{v.decision(u)}
}

// decision tells all there is to tell.
func (v verdict) decision(u *url.URL) Decision {
	host := v.host.statistics()
	return Decision{
		URL: u.String(), Authority: v.policy.Authority, RobotsURL: v.policy.RobotsURL,
		Allowed: v.rule.Allowed, Reason: v.reason,
		Dialect: v.plugin.config.dialect.String(), Group: v.policy.Group.Name(), Rule: v.rule.Rule,
		Status: v.policy.Status, Err: v.policy.Err, Fetched: v.policy.Fetched, Expires: v.policy.Expires,
		CrawlDelay: v.policy.CrawlDelay, Delay: host.Delay, BackOff: host.BackOff, NotBefore: host.NotBefore,
	}
}
