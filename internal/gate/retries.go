package gate

import (
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// A retries is the responder of the options Retry and RetryThrottled. Its mark counts the repetitions of
// a request. It also decides about requests that fail without a response, see Request.Failed.
type retries struct{}

func (r *retries) answered(q *Request, resp *http.Response) (again bool, log func()) {
	if !r.concerns(q, resp) {
		return false, nil
	}
	if r.again(q) {
		q.EndAttempt(nil)
		return true, nil
	}
	if exchange.Throttled(resp) {
		q.Host.Mark(reporter.LeftByThrottle)
	}
	return false, nil
}

func (r *retries) failed(*Request, error) (log func()) { return nil }

// concerns reports whether a response to q is one that is repeated.
func (r *retries) concerns(q *Request, resp *http.Response) bool {
	return q.verdict.Settings.Retries.AnswersTo(resp.Request.Method, resp.StatusCode) && !policy.IsChallenge(resp.Header) && q.isRepeatable(resp.Request)
}

// isRepeatable reports whether q, as req on the wire, can be sent once more.
func (q *Request) isRepeatable(req *http.Request) bool {
	return q.ctx != nil && q.ctx.Err() == nil && !q.Repeated && backend.Repeatable(req)
}

// again reports whether q is sent once more, and counts that, or that q is given up.
func (r *retries) again(q *Request) bool {
	settings := q.verdict.Settings.Retries
	m := q.marks.Of(r)
	if m.Source != judge.OfItself {
		m = judge.Mark{}
	}
	wait := settings.BackOff(m.Count)
	deadline, ends := q.ctx.Deadline()
	if m.Count >= settings.Max || q.Host.BusyFor(time.Now(), exchange.Patience) || ends && time.Until(deadline) < wait {
		q.Host.Count(report.HostCounts{GivenUp: 1})
		return false
	}
	q.marks.Set(judge.Mark{By: r, Count: m.Count + 1})
	q.backOff = wait
	q.Host.Count(report.HostCounts{Retried: 1})
	return true
}

// Failed implements backend.Trip. A failed attempt that is repeated counts for StopAfterRefusals.
func (q *Request) Failed(req *http.Request, err error) (again bool, log func()) {
	r := q.gate.retries
	if r == nil || q.Ends() || !q.verdict.Settings.Retries.FailsWith(req.Method, err) || !q.isRepeatable(req) || !r.again(q) {
		return false, nil
	}
	for _, other := range q.gate.responders {
		log = exchange.Both(log, other.failed(q, err))
	}
	q.EndAttempt(err)
	return true, log
}
