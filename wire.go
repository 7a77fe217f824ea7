package collyrobots

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// A transport is the plugin at the place where the collectors' requests go on the wire. It admits the
// requests that no hook of Colly has seen: redirects, requests that an OnRequestHeaders callback has
// changed, and requests of clones that are not attached. It implements backend.Controller.
type transport struct{ *core }

// Knows implements backend.Controller.
func (t *transport) Knows(u *url.URL) bool { return t.requests.Has(u) }

// Before implements backend.Controller.
func (t *transport) Before(s *backend.Seam, req *http.Request) (backend.Trip, error) {
	if !hasRobots(req.URL) {
		return nil, nil
	}
	q := t.takeRequest(req.URL)
	if q != nil && q.refusal != nil && q.unchanged() {
		return nil, t.reject(q, q.refusal)
	}
	asked := targetOf(req.URL, req.Host, req.Header)
	if q != nil && !(q.unchanged() && q.target.hostHeader == asked.hostHeader) {
		q.close() // it was admitted for another URL
		q = nil
	}
	seen := q != nil
	if !seen {
		q = t.open(s, req)
	}
	q.seam = s
	q.header = req.Header
	if !seen || !t.sameName(q, asked) || !q.ticket.OnWire() {
		q.target = asked
		err := t.admit(req.Context(), q)
		if err != nil {
			return nil, t.reject(q, err)
		}
	}
	t.send(q, s, req)
	return q, nil
}

// send prepares q, which has started, for the wire.
func (t *transport) send(q *request, s *backend.Seam, req *http.Request) {
	q.retries = q.verdict.settings.retryThrottled
	q.through = s.Transport()
	t.trace(q, req)
	q.handOver()
}

// open returns the record of a request that no hook has seen as it is now.
func (t *transport) open(s *backend.Seam, req *http.Request) *request {
	before := req.Response
	if before == nil {
		s.Keep()
		t.report.warn("a request reached the transport that the plugin had not seen: a clone or collector without Attach, or an OnRequestHeaders callback that changes the URL", "url", req.URL.Redacted())
		return t.newRequest(req.URL, page{early: true}) // the callbacks of its collector are not known
	}
	p, _ := handedOn(before)
	q := t.newRequest(req.URL, p)
	q.follow(before)
	return q
}

// sameName reports whether a request is sent under the name that q was judged by, as far as
// robots.txt distinguishes names.
func (t *transport) sameName(q *request, asked target) bool {
	v := &q.verdict
	if q.target.userAgent == asked.userAgent || v.settings.ignoreRobots || v.settings.byCollector() {
		return true
	}
	judged, err := t.policies.reader(v.settings, q.target.userAgent)
	if err != nil {
		return false
	}
	sent, err := t.policies.reader(v.settings, asked.userAgent)
	return err == nil && sent.name == judged.name
}

// admit judges a request as it is on the wire, and waits for its turn. A redirect fails with
// ErrRedirectWait if the wait is too long. A request of a clone waits as long as a page does.
func (t *transport) admit(ctx context.Context, q *request) error {
	if q.redirect {
		patient, cancel := context.WithTimeoutCause(ctx, redirectPatience, ErrRedirectWait)
		defer cancel()
		ctx = patient
	}
	err := t.check(ctx, q)
	if q.dry != nil {
		t.report.notSent(q.target.url, q.dry, true)
	}
	if err != nil {
		return err
	}
	return t.start(ctx, q, true)
}

// reject ends q, which is not sent because of err. It returns the error for net/http.
func (t *transport) reject(q *request, err error) error {
	denied := (*DisallowedError)(nil)
	switch {
	case errors.As(err, &denied):
		t.countDenied(q.host, denied, q.numbers)
	case isForbidden(err), errors.Is(err, ErrRedirectWait):
		t.report.tellKept(q.target.url, err, q.numbers)
	}
	refused := &refusedError{cause: err, url: q.target.url.Redacted()}
	q.close()
	return refused
}

// deniedAgain returns the error of a request that is not sent once more because of err.
func (g *gate) deniedAgain(q *request, err error) error {
	denied := (*DisallowedError)(nil)
	if !errors.As(err, &denied) {
		return err
	}
	g.countDenied(q.host, denied, q.numbers)
	return &refusedError{cause: err, url: q.target.url.Redacted()}
}

// trace prepares the events of q, which is about to go on the wire.
func (t *transport) trace(q *request, req *http.Request) {
	q.trace.report = t.report
	q.trace.url = q.target.url
	q.trace.numbers = q.numbers
	q.trace.kind = RequestPage
	if q.redirect && req.Response.Request != nil {
		q.trace.kind = RequestRedirect
		if t.report.events.Active() {
			q.trace.from = req.Response.Request.URL.Redacted()
		}
	}
}

// Followed implements backend.Controller.
func (t *transport) Followed(redirect *http.Request) {
	t.report.warn("the transport follows redirects by itself: they are sent before robots.txt and the crawl delay are known; make its http.Client return http.ErrUseLastResponse from CheckRedirect", "url", redirect.URL.Redacted())
}

// Stray implements backend.Controller. Colly's built-in check requests robots.txt without the context
// of its collector.
func (t *transport) Stray(req *http.Request) {
	if !hasRobots(req.URL) || req.URL.Path == "/robots.txt" {
		return
	}
	t.report.warn("a request that the plugin does not govern was sent: its collector was cloned before Attach and shares its client; attach it as well, or give it a client of its own", "url", req.URL.Redacted())
}
