// Package judge decides about URLs. From the target of a request it finds the settings of the host,
// the robots.txt in force as the crawler reads it, and what the site says about the use of its
// content. Then it asks the rules and the limits of the plugin. Judge.Verdict does all of this.
package judge

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// A Judge decides about URLs, and counts the decisions.
type Judge struct {
	Settings *Settings
	DryRun   bool
	MaxPages int // of all hosts together; 0 if there is no limit
	Shard    Shard
	Wire     *exchange.Wire
	Delays   Delays
	Policies *Policies
	Report   *reporter.Reporter
	Uses     Uses
	Rules    []Rule
	Limits   []Limit

	decided *decisions
	tdm     tdmFiles
}

// New returns the judge of a new plugin, with the rules whose options are set for any host. The caller
// sets the fields DryRun, MaxPages, Shard and Limits.
func New(s *Settings, w *exchange.Wire, p *Policies) *Judge {
	j := &Judge{
		Settings: s,
		Wire:     w,
		Delays:   Delays{Wire: w},
		Policies: p,
		Rules:    rulesOf(s),
		Report:   w.Report,
		decided:  newDecisions(),
	}
	return j
}

// A Verdict is the decision about a URL, with the settings and the policy that have led to it.
type Verdict struct {
	Host     *pace.Host
	Settings *HostSettings
	Policy   *policy.Policy
	Reader   *Reader     // of policy; nil if robots.txt is ignored
	source   pace.Source // of the crawl delay of policy; zero if there is none
	Rule     dialect.Verdict
	Reason   report.Reason
	tdm      *usage.TDMFile // nil if the site has none, or if it is not used
	waited   bool           // the decision has waited for the TDMRep file
	At       time.Time      // when the rules and the limits have decided
	denial   *Denial        // of the rule or the limit that denies the URL; nil if none does
}

// An Applicant is the request that a verdict is about.
type Applicant interface {
	// Complete adds to c what only the request knows.
	Complete(c Candidate) Candidate
	// IsKnownFresh reports whether its page is fresh at now under these settings, so that it is not sent.
	IsKnownFresh(ctx context.Context, now time.Time, s *HostSettings) bool
}

// Verdict decides about t at now: the policy that applies decides first, then the rules of the plugin,
// and then the limits of the host. It fetches robots.txt if necessary. by is the request for t, or nil
// if there is none. Every decision about a URL is made here. Enforce counts it.
//
// If t has a Host header, the policy is that of the site that the header names, and the host is that
// of the URL, because it gets the request. The error is the context's, ErrClosed, a *ShardError or
// *PaceError, or says that the URL has no valid host.
func (j *Judge) Verdict(ctx context.Context, now time.Time, t Target, f exchange.Fetcher, by Applicant) (Verdict, error) {
	v := Verdict{At: now}
	err := j.decide(ctx, &v, t, f)
	if err != nil {
		return Verdict{}, err
	}
	if v.waited || v.Policy.Fetched().After(now) {
		v.At = time.Now() // a file was fetched just now, which took time
	}
	if !v.Rule.Allowed || len(j.Rules)+len(j.Limits) == 0 {
		return v, nil
	}
	c := CandidateOf(&v, &t)
	if by != nil {
		c = by.Complete(c)
	}
	d := denialBy(j.Rules, v.At, c)
	if d == nil && len(j.Limits) > 0 && (by == nil || !by.IsKnownFresh(ctx, v.At, v.Settings)) {
		d = j.LimitOf(v.At, c)
	}
	if d != nil {
		v.Deny(d)
	}
	return v, nil
}

// decide sets the fields of v, the verdict on t at v.At, by the policy that applies to t.
func (j *Judge) decide(ctx context.Context, v *Verdict, t Target, f exchange.Fetcher) error {
	a, err := j.prepare(v, v.At, t, f)
	if err != nil || v.Policy != nil {
		return err
	}
	v.Policy = v.Reader.Known(ctx, v.At, a, v.Host, f.Turn)
	if v.Policy == nil && t.LinkedFrom != "" && !j.DryRun {
		*v = NofollowVerdict(v.At, v.Host, v.Settings, a, t.LinkedFrom) // without a request for robots.txt
		return nil
	}
	if v.Policy == nil {
		v.Policy, err = j.Policies.get(ctx, v, a, t.UserAgent, f)
		if err != nil {
			return err
		}
	}
	v.source = j.Delays.setCrawlDelay(v.At, v.Host, v.Settings, v.Reader.Name, v.Policy)
	if v.Settings.Skips(v.Policy.CrawlDelay()) {
		v.Reason = report.ReasonDelay
	} else {
		v.Reason, v.Rule = apply(v.Policy, t.URL)
	}
	if (v.Settings.Purpose != 0 || v.Settings.TDMRep) && v.Rule.Allowed && !t.IsFile {
		return j.findTDM(ctx, v, t, f)
	}
	return nil
}

