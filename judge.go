package collyrobots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// A judge decides about URLs. In a dry run, enforce returns a denial apart from its error, so that the
// request goes on.
type judge struct {
	settings *settings
	dryRun   bool
	shard    shard
	wire     *exchange.Wire
	delays   delays
	policies *policies
	report   *reporter.Reporter
	decided  *decisions
	tdm      tdmFiles
	uses     uses
	rules    []rule
	limits   []limit
}

// newJudge returns the judge of a new plugin. The caller sets the fields dryRun, shard, rules and limits.
func newJudge(s *settings, w *exchange.Wire, p *policies) *judge {
	return &judge{
		settings: s,
		wire:     w,
		delays:   delays{Wire: w},
		policies: p,
		report:   w.Report,
		decided:  newDecisions(),
	}
}

// A verdict is the decision about a URL, with the settings and the policy that have led to it.
type verdict struct {
	host     *pace.Host
	settings *hostSettings
	policy   *policy.Policy
	reader   *reader     // of policy; nil if robots.txt is ignored
	source   pace.Source // of the crawl delay of policy; zero if there is none
	rule     dialect.Decision
	reason   report.Reason
	tdm      *usage.TDMFile // nil if the site has none, or if it is not used
	waited   bool           // the decision has waited for the TDMRep file
	at       time.Time      // when the rules and the limits have decided
	denial   *denial        // of the rule or the limit that denies the URL; nil if none does
}

// An applicant is the request that a verdict is about.
type applicant interface {
	// complete adds to c what only the request knows.
	complete(c candidate) candidate
	// isKnownFresh reports whether its page is fresh at now under these settings, so that it is not sent.
	isKnownFresh(ctx context.Context, now time.Time, s *hostSettings) bool
}

// verdict decides about t at now: the policy that applies decides first, then the rules of the plugin,
// and then the limits of the host. It fetches robots.txt if necessary. by is the request for t, or nil
// if there is none. Every decision about a URL is made here; enforce counts it.
//
// If t has a Host header, the policy is that of the site that the header names, and the host is that
// of the URL, because it gets the request. The error is the context's, ErrClosed, a *ShardError or
// *PaceError, or says that the URL has no valid host.
func (j *judge) verdict(ctx context.Context, now time.Time, t target, f exchange.Fetcher, by applicant) (verdict, error) {
	v := verdict{at: now}
	err := j.decide(ctx, &v, t, f)
	if err != nil {
		return verdict{}, err
	}
	if v.waited || v.policy.Fetched().After(now) {
		v.at = time.Now() // a file was fetched just now, which took time
	}
	if !v.rule.Allowed || len(j.rules)+len(j.limits) == 0 {
		return v, nil
	}
	c := candidateOf(&v, &t)
	if by != nil {
		c = by.complete(c)
	}
	d := denialBy(j.rules, v.at, c)
	if d == nil && len(j.limits) > 0 && (by == nil || !by.isKnownFresh(ctx, v.at, v.settings)) {
		d = j.limitOf(v.at, c)
	}
	if d != nil {
		v.deny(d)
	}
	return v, nil
}

// decide sets the fields of v, the verdict on t at v.at, by the policy that applies to t.
func (j *judge) decide(ctx context.Context, v *verdict, t target, f exchange.Fetcher) error {
	a, err := j.begin(v, v.at, t, f)
	if err != nil || v.policy != nil {
		return err
	}
	v.policy = v.reader.known(ctx, v.at, a, v.host)
	if v.policy == nil && t.linkedFrom != "" && !j.dryRun {
		*v = nofollowVerdict(v.at, v.host, v.settings, a, t.linkedFrom) // without a request for robots.txt
		return nil
	}
	if v.policy == nil {
		v.policy, err = j.policies.get(ctx, v, a, t.userAgent, f)
		if err != nil {
			return err
		}
	}
	v.source = j.delays.setCrawlDelay(v.at, v.host, v.settings, v.reader.name, v.policy)
	if v.settings.skips(v.policy.CrawlDelay()) {
		v.reason = report.ReasonDelay
	} else {
		v.reason, v.rule = apply(v.policy, t.url)
	}
	if (v.settings.purpose != 0 || v.settings.tdmRep) && v.rule.Allowed && !t.isFile {
		return j.findTDM(ctx, v, t, f)
	}
	return nil
}

