package collyrobots

import (
	"context"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
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
	if err := p.readers.resolve(ctx, &v, u, userAgent, do); err != nil {
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
