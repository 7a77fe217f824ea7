package collyrobots

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/budget"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// A rule is an optional reason to deny a URL that robots.txt allows. All rules of a plugin are in
// judge.rules, and the first one that denies the URL decides. A URL is judged by them again only
// when it is judged by its robots.txt again.
type rule interface {
	// judge returns why c is denied at now, or nil. It changes nothing.
	judge(now time.Time, c candidate) *denial
}

// A limit is a rule whose answer depends on the other requests of the host. All limits of a plugin
// are in judge.limits. They are asked after the rules, and not about a page that SkipFresh does not
// request. A request is judged three times:
//
//   - judge decides when the request is judged by its robots.txt, so that most requests over the
//     limit do not wait.
//   - judge decides again whenever a request of the host has ended, so that a request that can no
//     longer be sent does not wait for its start. It is then called under the lock of the pace of the
//     host, so it must be quick, and a candidate has no pace.Host: a call of it would never return.
//   - take decides just before the request is sent. So the numbers are exact although many requests
//     are judged at the same time.
type limit interface {
	rule
	// concerns reports whether the limit may deny pages under these settings.
	concerns(s *hostSettings) bool
	// take decides again, and counts c, which has marks.
	take(now time.Time, c candidate) *denial
	// undo undoes take for a request that was never sent. host is the host of its mark.
	undo(now time.Time, host string)
}

// A responder sees the end of an exchange of a collector or a client. All responders of a plugin are
// in gate.responders.
type responder interface {
	// answered is called with each response. If again is true, the request is sent once more, and
	// the responders after this one do not see the response. In that case the responder must have
	// ended the ticket of q. log logs something when the lock of the exchange is no longer held; it
	// may be nil.
	answered(q *request, resp *http.Response) (again bool, log func())
	// failed is called when the exchange has failed, also while its body was read.
	failed(q *request, err error) (log func())
}

// A denial says why a rule denies a URL.
type denial struct {
	reason   report.Reason
	describe func(d *Decision) // adds the facts to a Decision; nil if there are none
}

// A candidate is a URL that robots.txt allows, as a rule sees it. It is passed by value, so that it
// needs no memory.
type candidate struct {
	url        *url.URL
	host       string // the name of its host
	settings   *hostSettings
	policy     *policy.Policy
	tdm        *usage.TDMFile // nil if the site has none, or if it is not used
	linkedFrom string         // the page whose link must not be followed; "" if it may be
	isFile     bool           // the plugin reads it, so it is no page
	redirected string         // the host whose redirect has led to it; "" if it follows no redirect
	*marks                    // of the request; nil if there is no request
}

// candidateOf returns the candidate of a target with the verdict v, for which no request exists.
func candidateOf(v *verdict, t *target) candidate {
	return candidate{
		url:        t.url,
		host:       v.host.Name(),
		settings:   v.settings,
		policy:     v.policy,
		tdm:        v.tdm,
		linkedFrom: t.linkedFrom,
		isFile:     t.isFile,
	}
}

// candidate returns the candidate of a request that was judged.
func (q *request) candidate() candidate { return q.complete(candidateOf(&q.verdict, &q.target)) }

// complete implements applicant.
func (q *request) complete(c candidate) candidate {
	c.marks = &q.marks
	if q.redirect {
		c.redirected = q.from
	}
	return c
}

// marks are what limits and responders remember about a request: at most one mark for each of them.
// Redirects get them with the page, and requests inside of another one from that one. The zero value
// has none, and so has a nil pointer. Most requests have at most one mark, which needs no memory of
// its own.
type marks struct {
	first mark
	more  []mark
}

// A mark is what one limit or responder remembers about a request.
type mark struct {
	by     any    // the limit or the responder; nil if there is no mark
	host   string // the host that the mark is about
	count  int    // what it counts, if anything
	source source
}

// A source says which request has set a mark.
type source uint8

const (
	ofItself   source = iota // the request that has it
	ofCarrier                // the request that it is a part of; see carrier
	ofRedirect               // the request whose redirect it follows
)

// of returns the mark of a limit or a responder, or the zero mark.
func (m *marks) of(by any) mark {
	if m == nil || m.first.by == nil {
		return mark{}
	}
	if m.first.by == by {
		return m.first
	}
	for _, one := range m.more {
		if one.by == by {
			return one
		}
	}
	return mark{}
}

// none reports whether there is no mark.
func (m *marks) none() bool { return m.first.by == nil }

// set sets the mark of one.by.
func (m *marks) set(one mark) {
	if m.first.by == nil || m.first.by == one.by {
		m.first = one
		return
	}
	i := slices.IndexFunc(m.more, func(other mark) bool { return other.by == one.by })
	if i >= 0 {
		m.more[i] = one
	} else {
		m.more = append(m.more, one)
	}
}

