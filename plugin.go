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
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// A Plugin holds what one crawl knows of robots.txt files and of when each host was asked last. It serves any number of
// collectors, which then share policies and pace. All methods may be called from any goroutine. Get one from New or WithRobots.
type Plugin struct {
	config  config
	guard   *backend.Guard
	readers readers
	pace    pace
	feeder  *feeder // nil: sitemaps are not followed

	mu       sync.Mutex
	attached map[weak.Pointer[colly.Collector]]struct{}
	first    *link    // the first collector: whose client and user agent Check uses
	warned   sync.Map // what the self-check has said, by message
}

// ErrClosed is why a request was denied after Close.
var ErrClosed = errors.New("collyrobots: the plugin is closed")

// New makes a Plugin. The error joins an *OptionError for every fault of the options.
func New(opts ...Option) (*Plugin, error) {
	config, err := configure(opts)
	if err != nil {
		return nil, err
	}
	p := &Plugin{config: config, attached: make(map[weak.Pointer[colly.Collector]]struct{})}
	p.guard = backend.NewGuard(wire{p})
	p.readers.config, p.readers.changed = &p.config, p.changed
	p.pace = newPace(func(host string) *pacing { return &p.config.regimeOf(host).pacing })
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
	p.guard.Watch(handle.Client()) // a clone that is not attached may come first
	c.OnRequest(l.onRequest)
	l.callbacks, _ = backend.Callbacks(c, backend.OnRequest)
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
func (p *Plugin) Close() error { return p.readers.close() }

// A link joins a Plugin to one collector: the hooks of a request, in the order in which it meets them.
type link struct {
	plugin    *Plugin
	c         *colly.Collector    // nil: the link of a plugin that is not attached
	client    func() *http.Client // the one that the collector sends with now
	do        policy.Doer         // fetches robots.txt with it
	callbacks int                 // OnRequest callbacks of c when it was attached, ours included
	checked   sync.Once           // the self-check, at the first request
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
	l.checked.Do(l.selfCheck)
	p.guard.Watch(l.client())
	userAgent := r.Headers.Get("User-Agent")
	v, err := p.judge(l.c.Context, r.URL, userAgent, l.do)
	if err == nil {
		p.checkAgent(userAgent)
		p.feeder.offer(v.policy)
		p.readers.compare(l.c.Context, v, r.URL, userAgent, l.do)
		if err = v.refusal(r.URL); err != nil && p.config.dryRun {
			l.report(r, err)
			err = nil
		}
	}
	if err == nil {
		err = l.enter(r, v)
	}
	if err != nil {
		l.refuse(r, err)
		l.finish(r) // Colly calls no further hook for an aborted request
		return
	}
	p.feeder.admitted(r)
}

// enter waits for the page's turn. If robots.txt has changed meanwhile, the page is judged by what it says now.
func (l *link) enter(r *colly.Request, v verdict) error {
	if err := v.host.enter(l.c.Context, r); err != nil || time.Now().Before(v.policy.Expires) || l.plugin.config.dryRun {
		return err
	}
	v, err := l.plugin.judge(l.c.Context, r.URL, r.Headers.Get("User-Agent"), l.do)
	if err != nil {
		return err
	}
	return v.refusal(r.URL)
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
	if err == nil && !p.config.dryRun {
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
	if !governed(r.Request.URL) {
		return
	}
	host := l.plugin.pace.of(r.Request.URL)
	host.count(func(s *HostStats) { s.Pages++ })
	if n, _ := backend.Callbacks(l.c, backend.OnResponseHeaders); n > 1 {
		host.ended(r.Request.URL) // another one may visit the host, and Colly reads the body after it
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
	l.plugin.note(r.URL, err)
	l.plugin.config.onDenied(r, err)
}

// note counts and logs what is not sent.
func (p *Plugin) note(u *url.URL, err error) {
	level := slog.LevelDebug
	if p.config.dryRun {
		level = slog.LevelInfo
	}
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
		if refused, err := url.Parse(denied.Decision.URL); err == nil {
			p.pace.of(refused).count(func(s *HostStats) { s.Denied++ })
		}
	}
	p.config.log.Log(context.Background(), level, "request denied", "url", u.String(), "reason", err, "sent", p.config.dryRun)
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

// userAgent is the collector's own, for requests that are not a page's.
func (l *link) userAgent() string {
	if l.c == nil {
		return "collyrobots (+https://github.com/collyrobots/collyrobots)"
	}
	return l.c.UserAgent
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
