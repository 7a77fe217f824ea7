package gate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// Answered implements backend.Trip. A redirect gives its place back here and not when its body is
// closed, because the user's redirect handler may visit the same host before that.
func (q *Request) Answered(resp *http.Response) (again bool, log func()) {
	if q.verdict.Policy.Failing() {
		q.verdict.Policy.SiteAnswered()
	}
	redirect := exchange.IsRedirect(resp.StatusCode)
	q.status = resp.StatusCode
	q.leads = redirect && leads(resp)
	pages := 1
	mayRepeat := q.gate.retries != nil && !exchange.Throttled(resp) && q.gate.retries.concerns(q, resp)
	if redirect || mayRepeat { // or a 304, which is counted when the collector gets it
		pages = 0
	}
	log = q.RecordResponse(resp, pages)
	for _, r := range q.gate.responders {
		again, also := r.answered(q, resp)
		log = exchange.Both(log, also)
		if again {
			return true, log
		}
	}
	if q.isUnchanged(resp) {
		log = exchange.Both(log, q.confirm(resp))
		if q.early {
			q.Ticket.End()
		}
		return false, log
	}
	if exchange.Throttled(resp) || mayRepeat {
		q.Host.Count(report.HostCounts{Pages: 1}) // the spider gets the response, so it counts as a page
	}
	if !redirect && q.hasPurpose() {
		q.gate.RecordUse(q.verdict, resp)
	}
	if redirect || q.early {
		q.Ticket.End()
	}
	if redirect && q.seam != nil { // the program sends the redirect of a Turn, which is another page
		q.handOn(resp)
	}
	return false, log
}

// hasPurpose reports whether the purpose of q is known.
func (q *Request) hasPurpose() bool { return q.target.Purpose != 0 || q.verdict.Settings.Purpose != 0 }

// leads reports whether a redirect has a target.
func leads(redirect *http.Response) bool {
	to, err := redirect.Location()
	return err == nil && to != nil
}

// pageKey is the key of the *Page that a redirect hands on, in the context of its request.
type pageKey struct{}

// handOn passes the page of q on to the request that will follow a redirect. net/http sets the
// Response of that request to this response, whose Request has the page in its context.
func (q *Request) handOn(redirect *http.Response) {
	next := q.Page
	next.marks = q.marks.HandOn(judge.OfRedirect)
	ctx := context.WithValue(redirect.Request.Context(), pageKey{}, &next)
	redirect.Request = redirect.Request.WithContext(ctx)
	if q.leads {
		q.Trace.HandOn()
	}
	q.OnEnd = nil
}

// follow makes q a redirect, unless the response that has led to it is nil.
func (q *Request) follow(before *http.Response) {
	if before == nil {
		return
	}
	q.redirect = true
	if before.Request != nil && before.Request.URL != nil {
		q.From = hostname.Of(before.Request.URL)
	}
}

// IDsOf returns the numbers of the page that a redirect has handed on.
func IDsOf(redirect *http.Response) reporter.IDs {
	p, _ := handedOn(redirect)
	return p.IDs
}

// handedOn returns the page that a redirect has handed on.
func handedOn(redirect *http.Response) (p Page, ok bool) {
	if redirect == nil || redirect.Request == nil {
		return Page{}, false
	}
	before, ok := redirect.Request.Context().Value(pageKey{}).(*Page)
	if !ok {
		return Page{}, false
	}
	p = *before
	p.marks = before.marks.HandOn(judge.OfRedirect)
	return p, true
}

// Again implements backend.Trip. The request waits for its turn once more, which may take long, so
// it is judged by the robots.txt in force after the wait.
func (q *Request) Again(ctx context.Context) error {
	q.turn = time.Time{}
	return q.Repeat(func() error {
		err := q.awaitBackOff(ctx)
		if err != nil {
			return q.deniedAgain(ctx, err)
		}
		q.now = time.Now()
		if q.Repeats() {
			q.setClock(q.now)
		}
		err = q.gate.start(ctx, q, true)
		if err != nil {
			return q.deniedAgain(ctx, err)
		}
		q.Trace.Continue(q.IDs, q.now)
		q.traceDecision()
		q.HandOver()
		return nil
	})
}

// awaitBackOff waits until the back-off before a repetition is over.
func (q *Request) awaitBackOff(ctx context.Context) error {
	d := q.backOff
	if d == 0 {
		return nil
	}
	q.backOff = 0
	return q.Wire.Hosts.Sleep(ctx, d)
}

// traceDecision gives the decision that allows q to its trace, if there is a listener.
func (q *Request) traceDecision() {
	if q.Trace.IsOn() {
		q.Trace.Decide(q.verdict.Decision(q.target.URL))
	}
}

// deniedAgain returns the error of a request that is not sent once more because of err. ctx is that of
// q.
func (q *Request) deniedAgain(ctx context.Context, err error) error {
	denied := deniedBy(err) != nil
	q.Trace.GiveUp(q.IDs, denied)
	if !denied {
		return err
	}
	return q.gate.refused(ctx, q, err)
}

// Ended implements backend.Trip.
func (q *Request) Ended(bytes int64, err error) {
	tell := q.OnEnd
	q.countFailure(err)
	q.TraceEnd(bytes, err)
	log := q.recordFailure(err)
	host := q.Host
	wire := q.Wire
	q.Close()
	if log != nil {
		log()
	}
	wire.TellNextStart(host)
	if tell != nil {
		tell()
	}
}

// Finish ends q, which the program has sent itself. err says why there is no response, or why its body
// could not be read; otherwise it is nil. log logs what follows from it, and may be nil.
func (q *Request) Finish(err error) (log func()) {
	failure := exchange.FailureOf(err)
	if !errors.Is(err, exchange.ErrNotSent) {
		q.countFailure(err)
	}
	q.TraceEnd(0, err)
	if failure.Unsent && !q.Replied {
		q.SetUnsent()
	}
	log = q.recordFailure(err)
	if failure.Canceled {
		reporter.MarkEnded(q.Host, failure.Closed)
	}
	q.abandon()
	q.Wire.TellNextStart(q.Host)
	return log
}

// countFailure counts the page of q if it has failed. err is the error of its exchange, and may be nil.
func (q *Request) countFailure(err error) {
	failed := !q.leads && q.status != 0 && q.status != http.StatusNotModified && (q.status < 200 || q.status > 299)
	if err != nil {
		failed = !q.isCanceled() && q.gate.IsFailure(err)
	}
	if failed {
		q.Host.Count(report.HostCounts{Failed: 1})
		q.Trace.Fail()
	}
}

// recordFailure passes the error of q, which may be nil, to the responders. log logs what follows
// from it, and may be nil.
func (q *Request) recordFailure(err error) (log func()) {
	if err == nil {
		return nil
	}
	if q.isCanceled() {
		failure := exchange.FailureOf(err)
		reporter.MarkEnded(q.Host, failure.Closed)
	}
	for _, r := range q.gate.responders {
		log = exchange.Both(log, r.failed(q, err))
	}
	return log
}

// isCanceled reports whether the context of q has ended. If the request is that of an http.Client,
// an expired deadline does not count: it is often the timeout of the client, and does not affect
// other requests.
func (q *Request) isCanceled() bool {
	if q.ctx == nil || q.ctx.Err() == nil {
		return false
	}
	return q.entry != nil || q.ctx.Err() == context.Canceled
}
