package collyrobots

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
)

// The first part of this file denies pages that robots.txt allows: those of hosts that refuse requests (StopRefused),
// and those over the budget of their host (MaxPages).
//
// A page is checked twice. When it is judged, restrict denies it if the limit is reached already.
// Just before it is sent, claim decides again and counts it, so that the numbers are exact although
// many pages are judged at the same time. A page that waits for its host is also checked whenever a
// request of the host has ended. So a page that can no longer be sent does not wait for its start.

// exempt says which limits of its host do not concern a URL.
type exempt struct{ refusals, budget bool }

// exemptions returns the limits that do not concern q with the verdict v: a probe goes to a host
// that is stopped, and a page is counted once.
func (q *request) exemptions(v *verdict) exempt {
	return exempt{refusals: q.probe == v.host.Name(), budget: q.isCounted(v)}
}

// limitOf returns the reason why a limit of the host of v denies a URL at now, or "". If the host is
// stopped, stopped says since when.
func (j *judge) limitOf(now time.Time, v *verdict, x exempt) (reason report.Reason, stopped *stop.Status) {
	name := v.host.Name()
	if !x.refusals && !j.stops.None() {
		status, denied := j.stops.Denied(now, name)
		if denied {
			return report.ReasonRefused, &status
		}
	}
	limit := v.settings.maxPages
	if !x.budget && limit > 0 && j.sent.Used(name) >= limit {
		return report.ReasonBudget, nil
	}
	return "", nil
}

// restrict changes v, a verdict at now, to a denial if a limit of its host is reached.
func (j *judge) restrict(now time.Time, v *verdict, x exempt) {
	if !v.rule.Allowed {
		return
	}
	reason, stopped := j.limitOf(now, v, x)
	if reason != "" {
		v.stopped = stopped
		v.deny(reason)
	}
}

// deny makes v a denial that no rule of robots.txt causes.
func (v *verdict) deny(reason report.Reason) {
	v.reason = reason
	v.rule = dialect.Decision{}
}

// allow undoes deny. rule and reason are those before it.
func (v *verdict) allow(rule dialect.Decision, reason report.Reason) {
	v.rule = rule
	v.reason = reason
	v.stopped = nil
}

// isCounted reports whether q is already counted in the budget of its host. A redirect within a
// host is part of the page that was counted.
func (q *request) isCounted(v *verdict) bool {
	name := v.host.Name()
	return q.charged == name || q.redirect && q.from == name
}

// claim is called just before q is sent. It counts q in the budget of its host. If the host is
// stopped and a probe is due, q becomes the probe. If the limits no longer allow q, claim returns a
// *DisallowedError or, in a dry run, stores it in q.dry.
func (g *gate) claim(q *request) error {
	v := &q.verdict
	if v.settings.maxPages == 0 && g.stops.None() || q.dry != nil {
		return nil
	}
	reason := g.tryClaim(q)
	if reason == "" {
		return nil
	}
	v.deny(reason)
	dry, err := g.enforce(v, q.target.url, q.numbers)
	q.dry = dry
	if err != nil {
		return q.denied(err)
	}
	return nil
}

// tryClaim counts q for claim. It returns the reason why q must not be sent, or "".
func (g *gate) tryClaim(q *request) report.Reason {
	v := &q.verdict
	name := v.host.Name()
	reason, stopped := g.limitOf(q.now, v, q.exemptions(v))
	if reason != "" {
		v.stopped = stopped
		return reason
	}
	if limit := v.settings.maxPages; limit > 0 && !q.isCounted(v) {
		if !g.sent.Take(name, limit) {
			return report.ReasonBudget
		}
		q.charged = name
	}
	if q.probe == name {
		return ""
	}
	probe, ok := g.stops.Start(q.now, name)
	if !ok {
		status := g.stops.Status(name)
		v.stopped = &status
		q.unclaim()
		return report.ReasonRefused
	}
	if probe {
		q.probe = name
		q.tries = name
	}
	return ""
}

