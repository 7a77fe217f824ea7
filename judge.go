package collyrobots

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/budget"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// A judge decides about URLs. In a dry run, enforce returns a denial apart from its error, so that the
// request goes on.
type judge struct {
	settings *settings
	dryRun   bool
	shard    shard
	limiter  *limiter
	policies *policies
	report   *reporter
	decided  *decisions
	tdm      tdmFiles
	uses     uses
	stops    stop.Hosts    // the hosts that refuse requests
	sent     *budget.Pages // the pages that count for MaxPages
}

// newJudge returns the judge of a new plugin, with its limiter and its policies.
func newJudge(config *config, r *reporter) *judge {
	limiter := newLimiter(&config.settings, config.client, config.privateNetworks, r)
	limiter.signatures = newSignatures(config, r)
	policies := newPolicies(&config.settings, config.shadows, config.store, limiter, r)
	if config.pacer != nil {
		limiter.share(&sharedPace{pacer: config.pacer, report: r})
	}
	return &judge{
		settings: &config.settings,
		dryRun:   config.dryRun,
		shard:    config.shard,
		limiter:  limiter,
		policies: policies,
		report:   r,
		decided:  newDecisions(),
		sent:     budget.New(),
	}
}

// A verdict is the decision about a URL, with the settings and the policy that have led to it.
type verdict struct {
	host       *pace.Host
	settings   *hostSettings
	policy     *policy.Policy
	reader     *reader     // of policy; nil if robots.txt is ignored
	source     pace.Source // of the crawl delay of policy; zero if there is none
	rule       dialect.Decision
	reason     report.Reason
	tdm        *usage.TDMFile // nil if the site has none, or if it is not used
	waited     bool           // the decision has waited for the TDMRep file
	linkedFrom string         // Decision.LinkedFrom
	stopped    *stop.Status   // nil unless reason is report.ReasonRefused
}

// decide finds the policy that applies to t at now, and applies it. If t has a Host header, the
// policy is that of the site that the header names, and the host is that of the URL, because it
// gets the request. The error is the context's, ErrClosed, a *ShardError or *PaceError, or says
// that the URL has no valid host.
func (j *judge) decide(ctx context.Context, now time.Time, t target, f fetcher) (verdict, error) {
	var v verdict
	a, err := j.begin(&v, now, t, f)
	if err != nil || v.policy != nil {
		v.denyLink(t.linkedFrom)
		return v, err
	}
	v.policy = v.reader.known(ctx, now, a, v.host)
	if v.policy == nil && t.linkedFrom != "" && !j.dryRun {
		return nofollowVerdict(v.host, v.settings, a, t.linkedFrom), nil // without a request for robots.txt
	}
	if v.policy == nil {
		v.policy, err = j.policies.get(ctx, &v, a, t.userAgent, f)
		if err != nil {
			return verdict{}, err
		}
	}
	v.source = j.limiter.setCrawlDelay(now, v.host, v.settings, v.reader.name, v.policy)
	if v.settings.skips(v.policy.CrawlDelay()) {
		v.reason = report.ReasonDelay
	} else {
		v.reason, v.rule = apply(v.policy, t.url)
	}
	if (v.settings.purpose != 0 || v.settings.tdmRep) && v.rule.Allowed && !t.isFile {
		err = j.considerUsage(ctx, &v, t, f)
	}
	v.denyLink(t.linkedFrom)
	return v, err
}

// denyLink denies a URL if from is not empty. from is the page with a link to the URL that must not
// be followed. A URL that is already denied keeps its Reason.
func (v *verdict) denyLink(from string) {
	if !v.rule.Allowed || from == "" {
		return
	}
	v.deny(report.ReasonNofollow)
	v.linkedFrom = from
}

// nofollowVerdict returns the verdict on a link that must not be followed, to an authority whose
// robots.txt is not known. from is the page with the link.
func nofollowVerdict(host *pace.Host, s *hostSettings, a dialect.Authority, from string) verdict {
	return verdict{
		host:       host,
		settings:   s,
		policy:     &policy.Policy{Authority: a, RobotsStatus: policy.NoRobots},
		reason:     report.ReasonNofollow,
		linkedFrom: from,
	}
}

// recall is like decide, but uses only files that are known. It returns an error if robots.txt is
// not known.
func (j *judge) recall(t target, f fetcher) (verdict, error) {
	var v verdict
	a, err := j.begin(&v, time.Now(), t, f)
	if err != nil || v.policy != nil {
		return v, err
	}
	v.policy = v.reader.cache.Last(context.Background(), a)
	if v.policy == nil {
		return verdict{}, errNotKnown
	}
	v.reason, v.rule = apply(v.policy, t.url)
	v.tdm = j.tdm.last(a)
	return v, nil
}

// isKnown reports whether decide needs no request for robots.txt to decide about q.
func (j *judge) isKnown(ctx context.Context, q *request) bool {
	var v verdict
	a, err := j.begin(&v, q.now, q.target, q.fetcher())
	if err != nil || v.policy != nil {
		return true
	}
	return v.reader.known(ctx, q.now, a, v.host) != nil
}

