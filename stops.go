package collyrobots

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/collyrobots/collyrobots/internal/stop"
)

// This file decides which results of a page are refusals for StopRefused. Package internal/stop
// counts them and decides when a host is stopped.

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
	if q.isCancelled() {
		markEnded(q.host, err)
	}
	wasSent := q.sent.Load() || q.before
	if q.replied || q.dry != nil || !wasSent || !errors.Is(err, syscall.ECONNRESET) || q.isByPeer() {
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