// unclaim undoes claim if q was never sent.
func (q *request) unclaim() {
	if q.charged == "" && q.tries == "" || q.before || q.sent.Load() {
		return
	}
	if q.charged != "" {
		q.gate.sent.Return(q.charged)
		q.charged = ""
	}
	if q.tries != "" {
		q.gate.stops.NotSent(time.Now(), q.tries)
		q.tries = ""
		q.probe = ""
	}
}

// errDenied ends the wait of a page whose host has reached a limit. The page is then judged again.
var errDenied = errors.New("a limit of the host is reached")

// endWaitIfDenied makes Enter of the host of q return errDenied if a limit of the host is reached.
func (g *gate) endWaitIfDenied(q *request) {
	v := &q.verdict
	if g.dryRun || v.settings.stopRefused == 0 && v.settings.maxPages == 0 {
		return
	}
	q.ticket.WaitWhile(func() error {
		reason, _ := g.limitOf(time.Now(), v, q.exemptions(v))
		if reason != "" {
			return errDenied
		}
		return nil
	})
}

// The second part of this file decides which results of a page are refusals for StopRefused. Package
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
	if !q.isByPeer() || q.target.url.Scheme != "http" {
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

// isByPeer reports whether the last connection of x led to a proxy, that is, to a server other than
// its host.
func (x *exchange) isByPeer() bool { return x.peer != "" && !isServer(x.host.Name(), x.peer) }

// recordResult records whether the host has refused or accepted q. log logs it, and may be nil.
func (q *request) recordResult(resp *http.Response) (log func()) {
	if q.dry != nil {
		return nil // outside a dry run, q would not have been sent
	}
	name := q.host.Name()
	switch {
	case isRefusal(resp):
		if !q.isByProxy(resp) {
			return q.recordRefusal(resp.StatusCode, nil)
		}
	case isSuccess(resp.StatusCode):
		q.gate.stops.Succeeded(name, q.probe == name)
	}
	return nil
}

// rightAfter is the longest time between a request and the reset of its connection that counts as a
// refusal.
const rightAfter = 10 * time.Second

// recordFailure records the error of q, which may be nil. A connection that was reset right after
// the request is a refusal. A reset connection to a proxy does not count, because the proxy may
// have caused it. log logs the refusal, and may be nil.
func (q *request) recordFailure(err error) (log func()) {
	if err == nil {
		return nil
	}
	o := outcomeOf(err)
	if q.isCancelled() {
		markEnded(q.host, o.closed)
	}
	wasSent := q.sent.Load() || q.before
	if q.replied || q.dry != nil || !wasSent || !o.reset || q.isByPeer() {
		return nil
	}
	if time.Since(q.ticket.Start().At) > rightAfter {
		return nil
	}
	return q.recordRefusal(0, err)
}

// recordRefusal records that the host has refused q, with a status or with an error.
func (q *request) recordRefusal(status int, err error) (log func()) {
	name := q.host.Name()
	limit := q.verdict.settings.stopRefused
	q.host.CountRefusal()
	s, notable := q.gate.stops.Refused(time.Now(), name, limit, q.probe == name)
	if !notable {
		return nil
	}
	q.gate.report.tellRefused(q, status, err, s)
	return q.gate.report.refusals(q, status, s)
}

// refusals returns a function that logs that a host has refused requests in a row.
func (r *reporter) refusals(q *request, status int, s stop.Status) (log func()) {
	facts := []any{"host", q.host.Name(), "url", q.target.url.Redacted(), "status", status, "count", s.InRow}
	message := "host refuses requests"
	if s.Stopped() {
		message = "host refuses requests, its pages are not sent"
		facts = append(facts, slog.Time("until", s.Until))
	} else if q.verdict.settings.stopRefused == 0 {
		facts = append(facts, slog.String("option", "StopRefused"))
	}
	return func() { r.log.Warn(message, facts...) }
}

// both returns a function that calls those of its arguments that are not nil, or nil if both are.
func both(f, g func()) func() {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func() {
		f()
		g()
	}
}