// errNotKnown is the error of recall for a site whose robots.txt is not known.
var errNotKnown = errors.New("robots.txt is not known")

// begin sets the fields of v, the verdict on t, that do not depend on its policy. It returns the
// authority of that policy. If robots.txt is ignored, v is complete and has a policy. v is
// undefined if there is an error.
func (j *judge) begin(v *verdict, now time.Time, t target, f fetcher) (dialect.Authority, error) {
	a, err := dialect.AuthorityOf(t.url)
	if err != nil {
		return a, err
	}
	if err := j.shard.owns(a.Host, t.url); err != nil {
		return a, err
	}
	v.host = j.limiter.hosts.At(now, a.Host)
	a.Host = v.host.Name() // a.Host may be a part of the page's URL, which must not be retained
	site := a.Host
	if t.hostHeader != "" {
		a, err = policy.VirtualHost(a, t.hostHeader)
		if err != nil {
			return a, err
		}
		site, _, _ = strings.Cut(a.Host, "@")
	}
	v.settings = j.settings.of(site)
	if v.settings.ignoreRobots {
		v.policy = &policy.Policy{Authority: a, RobotsStatus: policy.NoRobots}
		v.reason = report.ReasonIgnored
		v.rule = dialect.Decision{Allowed: true}
		return a, nil
	}
	v.reader, err = j.policies.reader(v.settings, f.nameFor(v.settings, t.userAgent))
	return a, err
}

// cleaned returns the URL that identifies a page: u without the query parameters that do not change
// the page. It is u itself if there are none.
func (j *judge) cleaned(u *url.URL) *url.URL {
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return u
	}
	return j.policies.cleaned(j.settings.of(a.Host), a, u)
}

// obeyedBy records that the request of t obeys the crawl delay of v.
func (v *verdict) obeyedBy(t *pace.Ticket) {
	if v.reader != nil {
		v.host.Obey(t, v.source)
	}
}

// apply applies the rules of a policy to a URL of its authority.
func apply(pol *policy.Policy, u *url.URL) (report.Reason, dialect.Decision) {
	switch pol.RobotsStatus {
	case policy.NoRobots:
		return report.ReasonNoRobots, dialect.Decision{Allowed: true}
	case policy.Unreachable:
		return report.ReasonUnreachable, dialect.Decision{}
	case policy.SiteDown:
		return report.ReasonSiteDown, dialect.Decision{}
	}
	d := pol.Group().DecideURL(u)
	if d.Allowed && d.Rule.Line == 0 {
		return report.ReasonNoRule, d
	}
	return report.ReasonRule, d // temoto cannot name the rule that denies
}

// enforce returns no errors if v allows u. Otherwise err is a *DisallowedError that says why not.
// The caller must pass err to countDenied when it is certain that the request is not sent. In a dry
// run err is nil, and dry is the *DisallowedError, which enforce has already counted.
func (j *judge) enforce(v *verdict, u *url.URL, of numbers) (dry, err error) {
	if v.rule.Allowed {
		j.decided.add(v.reason)
		return nil, nil
	}
	denied := &DisallowedError{Decision: v.decision(u)}
	if j.dryRun {
		j.countDenied(v.host, denied, of)
		return denied, nil
	}
	return nil, denied
}

// countDenied counts a request that is denied, and sends the event.
func (j *judge) countDenied(host *pace.Host, err *DisallowedError, of numbers) {
	j.decided.add(err.Decision.Reason)
	host.Count(0, 1)
	if !isSilence(err) {
		err.first = host.Mark(loggedDenial)
	}
	if !j.dryRun {
		markDenied(host, err.Decision.Reason)
	}
	j.report.tellDenied(host, err.Decision, of)
}

// decision returns v, the verdict on u, as a Decision.
func (v *verdict) decision(u *url.URL) Decision {
	host := v.host.Stats(time.Now())
	d := Decision{
		URL:        u.Redacted(),
		Authority:  v.policy.Authority.String(),
		RobotsURL:  v.policy.RobotsURL(),
		Allowed:    v.rule.Allowed,
		Reason:     v.reason,
		LinkedFrom: v.linkedFrom,
		Dialect:    v.settings.dialect,
		Option:     v.settings.override(v.policy),
		Token:      v.reader.token(),
		Hash:       v.policy.Sum(),
		Group:      v.policy.Group().Name(),
		Rule:       v.rule.Rule,
		Status:     v.policy.Status(),
		Err:        v.policy.Err(),
		Fetched:    v.policy.Fetched(),
		Expires:    v.policy.Expires(),
		CrawlDelay: v.policy.CrawlDelay(),
		Delay:      host.Delay,
		BackOff:    host.BackOff,
		NotBefore:  host.NotBefore,
		Opens:      host.Opens,
		Usage:      v.preferences(u),
	}
	if d.Option == policy.OptionRobotsTxt {
		d.Fetched = time.Time{}
		d.Expires = time.Time{}
	}
	switch v.reason {
	case report.ReasonRefused:
		d.Refusals = v.stopped.InRow
		d.NextTry = v.stopped.Until
	case report.ReasonBudget:
		d.MaxPages = v.settings.maxPages
	}
	return d
}