// clear removes the mark of a limit or a responder.
func (m *marks) clear(by any) {
	m.more = slices.DeleteFunc(m.more, func(one mark) bool { return one.by == by })
	if m.first.by != by {
		return
	}
	m.first = mark{}
	if n := len(m.more); n > 0 {
		m.first = m.more[n-1]
		m.more = m.more[:n-1]
	}
}

// handOn returns the marks of a request that gets them from the one with m.
func (m *marks) handOn(s source) marks {
	next := marks{first: m.first, more: slices.Clone(m.more)}
	next.first.source = max(next.first.source, s)
	for i := range next.more {
		next.more[i].source = max(next.more[i].source, s)
	}
	return next
}

// deny makes v a denial that no rule of robots.txt causes.
func (v *verdict) deny(d *denial) {
	v.reason = d.reason
	v.rule = dialect.Decision{}
	v.denial = d
}

// denialBy returns the denial of the first rule that denies c, or nil.
func denialBy(rules []rule, now time.Time, c candidate) *denial {
	for _, r := range rules {
		if d := r.judge(now, c); d != nil {
			return d
		}
	}
	return nil
}

// limitOf returns the denial of the first limit that denies c, or nil.
func (j *judge) limitOf(now time.Time, c candidate) *denial {
	for _, l := range j.limits {
		if d := l.judge(now, c); d != nil {
			return d
		}
	}
	return nil
}

// claim is called just before q is sent. The limits count it. If they no longer allow it, claim
// returns a *DisallowedError or, in a dry run, stores it in q.dry.
func (g *gate) claim(q *request) error {
	if len(g.limits) == 0 || q.dry != nil {
		return nil
	}
	d := g.take(q)
	if d == nil {
		return nil
	}
	q.verdict.deny(d)
	dry, err := enforce(g.judge, &q.verdict, q.target.url, q.IDs)
	q.dry = dry
	if err != nil {
		return q.denied(err)
	}
	return nil
}

// take makes all limits count q. If one of them denies it, none counts it. The last limit counts
// first: then the first one, which decides, does not count a request that another limit denies.
func (g *gate) take(q *request) *denial {
	c := q.candidate()
	if d := g.limitOf(q.now, c); d != nil {
		return d
	}
	for _, l := range slices.Backward(g.limits) {
		if d := l.take(q.now, c); d != nil {
			q.unclaim()
			return d
		}
	}
	return nil
}

// unclaim undoes claim if q was never sent.
func (q *request) unclaim() {
	if q.marks.none() || q.WasSent() {
		return
	}
	now := time.Now()
	for _, l := range slices.Backward(q.gate.limits) {
		if m := q.marks.of(l); m.by != nil && m.source == ofItself {
			q.marks.clear(l)
			l.undo(now, m.host)
		}
	}
}

// errDenied ends the wait of a page whose host has reached a limit. The page is then judged again.
var errDenied = errors.New("a limit of the host is reached")

// endWaitIfDenied makes Enter of the host of q return errDenied if a limit of the host is reached.
func (g *gate) endWaitIfDenied(q *request) {
	concerns := func(l limit) bool { return l.concerns(q.verdict.settings) }
	if g.dryRun || !slices.ContainsFunc(g.limits, concerns) {
		return
	}
	q.Ticket.WaitWhile(func() error {
		if g.limitOf(time.Now(), q.candidate()) != nil {
			return errDenied
		}
		return nil
	})
}

// addFeatures adds the rules, the limits and the responders whose options are set for any host. The
// responder of StopRefused counts refusals also without the option.
func (g *gate) addFeatures() {
	s := g.settings
	g.rules = appendIf(g.rules, s.isForAny(func(s *hostSettings) bool { return s.enforceUsage }), rule(usageRule{}))
	g.rules = appendIf(g.rules, s.isForAny(func(s *hostSettings) bool { return s.enforceTags }), rule(nofollowRule{}))
	g.limits = appendIf(g.limits, s.isForAny(g.refusals.concerns), limit(g.refusals))
	g.limits = appendIf(g.limits, s.isForAny(g.pageLimit.concerns), limit(g.pageLimit))
	g.responders = appendIf(g.responders, g.limiter.Signs(), responder(signedRetries{}))
	g.responders = append(g.responders, g.refusals)
	g.responders = appendIf(g.responders, s.isForAny(func(s *hostSettings) bool { return s.retryThrottled > 0 }), responder(&throttledRetries{}))
}

