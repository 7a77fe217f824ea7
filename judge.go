package collyrobots

import (
	"context"
	"errors"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

// governed tells whether robots.txt has a say about u.
func governed(u *url.URL) bool { return u.Scheme == "http" || u.Scheme == "https" }

// A verdict is what the plugin makes of a URL.
type verdict struct {
	host   *turnstile
	regime *regime
	policy *policy.Policy
	rule   dialect.Decision
	reason Reason
}

// judge resolves the policy that governs u and applies it. The error is the context's, or ErrClosed.
func (p *Plugin) judge(ctx context.Context, u *url.URL, userAgent string, do policy.Doer) (verdict, error) {
	now := time.Now()
	v := verdict{host: p.pace.at(now, u)}
	v.regime = p.config.regimeOf(v.host.stats.Host)
	if err := p.bench.resolve(ctx, &v, u, userAgent, do); err != nil {
		return verdict{}, err
	}
	w, skip := v.regime.wish(v.policy.CrawlDelay)
	if skip {
		v.reason = ReasonDelay
	}
	if v.host.heed(now, u.Scheme, w) && w.kept < w.written {
		p.config.log.Warn("crawl delay is over MaxDelay", "robots", v.policy.RobotsURL, "asked", w.written, "max", w.kept, "skipped", skip)
	}
	if v.reason == "" {
		v.reason, v.rule = read(v.policy, u)
	}
	return v, nil
}

// read applies a policy to a URL of its authority.
func read(pol *policy.Policy, u *url.URL) (Reason, dialect.Decision) {
	switch pol.Meaning {
	case policy.NoRestriction:
		return ReasonNoRobots, dialect.Decision{Allowed: true}
	case policy.Unreachable:
		return ReasonUnreachable, dialect.Decision{}
	case policy.SiteDown:
		return ReasonSiteDown, dialect.Decision{}
	}
	d := pol.Group.DecideURL(u)
	if d.Allowed && d.Rule.Line == 0 {
		return ReasonNoRule, d
	}
	return ReasonRule, d // temoto cannot name the rule that denies
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
		Dialect: v.regime.dialect.String(), Group: v.policy.Group.Name(), Rule: v.rule.Rule,
		Status: v.policy.Status, Err: v.policy.Err, Fetched: v.policy.Fetched, Expires: v.policy.Expires,
		CrawlDelay: v.policy.CrawlDelay, Delay: host.Delay, BackOff: host.BackOff, NotBefore: host.NotBefore,
	}
}

// A bench is the readers of robots.txt: one for each regime, and one for each shadow. All read through one store, so that each
// file is fetched once. They are made when the first user agent is seen, which may be the crawler's only name.
type bench struct {
	config  *config
	changed func(r *regime, old, new *policy.Policy)

	mu      sync.Mutex
	agent   string                    // the first user agent
	readers map[*regime]*policy.Cache // nil until it is known
	shadows []*shadow
	own     store.Store // what the readers share where the options name no store; else nil
	closed  bool
}

// resolve sets the policy that governs u.
func (b *bench) resolve(ctx context.Context, v *verdict, u *url.URL, userAgent string, do policy.Doer) error {
	if v.regime.ignoreRobots {
		v.reason, v.rule = ReasonIgnored, dialect.Decision{Allowed: true}
		v.policy = unasked(u)
		return nil
	}
	reader, err := b.reader(v.regime, userAgent)
	if err == nil {
		v.policy, err = reader.Get(ctx, u, userAgent, do)
	}
	if errors.Is(err, policy.ErrClosed) {
		err = ErrClosed
	}
	return err
}

// unasked is the policy of an authority whose robots.txt nobody asks for.
func unasked(u *url.URL) *policy.Policy {
	p := &policy.Policy{Meaning: policy.NoRestriction, Group: nobody}
	if robots, err := dialect.Locate(u); err == nil {
		p.RobotsURL, p.Authority = robots.String(), robots.Scheme+"://"+robots.Host
	}
	return p
}

var nobody = dialect.RFC9309().Parse(nil).Group()

// reader returns the reader of a regime.
func (b *bench) reader(r *regime, userAgent string) (*policy.Cache, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	if b.readers == nil {
		b.open(userAgent)
	}
	return b.readers[r], nil
}

// firstAgent returns the user agent that the readers were made for.
func (b *bench) firstAgent() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.agent
}

// open makes the readers. b.mu is held.
func (b *bench) open(userAgent string) {
	b.agent = userAgent
	records := b.config.store
	if records == nil && len(b.config.shadows) > 0 {
		b.own = store.Memory()
		records = b.own
	}
	read := func(r *regime, changed func(old, new *policy.Policy)) *policy.Cache {
		return policy.New(policy.Options{
			Dialect: r.dialect, Tokens: r.productTokens(userAgent), HonorCrawlDelay: r.honorCrawlDelay,
			Store: records, Log: b.config.log, Changed: changed,
		})
	}
	b.readers = make(map[*regime]*policy.Cache)
	for _, r := range b.config.regimes() {
		b.readers[r] = read(r, func(old, new *policy.Policy) { b.changed(r, old, new) })
	}
	for _, d := range b.config.shadows {
		r := b.config.regime
		r.dialect = d
		b.shadows = append(b.shadows, &shadow{stats: ShadowStats{Dialect: d}, reader: read(&r, nil)})
	}
}

// answered notes that a page of u's authority was answered.
func (b *bench) answered(u *url.URL) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, reader := range b.readers {
		reader.Answered(u)
	}
}

// close ends the readers. It waits for their callbacks, which may ask for a policy once more, so it holds no lock meanwhile.
func (b *bench) close() error {
	b.mu.Lock()
	b.closed = true
	readers, shadows, own := b.readers, b.shadows, b.own
	b.mu.Unlock()
	var faults []error
	for _, reader := range readers {
		faults = append(faults, reader.Close())
	}
	for _, s := range shadows {
		faults = append(faults, s.reader.Close())
	}
	if own != nil {
		faults = append(faults, own.Close())
	}
	return errors.Join(faults...)
}

// regimeOf returns what holds for a host.
func (c *config) regimeOf(host string) *regime {
	for i := range c.perHost {
		if c.perHost[i].matches(host) {
			return &c.perHost[i].regime
		}
	}
	return &c.regime
}

// regimes returns all of them.
func (c *config) regimes() []*regime {
	all := []*regime{&c.regime}
	for i := range c.perHost {
		all = append(all, &c.perHost[i].regime)
	}
	return all
}

// wish returns how a crawl delay is kept, and whether its host is to be skipped instead.
func (r *regime) wish(crawlDelay time.Duration) (w wish, skip bool) {
	if r.maxDelay == 0 || crawlDelay <= r.maxDelay {
		return wish{crawlDelay, crawlDelay}, false
	}
	return wish{crawlDelay, r.maxDelay}, r.over == Skip
}

// matches tells whether a host, or the name before its port, fits the pattern.
func (h *hostRule) matches(host string) bool {
	name := host
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name = host[:i]
	}
	for _, s := range [...]string{host, name} {
		if ok, _ := path.Match(h.pattern, s); ok {
			return true
		}
	}
	return false
}
