package gate

import (
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
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

// A throttledRetries is the responder of the option RetryThrottled. Its mark counts the retries of a
// request.
type throttledRetries struct{}

func (r *throttledRetries) answered(q *Request, resp *http.Response) (again bool, log func()) {
	if !exchange.Throttled(resp) || policy.IsChallenge(resp.Header) || q.ctx == nil || !backend.Repeatable(resp.Request) {
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