// appendIf appends a feature to a list if a condition is true.
func appendIf[F any](list []F, condition bool, feature F) []F {
	if !condition {
		return list
	}
	return append(list, feature)
}

// isForAny reports whether an option is set for any host.
func (s *settings) isForAny(isSet func(*hostSettings) bool) bool {
	return slices.ContainsFunc(s.all(), isSet)
}

// The second part of this file has the limits of the options StopRefused and MaxPages, and the
// responders of the options StopRefused, RetryThrottled and SignWhenAsked.

// A pageLimit is the limit of the option MaxPages. The zero pageLimit allows every page.
type pageLimit struct{ sent *budget.Pages }

func (l *pageLimit) concerns(s *hostSettings) bool { return s.maxPages > 0 }

func (l *pageLimit) judge(_ time.Time, c candidate) *denial {
	most := c.settings.maxPages
	if most == 0 || c.isFile || l.isCounted(c) || l.sent.Used(c.host) < most {
		return nil
	}
	return pageLimitReached(most)
}

func (l *pageLimit) take(_ time.Time, c candidate) *denial {
	most := c.settings.maxPages
	if most == 0 || l.isCounted(c) {
		return nil
	}
	if !l.sent.Take(c.host, most) {
		return pageLimitReached(most)
	}
	c.marks.set(mark{by: l, host: c.host})
	return nil
}

func (l *pageLimit) undo(_ time.Time, host string) { l.sent.Return(host) }

// isCounted reports whether a request is already counted in the budget of its host. A redirect
// within a host is part of the page that was counted.
func (l *pageLimit) isCounted(c candidate) bool {
	m := c.marks.of(l)
	return m.host == c.host && m.source != ofRedirect || c.redirected == c.host
}

// pageLimitReached returns the denial of a host whose budget is used up.
func pageLimitReached(most int) *denial {
	return &denial{reason: report.ReasonBudget, describe: func(d *Decision) { d.MaxPages = most }}
}

// A refusals is the limit and the responder of the option StopRefused. It denies the pages of hosts
// that are stopped. If a probe is due, the next page is the probe, and has a mark.
type refusals struct {
	hosts  stop.Hosts
	report *reporter.Reporter
}

func (l *refusals) concerns(s *hostSettings) bool { return s.stopRefused > 0 }

func (l *refusals) judge(now time.Time, c candidate) *denial {
	if l.hosts.None() || l.isProbe(c.marks, c.host) {
		return nil
	}
	s, stopped := l.hosts.Denied(now, c.host)
	if !stopped {
		return nil
	}
	return hostStopped(s)
}

func (l *refusals) take(now time.Time, c candidate) *denial {
	if l.isProbe(c.marks, c.host) {
		return nil
	}
	probe, ok := l.hosts.Start(now, c.host)
	if !ok {
		return hostStopped(l.hosts.Status(c.host))
	}
	if probe {
		c.marks.set(mark{by: l, host: c.host})
	}
	return nil
}

func (l *refusals) undo(now time.Time, host string) { l.hosts.NotSent(now, host) }

// isProbe reports whether a request with these marks is the probe of a host, or follows a redirect
// of the probe.
func (l *refusals) isProbe(m *marks, host string) bool { return m.of(l).host == host }

// hostStopped returns the denial of a host that is stopped.
func hostStopped(s stop.Status) *denial {
	return &denial{reason: report.ReasonRefused, describe: func(d *Decision) {
		d.Refusals = s.InRow
		d.NextTry = s.Until
	}}
}

// answered records whether the host has refused or accepted q.
func (l *refusals) answered(q *request, resp *http.Response) (again bool, log func()) {
	if q.dry != nil {
		return false, nil // outside a dry run, q would not have been sent
	}
	switch {
	case isRefusal(resp):
		if !q.isByProxy(resp) {
			return false, l.refused(q, resp.StatusCode, nil)
		}
	case isSuccess(resp.StatusCode):
		l.hosts.Succeeded(q.Host.Name(), l.isProbe(&q.marks, q.Host.Name()))
	}
	return false, nil
}

// failed records the error of q. A connection that was reset right after the request is a refusal.
// A reset connection to a proxy does not count, because the proxy may have caused it.
func (l *refusals) failed(q *request, err error) (log func()) {
	o := outcomeOf(err)
	if q.Replied || q.dry != nil || !q.WasSent() || !o.reset || q.IsByPeer() {
		return nil
	}
	if time.Since(q.Ticket.Start().At) > rightAfter {
		return nil
	}
	return l.refused(q, 0, err)
}

// rightAfter is the longest time between a request and the reset of its connection that counts as a
// refusal.
const rightAfter = 10 * time.Second