// A nofollowRule is the rule of the option EnforceRobotsTags. It denies links that must not be
// followed.
type nofollowRule struct{}

func (nofollowRule) judge(_ time.Time, c candidate) *denial {
	if c.linkedFrom == "" {
		return nil
	}
	return linkDenied(c.linkedFrom)
}

// linkDenied returns the denial of a link on the page from.
func linkDenied(from string) *denial {
	return &denial{reason: report.ReasonNofollow, describe: func(d *Decision) { d.LinkedFrom = from }}
}

// nofollowVerdict returns the verdict on a link that must not be followed, to an authority whose
// robots.txt is not known. from is the page with the link.
func nofollowVerdict(now time.Time, host *pace.Host, s *hostSettings, a dialect.Authority, from string) verdict {
	v := verdict{
		at:       now,
		host:     host,
		settings: s,
		policy:   &policy.Policy{Authority: a, RobotsStatus: policy.NoRobots},
	}
	v.deny(linkDenied(from))
	return v
}

// recall is like decide, but uses only files that are known. It returns an error if robots.txt is
// not known.
func (j *judge) recall(t target, f exchange.Fetcher) (verdict, error) {
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

// isKnown reports whether decide needs no request for robots.txt to decide about t at now.
func (j *judge) isKnown(ctx context.Context, now time.Time, t target, f exchange.Fetcher) bool {
	var v verdict
	a, err := j.begin(&v, now, t, f)
	if err != nil || v.policy != nil {
		return true
	}
	return v.reader.known(ctx, now, a, v.host) != nil
}

// errNotKnown is the error of recall for a site whose robots.txt is not known.
var errNotKnown = errors.New("robots.txt is not known")

// begin sets the fields of v, the verdict on t, that do not depend on its policy. It returns the
// authority of that policy. If robots.txt is ignored, v is complete and has a policy. v is
// undefined if there is an error.
func (j *judge) begin(v *verdict, now time.Time, t target, f exchange.Fetcher) (dialect.Authority, error) {
	a, err := dialect.AuthorityOf(t.url)
	if err != nil {
		return a, err
	}
	if err := j.shard.owns(a.Host, t.url); err != nil {
		return a, err
	}
	v.host = j.wire.Hosts.At(now, a.Host)
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
	v.reader, err = j.policies.reader(v.settings, v.settings.nameFor(&f, t.userAgent))
	return a, err
}

// sendOwn is like send, but sends the request only if check returns no error. check gets the origin
// of the request. It is called again if robots.txt changes before the request has its turn.
func (j *judge) sendOwn(req *http.Request, timeout time.Duration, from exchange.Lead, check func(exchange.Origin) (verdict, error)) (resp *http.Response, began time.Time, err error) {
	guard, err := j.wire.Allow(from, hostname.Of(req.URL), req.URL)
	if err != nil {
		j.report.TellUnsent(req.URL, err, reporter.IDs{})
		return nil, time.Time{}, err
	}
	x := &exchange.Exchange{Wire: j.wire}
	x.Permit = permitOf(req.Context(), x, func() (verdict, error) { return check(exchange.GuardedBy(guard, from.Payer)) })
	err = x.Permit.Check()
	if err != nil {
		return nil, time.Time{}, err
	}
	resp, began, err = x.Send(req, from.Client.Seam(), timeout, from)
	if exchange.IsForbidden(err) {
		began = time.Time{} // the connection has shown a private address, so trying again is useless
	}
	return resp, began, err
}

// permitOf returns the permit of x. It lets x be sent if judge returns no error.
func permitOf(ctx context.Context, x *exchange.Exchange, judge func() (verdict, error)) *exchange.Permit {
	var last verdict
	current := func() bool {
		return last.reader == nil || last.reader.known(ctx, time.Now(), last.policy.Authority, last.host) != nil
	}
	check := func() error {
		v, err := judge()
		if err == nil {
			v.obeyedBy(&x.Ticket)
			last = v
		}
		return err
	}
	return &exchange.Permit{Current: current, Check: check}
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

// statistics returns the counts of the decisions by their reasons.
func (j *judge) statistics() map[report.Reason]int { return j.decided.counts() }

// count counts v, which allows its URL.
func (j *judge) count(v *verdict) { j.decided.add(v.reason) }

// countDenied counts a request to host that is denied, and sends the event. It reports whether this is
// the first denial of the host that is notable. A denial is not notable if the host does not respond.
func (j *judge) countDenied(host *pace.Host, d *report.Decision, of reporter.IDs) (first bool) {
	j.decided.add(d.Reason)
	host.Count(0, 1)
	if !isSilent(d) {
		first = host.Mark(reporter.LoggedDenial)
	}
	if !j.dryRun {
		markDenied(host, d.Reason)
	}
	j.report.TellDenied(host, *d, of)
	return first
}

// isUnread reports whether d denies a URL because robots.txt cannot be read now.
//
// A denial by WhenForbidden is not one of a file that cannot be read: like that of a rule, it holds
// as long as the response may be cached.
func isUnread(d *report.Decision) bool {
	isReason := d.Reason == report.ReasonUnreachable || d.Reason == report.ReasonSiteDown
	return isReason && d.Option != policy.OptionWhenForbidden
}

// isSilent reports whether d denies a URL because the host does not respond, so that robots.txt is not
// known, and no page of the host can be fetched.
func isSilent(d *report.Decision) bool { return isUnread(d) && policy.IsUnanswered(d.Err) }

// decision returns v, the verdict on u, as a Decision.
func (v *verdict) decision(u *url.URL) Decision {
	host := v.host.Stats(time.Now())
	d := Decision{
		URL:        u.Redacted(),
		Authority:  v.policy.Authority.String(),
		RobotsURL:  v.policy.RobotsURL(),
		Allowed:    v.rule.Allowed,
		Reason:     v.reason,
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
	if v.denial != nil && v.denial.describe != nil {
		v.denial.describe(&d)
	}
	return d
}

// A hostSettings holds the values of the options that may differ between hosts.
type hostSettings struct {
	pace            pace.Rules
	dialect         dialect.Dialect
	tokens          []string      // of ProductToken; nil if the option is not set
	maxDelay        time.Duration // of MaxDelay; 0 if the option is not set
	skipAbove       time.Duration // of SkipAbove; 0 if the option is not set
	honorCrawlDelay bool
	honorRate       bool // of HonorRequestRate
	ignoreRobots    bool
	grouping        exchange.Sharing // of PaceBy
	robotsTxt       []byte           // of RobotsTxt; nil if the option is not set
	whenUnreachable policy.Access    // 0 if the option is not set
	whenForbidden   policy.Access    // 0 if the option is not set
	purpose         usage.Purpose    // of Purpose; 0 if the option is not set
	enforceUsage    bool
	tdmRep          bool // of TDMRep
	enforceTags     bool // of EnforceRobotsTags
	retryThrottled  int  // how often a page with status 429 or 503 is requested again
	revalidate      bool
	skipFresh       bool // of SkipFresh; only with revalidate
	index           int  // the index in settings.all of the first settings that read robots.txt alike
	stopRefused     int  // of StopRefused; 0 if no host is stopped
	maxPages        int  // of MaxPages; 0 if there is no limit
}

// skips reports whether a host with this crawl delay is skipped.
func (s *hostSettings) skips(crawlDelay time.Duration) bool {
	return s.skipAbove > 0 && crawlDelay > s.skipAbove
}

// caps reports whether a crawl delay is longer than MaxDelay.
func (s *hostSettings) caps(crawlDelay time.Duration) bool {
	return s.maxDelay > 0 && crawlDelay > s.maxDelay
}

// longestDelay returns the longest crawl delay that is kept, or 0 if there is no limit. A skipped
// host still gets requests for its robots.txt. These wait no longer than SkipAbove.
func (s *hostSettings) longestDelay() time.Duration {
	if s.maxDelay == 0 || s.skipAbove == 0 {
		return max(s.maxDelay, s.skipAbove)
	}
	return min(s.maxDelay, s.skipAbove)
}

// productTokens returns the names that a crawler with this user agent looks for in robots.txt under
// d.
func (s *hostSettings) productTokens(d dialect.Dialect, userAgent string) []string {
	if s.tokens != nil {
		return s.tokens
	}
	if d == dialect.Temoto() {
		return []string{userAgent} // the built-in check looks up the whole user agent
	}
	return []string{dialect.ProductToken(userAgent)}
}

// byCollector reports whether robots.txt is read for the UserAgent of the collector, whatever user
// agent a request is sent with. Colly's built-in check does the same.
func (s *hostSettings) byCollector() bool { return s.tokens == nil && s.dialect == dialect.Temoto() }

// A settings holds the settings of all hosts.
type settings struct {
	hostSettings            // applies to hosts that match no rule
	perHost      []hostRule // the first rule that matches a host applies
}

// A hostRule holds the settings of the hosts that match the pattern of ForHosts.
type hostRule struct {
	pattern string
	hostSettings
}

// of returns the settings of a host.
func (s *settings) of(host string) *hostSettings {
	for i := range s.perHost {
		if s.perHost[i].matches(host) {
			return &s.perHost[i].hostSettings
		}
	}
	return &s.hostSettings
}

// readsLike reports whether s and o read robots.txt alike: the same rules apply under both to a
// crawler with the same user agent.
func (s *hostSettings) readsLike(o *hostSettings) bool {
	return s.dialect == o.dialect &&
		slices.Equal(s.tokens, o.tokens) &&
		s.honorCrawlDelay == o.honorCrawlDelay &&
		s.honorRate == o.honorRate &&
		(s.robotsTxt == nil) == (o.robotsTxt == nil) &&
		bytes.Equal(s.robotsTxt, o.robotsTxt) &&
		s.whenUnreachable == o.whenUnreachable &&
		s.whenForbidden == o.whenForbidden
}

// ofSite returns the settings of the site of an authority, which may be one that a Host header
// names.
func (s *settings) ofSite(a dialect.Authority) *hostSettings {
	site, _, _ := strings.Cut(a.Host, "@")
	return s.of(site)
}

// all returns the settings of the hosts that match no rule, and then those of each rule.
func (s *settings) all() []*hostSettings {
	all := []*hostSettings{&s.hostSettings}
	for i := range s.perHost {
		all = append(all, &s.perHost[i].hostSettings)
	}
	return all
}

// complete sets the fields that follow from the others.
func (s *settings) complete(dryRun bool) {
	all := s.all()
	for _, s := range all {
		s.index = slices.IndexFunc(all, s.readsLike)
		s.pace.Free = dryRun
		s.pace.MaxDelay = s.longestDelay()
		s.pace.Shares = s.grouping != exchange.Alone
	}
}

// matches reports whether the pattern matches a host, with or without its port.
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

// ShardOf returns the number of the process that requests the host of a URL under ShardByHost. The
// n processes are numbered from 0. ShardOf returns an error if n is less than one, or if the URL is
// not an http or https URL. If n grows by one, each host keeps its shard or moves to the new one.
//
// A program in another language can compute the same shard. The host is in lower-case ASCII,
// without scheme and port. An international name has its "xn--" form, and an IPv6 address has
// brackets. The key is the first eight bytes of the host's SHA-256, as a big-endian unsigned
// number. The shard is the jump consistent hash of the key (Lamping and Veach, "A Fast, Minimal
// Memory, Consistent Hash Algorithm", 2014):
//
//	b = -1; j = 0
//	while j < n:
//		b = j
//		key = (key * 2862933555777941757 + 1) mod 2^64
//		j = floor((b + 1) * (2^31 / ((key >> 33) + 1)))   in 64-bit floating point
//	return b
//
// For example, example.com belongs to shard 2 of 100.
func ShardOf(rawURL string, n int) (int, error) {
	u, err := weburl.Parse(rawURL)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", redact.ParseError(err))
	}
	if !weburl.IsWeb(u) {
		return 0, fmt.Errorf("collyrobots: ShardOf: %q is not an http or https URL", u.Redacted())
	}
	if n < 1 {
		return 0, fmt.Errorf("collyrobots: ShardOf: got %d shards, want at least 1", n)
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", err)
	}
	return shardOf(a.Host, n), nil
}

// shardOf returns the shard of a host, which may have a port.
func shardOf(host string, n int) int {
	sum := sha256.Sum256([]byte(hostname.WithoutPort(host)))
	key := binary.BigEndian.Uint64(sum[:])
	shard := -1
	for next := 0; next < n; {
		shard = next
		key = key*2862933555777941757 + 1
		next = int(float64(shard+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return shard
}

// A shard selects the hosts of this process: those of shard i of n. The zero shard selects all
// hosts.
type shard struct{ n, i int }

// owns returns nil if host, the host of u, belongs to this process. Otherwise it returns a
// *ShardError.
func (s shard) owns(host string, u *url.URL) error {
	if s.n < 2 {
		return nil
	}
	if at := shardOf(host, s.n); at != s.i {
		return &ShardError{URL: u.Redacted(), Shard: at, Of: s.n}
	}
	return nil
}

// An Access says how to treat a site with a robots.txt that could not be read. The zero Access is
// not valid.
type Access uint8

const (
	// DenyAll denies every page.
	DenyAll Access = iota + 1
	// AllowAll allows every page. If a robots.txt of the site was read before it became
	// unreachable, its rules still apply.
	AllowAll
)

// String returns "deny_all" or "allow_all".
func (a Access) String() string {
	if a == AllowAll {
		return "allow_all"
	}
	return "deny_all"
}

// accessFault returns the fault of an option with the Access a, or nil.
func accessFault(option string, a Access) error {
	return faultIf(a != DenyAll && a != AllowAll, option, "%d is not DenyAll or AllowAll", uint8(a))
}

// RobotsTxt uses body in place of the robots.txt of some hosts. It can only be used inside
// ForHosts. The robots.txt of these hosts is not requested, and one that is in the Store has no
// effect. body is read in the dialect and for the product tokens of the crawl. All of its lines
// apply: rules, Crawl-delay, and the other lines that the dialect defines. FollowSitemaps and Pages
// read the sitemaps that body lists, and not those that the sites list. The Store never contains
// body.
//
// Use it for hosts whose owner has sent you rules that differ from the published file. An empty
// body allows everything. A nil body is an error, because it is most likely a file that could not
// be read. Lines that the dialect ignores are logged.
//
// Decision.Option is "RobotsTxt" for such hosts, and an Event of kind report.EventRobots reports the first
// use of body for each site. If both RobotsTxt and IgnoreRobotsWithPermission are given, the later
// one applies.
func RobotsTxt(body []byte) Option {
	body = bytes.Clone(body)
	o := hostOption(policy.OptionRobotsTxt, func(s *hostSettings) {
		s.robotsTxt = body
		s.ignoreRobots = false
	}, faultIf(body == nil, policy.OptionRobotsTxt, "the file is nil; an empty file, []byte{}, allows everything"))
	o.onlyPerHost = true
	return o
}

// WhenUnreachable says how to treat a site with an unreachable robots.txt, in place of the dialect.
// A robots.txt is unreachable if the request for it gets no complete response, if the status is
// 5xx, 429 or one that HTTP does not define, or if a redirect cannot be followed (RFC 9309, section
// 2.3.1.4).
//
// Without the option, the dialects differ: RFC 9309 and Google deny everything at first and allow
// it after 30 days or 12 hours, and Coc Coc and Yandex allow everything at once if there is a
// response. With DenyAll, all pages are denied until the file can be read. With AllowAll, the last
// robots.txt that was read applies, or everything is allowed if there is none. AllowAll never
// denies more than the dialect.
//
// The option does not change when robots.txt is requested again. A host that answers 429 or 503
// still gets fewer requests. In most dialects, a site with too many redirects has no robots.txt, so
// the option does not affect it. Decision.Option is "WhenUnreachable" if this option has decided.
func WhenUnreachable(a Access) Option {
	return hostOption(policy.OptionWhenUnreachable, func(s *hostSettings) { s.whenUnreachable = policy.Access(a) },
		accessFault(policy.OptionWhenUnreachable, a))
}

// WhenForbidden says how to treat a site that answers the request for robots.txt with status 401 or
// 403. Without the option, such a site has no robots.txt in all dialects, and everything is allowed
// (RFC 9309, section 2.3.1.3). The specification of 1996 recommended requesting nothing, as with
// DenyAll.
//
// The decision holds as long as that response may be cached: one day, unless Cache-Control shortens
// that. Decision.Option is "WhenForbidden" if this option has decided.
func WhenForbidden(a Access) Option {
	return hostOption(policy.OptionWhenForbidden, func(s *hostSettings) { s.whenForbidden = policy.Access(a) },
		accessFault(policy.OptionWhenForbidden, a))
}

// override returns the name of the option that decides in place of the robots.txt of pol, or in
// place of the dialect. It returns "" if there is none.
func (s *hostSettings) override(pol *policy.Policy) string {
	return pol.Override(s.whenUnreachable, s.whenForbidden)
}

// fileOf returns the name of a robots.txt for the log.
func fileOf(pol *policy.Policy) string {
	if pol.Given() {
		return "option " + policy.OptionRobotsTxt
	}
	return pol.RobotsURL()
}

// robotsTxtWarnings calls warn if the dialect does not read every line of RobotsTxt as written.
func (s *hostSettings) robotsTxtWarnings(warn func(what string, args ...any)) {
	if s.robotsTxt == nil {
		return
	}
	issues := s.dialect.Lint(s.robotsTxt)
	if len(issues) > 0 {
		warn("RobotsTxt has lines that the dialect ignores or changes; the error is about the first",
			"error", issues[0].String(), "count", len(issues), "dialect", s.dialect)
	}
}

// CrawlHours lets the requests to each host start only in some hours of each day: from the time of
// day from until the time of day to, on a clock in loc. The times are written as "22:00". The
// window may span midnight: CrawlHours("22:00", "06:00", loc) starts requests from ten in the
// evening until six in the morning. Without CrawlHours, requests start at any time.
//
//   - At other times, pages and sitemaps wait, and only robots.txt is requested. A redirect of a
//     collector that would have to wait long fails with [ErrRedirectWait]. A request that is in
//     flight when the window ends is not interrupted.
//   - CrawlHours also applies if robots.txt is ignored. If a Visit-time is honored as well,
//     requests start only when both allow it.
//   - The window follows the local time in loc. If daylight saving time skips the time from, the
//     window begins at the change of the clock. If it skips the whole window, there is none on that
//     day. If the clock is set back and shows the time from or to twice, the host opens or closes
//     each time.
//
// A waiting page usually holds no slot of a LimitRule. It holds one only if it got the slot before
// the window ended and has not started. A host with CrawlHours should therefore not share a
// LimitRule with hosts that are crawled at any time.
//
// It is an error if from or to is not a time of day, if they are equal, or if loc is nil.
// time.LoadLocation returns nil if it does not find the time zone.
func CrawlHours(from, to string, loc *time.Location) Option {
	opens, opensOK := timeOfDay(from)
	closes, closesOK := timeOfDay(to)
	const malformed = `%q is not a time of day: want "00:00" to "23:59"`
	return hostOption("CrawlHours", func(s *hostSettings) {
		s.pace.Hours = &crawlHours{opens: opens, closes: closes, loc: loc}
	},
		faultIf(!opensOK, "CrawlHours", malformed, from),
		faultIf(!closesOK, "CrawlHours", malformed, to),
		faultIf(opensOK && closesOK && opens == closes, "CrawlHours", "the window from %s to %s is empty", from, to),
		faultIf(loc == nil, "CrawlHours", "the location is nil: check the error of time.LoadLocation"))
}

// timeOfDay parses a time such as "22:00", and returns the time since midnight.
func timeOfDay(s string) (d time.Duration, ok bool) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, false
	}
	return sinceMidnight(t), true
}

// A crawlHours is the schedule of the option CrawlHours. It implements pace.Schedule.
type crawlHours struct {
	opens, closes time.Duration // since midnight; they differ
	loc           *time.Location
}

// At implements pace.Schedule.
func (h *crawlHours) At(t time.Time) pace.Slot {
	t = t.In(h.loc)
	open := h.isOpen(t)
	until := h.nextChange(t)
	for h.isOpen(until) == open { // the UTC offset changes, but the host stays open or closed
		until = h.nextChange(until)
	}
	return pace.Slot{Closed: !open, Until: until}
}

// isOpen reports whether the host is open at t, a time in h.loc.
func (h *crawlHours) isOpen(t time.Time) bool {
	now := sinceMidnight(t)
	if h.opens < h.closes {
		return h.opens <= now && now < h.closes
	}
	return h.opens <= now || now < h.closes
}

// nextChange returns the next time after t when the clock in h.loc shows opens or closes. If the
// UTC offset in h.loc changes earlier, it returns the time of that change.
func (h *crawlHours) nextChange(t time.Time) time.Time {
	const day = 24 * time.Hour
	next := day
	for _, at := range [...]time.Duration{h.opens, h.closes} {
		wait := at - sinceMidnight(t)
		if wait <= 0 {
			wait += day
		}
		next = min(next, wait)
	}
	change := t.Add(next)
	_, set := t.ZoneBounds()
	if !set.IsZero() && set.Before(change) {
		return set.In(h.loc)
	}
	return change
}

// sinceMidnight returns the time of day that a clock shows at t.
func sinceMidnight(t time.Time) time.Duration {
	hour, minute, second := t.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute +
		time.Duration(second)*time.Second + time.Duration(t.Nanosecond())
}
