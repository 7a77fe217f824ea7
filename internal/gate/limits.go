package gate

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/budget"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
)

// A responder sees the end of an exchange of a collector or a client. All responders of a plugin are
// in Gate.responders.
type responder interface {
	// answered is called with each response. If again is true, the request is sent once more, and
	// the responders after this one do not see the response. In that case the responder must have
	// ended the ticket of q. log logs something when the lock of the exchange is no longer held; it
	// may be nil.
	answered(q *Request, resp *http.Response) (again bool, log func())
	// failed is called when the exchange has failed, also while its body was read.
	failed(q *Request, err error) (log func())
}

// candidate returns the candidate of a request that was judged.
func (q *Request) candidate() judge.Candidate {
	return q.Complete(judge.CandidateOf(&q.verdict, &q.target))
}

// Complete implements judge.Applicant.
func (q *Request) Complete(c judge.Candidate) judge.Candidate {
	c.Marks = &q.marks
	if q.redirect {
		c.Redirected = q.From
	}
	return c
}

// charge is called just before q is sent. The limits count it. If they no longer allow it, charge
// returns the error of Judge.Disallow or, in a dry run, stores it in q.dry.
func (g *Gate) charge(q *Request) error {
	if len(g.Limits) == 0 || q.dry != nil {
		return nil
	}
	d := g.take(q)
	if d == nil {
		return nil
	}
	q.verdict.Deny(d)
	dry, err := g.Enforce(&q.verdict, q.target.URL, q.IDs, q.redirect)
	q.dry = dry
	return err
}

// take makes all limits count q. If one of them denies it, none counts it. The last limit counts
// first: then the first one, which decides, does not count a request that another limit denies.
func (g *Gate) take(q *Request) *judge.Denial {
	c := q.candidate()
	if d := g.LimitOf(q.now, c); d != nil {
		return d
	}
	for _, l := range slices.Backward(g.Limits) {
		if d := l.Take(q.now, c); d != nil {
			q.refund()
			return d
		}
	}
	return nil
}

// refund undoes charge if q was never sent.
func (q *Request) refund() {
	if q.marks.None() || q.WasSent() {
		return
	}
	now := time.Now()
	for _, l := range slices.Backward(q.gate.Limits) {
		if m := q.marks.Of(l); m.By != nil && m.Source == judge.OfItself {
			q.marks.Clear(l)
			l.Undo(now, m.Host)
		}
	}
}

// errDenied ends the wait of a page whose host has reached a limit. The page is then judged again.
var errDenied = errors.New("a limit of the host is reached")

// endWaitIfDenied makes Enter of the host of q return errDenied if a limit of the host is reached.
func (g *Gate) endWaitIfDenied(q *Request) {
	concerns := func(l judge.Limit) bool { return l.Concerns(q.verdict.Settings) }
	if g.DryRun || !slices.ContainsFunc(g.Limits, concerns) {
		return
	}
	q.Ticket.WaitWhile(func() error {
		if g.LimitOf(time.Now(), q.candidate()) != nil {
			return errDenied
		}
		return nil
	})
}

// addFeatures adds the rules, the limits and the responders whose options are set for any host. The
// responder of StopRefused counts refusals also without the option.
func (g *Gate) addFeatures() {
	s := g.Settings
	g.Rules = appendIf(g.Rules, s.IsForAny(func(s *judge.HostSettings) bool { return s.EnforceUsage }), judge.Rule(judge.UsageRule{}))
	g.Rules = appendIf(g.Rules, s.IsForAny(func(s *judge.HostSettings) bool { return s.EnforceTags }), judge.Rule(judge.NofollowRule{}))
	g.Limits = appendIf(g.Limits, s.IsForAny(g.refusals.Concerns), judge.Limit(g.refusals))
	g.Limits = appendIf(g.Limits, s.IsForAny(g.pageLimit.Concerns), judge.Limit(g.pageLimit))
	g.responders = appendIf(g.responders, g.Wire.Signs(), responder(signedRetries{}))
	g.responders = append(g.responders, g.refusals)
	g.responders = appendIf(g.responders, s.IsForAny(func(s *judge.HostSettings) bool { return s.RetryThrottled > 0 }), responder(&throttledRetries{}))
}

// appendIf appends a feature to a list if a condition is true.
func appendIf[F any](list []F, condition bool, feature F) []F {
	if !condition {
		return list
	}
	return append(list, feature)
}

// The second part of this file has the limits of the options StopRefused and MaxPages, and the
// responders of the options StopRefused, RetryThrottled and SignRequests.

// A pageLimit is the limit of the option MaxPages. The zero pageLimit allows every page.
type pageLimit struct{ sent *budget.Pages }

func (l *pageLimit) Concerns(s *judge.HostSettings) bool { return s.MaxPages > 0 }

func (l *pageLimit) Judge(_ time.Time, c judge.Candidate) *judge.Denial {
	most := c.Settings.MaxPages
	if most == 0 || c.IsFile || l.isCounted(c) || l.sent.Used(c.Host) < most {
		return nil
	}
	return pageLimitReached(most)
}

func (l *pageLimit) Take(_ time.Time, c judge.Candidate) *judge.Denial {
	most := c.Settings.MaxPages
	if most == 0 || l.isCounted(c) {
		return nil
	}
	if !l.sent.Take(c.Host, most) {
		return pageLimitReached(most)
	}
	c.Marks.Set(judge.Mark{By: l, Host: c.Host})
	return nil
}