// refused records that the host has refused q, with a status or with an error.
func (l *refusals) refused(q *request, status int, err error) (log func()) {
	limit := q.verdict.settings.stopRefused
	q.Host.CountRefusal()
	s, notable := l.hosts.Refused(time.Now(), q.Host.Name(), limit, l.isProbe(&q.marks, q.Host.Name()))
	if !notable {
		return nil
	}
	l.report.TellRefused(q.Host, q.target.url, status, err, s, q.IDs)
	return l.log(q, status, s)
}

// A throttledRetries is the responder of the option RetryThrottled. Its mark counts the retries of a
// request.
type throttledRetries struct{}

func (r *throttledRetries) answered(q *request, resp *http.Response) (again bool, log func()) {
	if !exchange.Throttled(resp) || isChallenge(resp.Header) || q.ctx == nil || !backend.Repeatable(resp.Request) {
		return false, nil
	}
	m := q.marks.of(r)
	if m.source != ofItself {
		m = mark{}
	}
	if m.count >= q.verdict.settings.retryThrottled || q.Host.BusyFor(time.Now(), exchange.Patience) {
		return false, nil
	}
	q.marks.set(mark{by: r, count: m.count + 1})
	q.EndAttempt()
	return true, nil
}

func (r *throttledRetries) failed(*request, error) (log func()) { return nil }

// A signedRetries is the responder of the option SignWhenAsked, and of SignRequests for sites that
// ask for a nonce.
type signedRetries struct{}

func (signedRetries) answered(q *request, resp *http.Response) (again bool, log func()) {
	return q.SignsAgain(resp), nil
}

func (signedRetries) failed(*request, error) (log func()) { return nil }

// The rest of this file decides which results of a page are refusals for StopRefused. Package
// internal/stop counts them and decides when a host is stopped.

// isRefusal reports whether a response refuses the crawler. 429 and 503 ask for fewer requests and
// are not refusals. If such a response is also a challenge, the host gets fewer requests and the
// response counts as a refusal, because the site would not send the page at any pace.
func isRefusal(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return true
	}
	return isChallenge(resp.Header)
}

// isChallenge reports whether a response is a challenge, which only a browser with a user can
// answer. Cloudflare marks it with "cf-mitigated: challenge", and AWS WAF with "x-amzn-waf-action:
// challenge" or "captcha":
//
//   - https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
//   - https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html
func isChallenge(h http.Header) bool {
	if len(h["X-Amzn-Waf-Action"]) > 0 {
		return true
	}
	mitigated := h["Cf-Mitigated"]
	return len(mitigated) > 0 && strings.EqualFold(mitigated[0], "challenge")
}

// isSuccess reports whether a status shows that the host accepts requests of the crawler. A
// redirect does not show it, because it may lead to a page that is refused. A server error does not
// show it either.
func isSuccess(status int) bool {
	switch status {
	case http.StatusNotModified, http.StatusNotFound, http.StatusGone:
		return true
	}
	return 200 <= status && status <= 299
}

// isByProxy reports whether a proxy has answered q itself and says so in the header. This is
// possible only for http URLs. For https URLs, a proxy forwards encrypted bytes, and if it rejects
// CONNECT, there is no response.
func (q *request) isByProxy(resp *http.Response) bool {
	if !q.IsByPeer() || q.target.url.Scheme != "http" {
		return false
	}
	if len(resp.Header["X-Squid-Error"]) > 0 {
		return true
	}
	for _, proxies := range resp.Header["Proxy-Status"] { // RFC 9209
		if strings.Contains(proxies, "error=") {
			return true
		}
	}
	return false
}

// recordFailure passes the error of q, which may be nil, to the responders. log logs what follows
// from it, and may be nil.
func (q *request) recordFailure(err error) (log func()) {
	if err == nil {
		return nil
	}
	if q.isCancelled() {
		o := outcomeOf(err)
		markEnded(q.Host, o.closed)
	}
	for _, r := range q.gate.responders {
		log = exchange.Both(log, r.failed(q, err))
	}
	return log
}

// log returns a function that logs that a host has refused requests in a row, the last of them q.
func (l *refusals) log(q *request, status int, s stop.Status) (log func()) {
	facts := []any{"host", q.Host.Name(), "url", q.target.url.Redacted(), "status", status, "count", s.InRow}
	message := "host refuses requests"
	if s.Stopped() {
		message = "host refuses requests, its pages are not sent"
		facts = append(facts, slog.Time("until", s.Until))
	} else if q.verdict.settings.stopRefused == 0 {
		facts = append(facts, slog.String("option", "StopRefused"))
	}
	return func() { l.report.Log.Warn(message, facts...) }
}
