package collyrobots

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
)

// A judge decides about URLs. It alone knows of a dry run: to everybody else nothing is disallowed
// then.
type judge struct {
	settings *settings
	dryRun   bool
	shard    shard
	limiter  *limiter
	policies *policies
	report   *report
	decided  decisions
}

// A verdict is what the plugin makes of a URL.
type verdict struct {
	host       *pace.Host
	hostHeader string // the user's; "": it has the URL's host
	userAgent  string
	settings   *hostSettings
	policy     *policy.Policy
	reader     *reader     // whose policy it is; nil: nobody's, robots.txt is not asked for
	source     pace.Source // of the crawl delay of policy, if there is a reader
	rule       dialect.Decision
	reason     Reason
}

// decide finds the policy that governs u at now and applies it. The error is the context's,
// ErrClosed, a *ShardError or *PaceError, or says that u has no valid host.
func (j *judge) decide(ctx context.Context, now time.Time, u *url.URL, userAgent string, f fetcher) (verdict, error) {
	return j.decideAs(ctx, now, u, "", userAgent, f)
}

// decideAs is decide for a request with a Host header of the user's; "": it has none. The site that
// it names governs the request, and u's host is asked: it has the pace.
func (j *judge) decideAs(ctx context.Context, now time.Time, u *url.URL, hostHeader, userAgent string, f fetcher) (verdict, error) {
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return verdict{}, err
	}
	if err := j.shard.owns(a.Host, u); err != nil {
		return verdict{}, err
	}
	v := verdict{host: j.limiter.hosts.At(now, a.Host), hostHeader: hostHeader, userAgent: userAgent}
	a.Host = v.host.Name() // a.Host may be a part of a page's URL, which nothing is to keep
	site := a.Host
	if hostHeader != "" {
		if a, err = policy.VirtualHost(a, hostHeader); err != nil {
			return verdict{}, err
		}
		site, _, _ = strings.Cut(a.Host, "@")
	}
	v.settings = j.settings.of(site)
	if v.settings.ignoreRobots {
		v.policy = &policy.Policy{Authority: a, RobotsStatus: policy.NoRobots}
		v.reason, v.rule = ReasonIgnored, dialect.Decision{Allowed: true}
		return v, nil
	}
	if v.policy, v.reader, err = j.policies.get(ctx, now, v.settings, a, v.host, userAgent, f); err != nil {
		return verdict{}, err
	}
	v.source = j.limiter.setCrawlDelay(now, v.host, v.settings, v.reader.name, v.policy)
	if v.settings.skips(v.policy.CrawlDelay()) {
		v.reason = ReasonDelay
	} else {
		v.reason, v.rule = read(v.policy, u)
	}
	return v, nil
}

// obeyedBy notes that the request of t obeys the crawl delay that v has found.
func (v verdict) obeyedBy(t *pace.Ticket) {
	if v.reader != nil {
		v.host.Obey(t, v.source)
	}
}

// read applies a policy to a URL of its authority.
func read(pol *policy.Policy, u *url.URL) (Reason, dialect.Decision) {
	switch pol.RobotsStatus {
	case policy.NoRobots:
		return ReasonNoRobots, dialect.Decision{Allowed: true}
	case policy.Unreachable:
		return ReasonUnreachable, dialect.Decision{}
	case policy.SiteDown:
		return ReasonSiteDown, dialect.Decision{}
	}
	d := pol.Group().DecideURL(u)
	if d.Allowed && d.Rule.Line == 0 {
		return ReasonNoRule, d
	}
	return ReasonRule, d // temoto cannot name the rule that denies
}

// refuse returns nil if u may be fetched, and a *DisallowedError that says why not otherwise. The
// caller passes the error to countDenied when it is certain that the request is not sent. In a dry
// run refuse counts the denial itself, calls tell with the error and returns nil. of is the trace of
// the request; nil for the plugin's own requests.
func (j *judge) refuse(v verdict, u *url.URL, of *trace, tell func(error)) error {
	if v.rule.Allowed {
		j.decided.add(v.reason)
		return nil
	}
	err := &DisallowedError{Decision: v.decision(u)}
	if j.dryRun {
		j.countDenied(v.host, err, of)
		tell(err)
		return nil
	}
	return err
}

// isSilence reports whether err denies a request because its host does not respond, so that its
// robots.txt is not known and none of its pages can be fetched.
func isSilence(err error) bool {
	denied := (*DisallowedError)(nil)
	noResponse := (*policy.NoResponseError)(nil)
	return errors.As(err, &denied) && denied.Decision.unread() && errors.As(denied.Decision.Err, &noResponse)
}

// countDenied counts a request that robots.txt denies and tells listeners of it.
func (j *judge) countDenied(host *pace.Host, err *DisallowedError, of *trace) {
	j.decided.add(err.Decision.Reason)
	host.Count(0, 1)
	if !isSilence(err) {
		err.first = host.First(toldDenial)
	}
	if j.report.events.Active() {
		e, d := of.denied(host.Name(), err.Decision.URL), err.Decision
		e.Decision = &d
		j.report.events.Send(e)
	}
}

// tellKept tells listeners of a request for u that was not sent because of where it would have
// gone, or of how long it would have waited.
func (j *judge) tellKept(u *url.URL, err error, of *trace) {
	if j.report.events.Active() {
		e := of.denied(hostOf(u), u.Redacted())
		e.Err = redact.Error(err)
		j.report.events.Send(e)
	}
}

// decision tells all there is to tell.
func (v verdict) decision(u *url.URL) Decision {
	host := v.host.Stats(time.Now())
	return Decision{
		URL: u.Redacted(), Authority: v.policy.Authority.String(), RobotsURL: v.policy.RobotsURL(),
		Allowed: v.rule.Allowed, Reason: v.reason,
		Dialect: v.settings.dialect, Group: v.policy.Group().Name(), Rule: v.rule.Rule,
		Status: v.policy.Status(), Err: v.policy.Err(), Fetched: v.policy.Fetched(), Expires: v.policy.Expires(),
		CrawlDelay: v.policy.CrawlDelay(), Delay: host.Delay, BackOff: host.BackOff, NotBefore: host.NotBefore,
	}
}

// hostHeaderOf returns the Host header of a request for u, where it is the user's, else "". host is
// what is sent; it is the user's only if it is among the headers too, and may else be what a
// callback has left when it rewrote u.
func hostHeaderOf(host string, u *url.URL, header http.Header) string {
	if host == u.Host || host == "" {
		return ""
	}
	if set := header["Host"]; len(set) == 0 || set[0] != host {
		return ""
	}
	return host
}

// userAgentOf returns the name that a request with these headers is sent under.
func userAgentOf(header http.Header) string {
	if values := header["User-Agent"]; len(values) > 0 {
		return values[0]
	}
	return ""
}