func (l *pageLimit) Undo(_ time.Time, host string) { l.sent.Return(host) }

// isCounted reports whether a request is already counted in the budget of its host. A redirect
// within a host is part of the page that was counted.
func (l *pageLimit) isCounted(c judge.Candidate) bool {
	m := c.Marks.Of(l)
	return m.Host == c.Host && m.Source != judge.OfRedirect || c.Redirected == c.Host
}

// pageLimitReached returns the denial of a host whose budget is used up.
func pageLimitReached(most int) *judge.Denial {
	return &judge.Denial{Reason: report.ReasonBudget, Describe: func(d *report.Decision) { d.MaxPages = most }}
}

// A refusals is the limit and the responder of the option StopRefused. It denies the pages of hosts
// that are stopped. If a probe is due, the next page is the probe, and has a mark.
type refusals struct {
	hosts  stop.Hosts
	report *reporter.Reporter
}

func (l *refusals) Concerns(s *judge.HostSettings) bool { return s.StopRefused > 0 }

func (l *refusals) Judge(now time.Time, c judge.Candidate) *judge.Denial {
	if l.hosts.None() || l.isProbe(c.Marks, c.Host) {
		return nil
	}
	s, stopped := l.hosts.Denied(now, c.Host)
	if !stopped {
		return nil
	}
	return hostStopped(s)
}

func (l *refusals) Take(now time.Time, c judge.Candidate) *judge.Denial {
	if l.isProbe(c.Marks, c.Host) {
		return nil
	}
	probe, ok := l.hosts.Start(now, c.Host)
	if !ok {
		return hostStopped(l.hosts.Status(c.Host))
	}
	if probe {
		c.Marks.Set(judge.Mark{By: l, Host: c.Host})
	}
	return nil
}

func (l *refusals) Undo(now time.Time, host string) { l.hosts.NotSent(now, host) }

// isProbe reports whether a request with these marks is the probe of a host, or follows a redirect
// of the probe.
func (l *refusals) isProbe(m *judge.Marks, host string) bool { return m.Of(l).Host == host }

// hostStopped returns the denial of a host that is stopped.
func hostStopped(s stop.Status) *judge.Denial {
	return &judge.Denial{Reason: report.ReasonRefused, Describe: func(d *report.Decision) {
		d.Refusals = s.InRow
		d.NextTry = s.Until
	}}
}

// answered records whether the host has refused or accepted q.
func (l *refusals) answered(q *Request, resp *http.Response) (again bool, log func()) {
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
func (l *refusals) failed(q *Request, err error) (log func()) {
	if q.Replied || q.dry != nil || !q.WasSent() || !exchange.FailureOf(err).Reset || q.IsByPeer() {
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
func (l *refusals) refused(q *Request, status int, err error) (log func()) {
	limit := q.verdict.Settings.StopRefused
	q.Host.CountRefusal()
	s, notable := l.hosts.Refused(time.Now(), q.Host.Name(), limit, l.isProbe(&q.marks, q.Host.Name()))
	if !notable {
		return nil
	}
	l.report.TellRefused(q.Host, q.target.URL, status, err, s, q.IDs)
	return l.log(q, status, s)
}

// A throttledRetries is the responder of the option RetryThrottled. Its mark counts the retries of a
// request.
type throttledRetries struct{}

func (r *throttledRetries) answered(q *Request, resp *http.Response) (again bool, log func()) {
	if !exchange.Throttled(resp) || isChallenge(resp.Header) || q.ctx == nil || !backend.Repeatable(resp.Request) {
		return false, nil
	}
	m := q.marks.Of(r)
	if m.Source != judge.OfItself {
		m = judge.Mark{}
	}
	if m.Count >= q.verdict.Settings.RetryThrottled || q.Host.BusyFor(time.Now(), exchange.Patience) {
		return false, nil
	}
	q.marks.Set(judge.Mark{By: r, Count: m.Count + 1})
	q.EndAttempt()
	return true, nil
}

func (r *throttledRetries) failed(*Request, error) (log func()) { return nil }

// A signedRetries is the responder of the option SignRequests, for sites that ask for a signature or
// a nonce.
type signedRetries struct{}

func (signedRetries) answered(q *Request, resp *http.Response) (again bool, log func()) {
	return q.SignsAgain(resp), nil
}

func (signedRetries) failed(*Request, error) (log func()) { return nil }

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
func (q *Request) isByProxy(resp *http.Response) bool {
	if !q.IsByPeer() || q.target.URL.Scheme != "http" {
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

// log returns a function that logs that a host has refused requests in a row, the last of them q.
func (l *refusals) log(q *Request, status int, s stop.Status) (log func()) {
	facts := []any{"host", q.Host.Name(), "url", q.target.URL.Redacted(), "status", status, "count", s.InRow}
	message := "host refuses requests"
	if s.Stopped() {
		message = "host refuses requests, its pages are not sent"
		facts = append(facts, slog.Time("until", s.Until))
	} else if q.verdict.Settings.StopRefused == 0 {
		facts = append(facts, slog.String("option", "StopRefused"))
	}
	return func() { l.report.Log.Warn(message, facts...) }
}