// NofollowVerdict returns the verdict on a link that must not be followed, to an authority whose
// robots.txt is not known. from is the page with the link.
func NofollowVerdict(now time.Time, host *pace.Host, s *HostSettings, a dialect.Authority, from string) Verdict {
	v := Verdict{
		At:       now,
		Host:     host,
		Settings: s,
		Policy:   &policy.Policy{Authority: a, RobotsStatus: policy.NoRobots},
	}
	v.Deny(linkDenied(from))
	return v
}

// Recall is like decide, but uses only files that are known. It returns an error if robots.txt is
// not known.
func (j *Judge) Recall(t Target, f exchange.Fetcher) (Verdict, error) {
	var v Verdict
	a, err := j.prepare(&v, time.Now(), t, f)
	if err != nil || v.Policy != nil {
		return v, err
	}
	v.Policy = v.Reader.cache.Last(context.Background(), a)
	if v.Policy == nil {
		return Verdict{}, errNotKnown
	}
	v.Reason, v.Rule = apply(v.Policy, t.URL)
	v.tdm = j.tdm.last(a)
	return v, nil
}

// IsKnown reports whether decide needs no request for robots.txt to decide about t at now. If shadows is
// true, their comparison must not need one either.
func (j *Judge) IsKnown(ctx context.Context, now time.Time, t Target, f exchange.Fetcher, shadows bool) bool {
	var v Verdict
	a, err := j.prepare(&v, now, t, f)
	if err != nil || v.Policy != nil {
		return true
	}
	if v.Reader.Known(ctx, now, a, v.Host, f.Turn) == nil {
		return false
	}
	isUnknown := func(c *policy.Cache) bool { return known(ctx, c, now, a, v.Host, f.Turn) == nil }
	return !shadows || !slices.ContainsFunc(v.Reader.shadows, isUnknown)
}

// errNotKnown is the error of recall for a site whose robots.txt is not known.
var errNotKnown = errors.New("robots.txt is not known")

// prepare sets the fields of v, the verdict on t, that do not depend on its policy. It returns the
// authority of that policy. If robots.txt is ignored, v is complete and has a policy. v is
// undefined if there is an error.
func (j *Judge) prepare(v *Verdict, now time.Time, t Target, f exchange.Fetcher) (dialect.Authority, error) {
	a, err := dialect.AuthorityOf(t.URL)
	if err != nil {
		return a, err
	}
	if err := j.Shard.Owns(a.Host, t.URL); err != nil {
		return a, err
	}
	v.Host = j.Wire.Hosts.At(now, a.Host)
	a.Host = v.Host.Name() // a.Host may be a part of the page's URL, which must not be retained
	site := a.Host
	if t.HostHeader != "" {
		a, err = policy.VirtualHost(a, t.HostHeader)
		if err != nil {
			return a, err
		}
		site, _, _ = strings.Cut(a.Host, "@")
	}
	v.Settings = j.Settings.Of(site)
	if v.Settings.Err != nil {
		return a, v.Settings.Err
	}
	if v.Settings.IgnoresRobots(now) {
		v.Policy = policy.IgnoredUntil(v.Settings.Permission.Until, a)
		v.Reason = report.ReasonIgnored
		v.Rule = dialect.Verdict{Allowed: true}
		return a, nil
	}
	v.Reader, err = j.Policies.Reader(v.Settings, v.Settings.nameFor(&f, t.UserAgent))
	return a, err
}

// Cleaned returns the URL that identifies a page: u without the query parameters that do not change
// the page. It is u itself if there are none.
func (j *Judge) Cleaned(u *url.URL) *url.URL {
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return u
	}
	return j.Policies.cleaned(j.Settings.Of(a.Host), a, u)
}

// ObeyedBy records that the request of t obeys the crawl delay of v.
func (v *Verdict) ObeyedBy(t *pace.Ticket) {
	if v.Reader != nil {
		v.Host.Obey(t, v.source)
	}
}

// apply applies the rules of a policy to a URL of its authority.
func apply(pol *policy.Policy, u *url.URL) (report.Reason, dialect.Verdict) {
	switch pol.RobotsStatus {
	case policy.NoRobots:
		return report.ReasonNoRobots, dialect.Verdict{Allowed: true}
	case policy.Unreachable:
		return report.ReasonUnreachable, dialect.Verdict{}
	case policy.SiteDown:
		return report.ReasonSiteDown, dialect.Verdict{}
	}
	d := pol.Group().DecideURL(u)
	if d.Allowed && d.Rule.Line == 0 {
		return report.ReasonNoRule, d
	}
	return report.ReasonRule, d // temoto cannot name the rule that denies
}

// Statistics returns the counts of the decisions by their reasons.
func (j *Judge) Statistics() map[report.Reason]int { return j.decided.counts() }

