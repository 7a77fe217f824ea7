package gate

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
)

// A refusals is the limit and the responder of the option StopAfterRefusals. It denies the pages
// of hosts that are stopped. If a probe is due, the next page is the probe, and has a mark.
type refusals struct {
	hosts  stop.Hosts
	report *reporter.Reporter
}

func (l *refusals) Concerns(s *judge.HostSettings) bool { return s.StopAfterRefusals > 0 }

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
	if q.Replied || q.dry != nil || !q.WasSent() || !exchange.FailureOf(err).Reset || q.ThroughProxy() {
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
	limit := q.verdict.Settings.StopAfterRefusals
	q.Host.Count(report.HostCounts{Refusals: 1})
	s, notable := l.hosts.Refused(time.Now(), q.Host.Name(), limit, l.isProbe(&q.marks, q.Host.Name()))
	if !notable {
		return nil
	}
	l.report.TellRefused(q.Host, q.target.URL, status, err, s, q.IDs)
	return l.log(q, status, s)
}

// isRefusal reports whether a response refuses the crawler. 429 and 503 ask for fewer requests and
// are not refusals. If such a response is also a challenge, the host gets fewer requests and the
// response counts as a refusal, because the site would not send the page at any pace.
func isRefusal(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return true
	}
	return policy.IsChallenge(resp.Header)
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
	if !q.ThroughProxy() || q.target.URL.Scheme != "http" {
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
	} else if q.verdict.Settings.StopAfterRefusals == 0 {
		facts = append(facts, slog.String("option", "StopAfterRefusals"))
	}
	return func() { l.report.Log.Warn(message, facts...) }
}