// A Denied is the error of a request that is denied.
type Denied struct {
	Decision report.Decision
	First    bool // it is the first notable one of its host
	Redirect bool // it denies the target of a redirect; the page itself was fetched
}

// Error returns the decision in one line.
func (d *Denied) Error() string { return "collyrobots: " + d.Decision.String() }

// Unwrap returns the reason why robots.txt could not be read, or nil.
func (d *Denied) Unwrap() error { return d.Decision.Err }

// Enforce counts v, the verdict on u, if v allows u, and returns no errors. Otherwise err is a *Denied.
// The caller must pass its decision to CountDenied when it is certain that the request is not sent. In a
// dry run err is nil, and dry is the *Denied, which Enforce has already counted. redirect says that the
// request follows a redirect.
func (j *Judge) Enforce(v *Verdict, u *url.URL, of reporter.IDs, redirect bool) (dry, err error) {
	if v.Rule.Allowed {
		j.decided.add(v.Reason)
		return nil, nil
	}
	d := &Denied{Decision: v.Decision(u), Redirect: redirect}
	if j.DryRun {
		d.First = j.CountDenied(v.Host, &d.Decision, of)
		return d, nil
	}
	return nil, d
}

// EnforceNow is like Enforce for a request of the plugin's own, or a link, which is certainly not sent
// after a denial.
func (j *Judge) EnforceNow(v *Verdict, u *url.URL) error {
	if v.Rule.Allowed {
		j.decided.add(v.Reason)
		return nil
	}
	d := &Denied{Decision: v.Decision(u)}
	d.First = j.CountDenied(v.Host, &d.Decision, reporter.IDs{})
	if j.DryRun {
		return nil
	}
	return d
}

// CountDenied counts a request to host that is denied, and sends the event. It reports whether this is
// the first denial of the host that is notable. A denial is not notable if the host does not respond.
func (j *Judge) CountDenied(host *pace.Host, d *report.Decision, of reporter.IDs) (first bool) {
	j.decided.add(d.Reason)
	host.Count(report.HostCounts{Denied: 1})
	if !IsSilent(d) {
		first = host.Mark(reporter.LoggedDenial)
	}
	if !j.DryRun {
		markDenied(host, d.Reason)
	}
	j.Report.TellDenied(host, *d, j.DryRun, of)
	return first
}

// IsUnread reports whether d denies a URL because robots.txt cannot be read now.
//
// A denial by WhenForbidden is not one of a file that cannot be read: like that of a rule, it holds
// as long as the response may be cached.
func IsUnread(d *report.Decision) bool {
	isReason := d.Reason == report.ReasonUnreachable || d.Reason == report.ReasonSiteDown
	return isReason && d.Option != policy.OptionWhenForbidden
}

// IsSilent reports whether d denies a URL because the host does not respond, so that robots.txt is not
// known, and no page of the host can be fetched.
func IsSilent(d *report.Decision) bool { return IsUnread(d) && policy.IsUnanswered(d.Err) }

// Decision returns v, the verdict on u, as a Decision.
func (v *Verdict) Decision(u *url.URL) report.Decision {
	file := v.Policy.RobotsURL()
	d := report.Decision{
		URL:        u.Redacted(),
		Authority:  strings.TrimSuffix(file, "/robots.txt"),
		RobotsURL:  file,
		Allowed:    v.Rule.Allowed,
		Reason:     v.Reason,
		Dialect:    v.Settings.Dialect,
		Option:     v.Settings.override(v.Policy),
		Token:      v.Reader.token(),
		Hash:       v.Policy.Sum(),
		Group:      v.Policy.Group().Name(),
		Rule:       v.Rule.Rule,
		Status:     v.Policy.Status(),
		Walled:     v.Policy.Walled(),
		Err:        v.Policy.Err(),
		Fetched:    v.Policy.Fetched(),
		Expires:    v.Policy.Expires(),
		CrawlDelay: v.Policy.CrawlDelay(),
		Usage:      v.preferences(u),
	}
	if !v.Host.Plain() || v.Settings.Pace.Free { // a dry run tells the delays that it does not keep
		host := v.Host.Stats(time.Now())
		d.Delay = host.Delay
		d.BackOff = host.BackOff
		d.NotBefore = host.NotBefore
		d.Opens = host.Opens
	}
	if d.Option == policy.OptionRobotsTxt {
		d.Fetched = time.Time{}
		d.Expires = time.Time{}
	}
	if d.Reason == report.ReasonIgnored {
		d.Permission = &v.Settings.Permission
	}
	if v.denial == nil || v.denial.Describe == nil {
		return d
	}
	described := d // only a denial needs the memory that a pointer takes
	v.denial.Describe(&described)
	return described
}

// fileOf returns the name of a robots.txt for the log.
func fileOf(pol *policy.Policy) string {
	if pol.Given() {
		return "option " + policy.OptionRobotsTxt
	}
	return pol.RobotsURL()
}
