package collyrobots

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/report"
)

// A controller sees every request of the collectors when it goes on the wire. It lets requests pass
// that the hooks have admitted, and admits those that no hook of Colly has seen: redirects,
// requests that an OnRequestHeaders callback has changed, and requests of clones that are not
// attached. It implements backend.Controller.
type controller struct{ *core }

// Knows implements backend.Controller.
func (ctl *controller) Knows(u *url.URL) bool { return ctl.requests.Has(u) }

// Before implements backend.Controller.
func (ctl *controller) Before(s *backend.Seam, req *http.Request) (backend.Trip, error) {
	if !hasRobots(req.URL) {
		return nil, nil
	}
	q := ctl.takeRequest(req.URL)
	if q != nil && q.refusal != nil && q.unchanged() {
		return nil, ctl.reject(req.Context(), q, q.refusal)
	}
	sent := targetOf(req.URL, req.Host, req.Header)
	if q != nil && !(q.unchanged() && q.target.hostHeader == sent.hostHeader) {
		q.close() // it was admitted for another URL or site
		q = nil
	}
	seen := q != nil
	if !seen {
		q = ctl.newWireRequest(s, req)
	}
	q.seam = s
	q.header = req.Header
	sameName := seen && ctl.sameName(q, sent)
	if !sameName {
		q.giveBack() // robots.txt may have to be read under the new name, which takes a turn
	}
	if sameName {
		err := ctl.claim(q)
		if err != nil {
			return nil, ctl.reject(req.Context(), q, err)
		}
	}
	if !sameName || !q.ticket.OnWire() {
		q.target = sent
		err := ctl.admit(req.Context(), q)
		if err != nil {
			return nil, ctl.reject(req.Context(), q, err)
		}
	}
	ctl.send(q, s, req)
	return q, nil
}

// send prepares q, which has started, for the wire.
func (ctl *controller) send(q *request, s *backend.Seam, req *http.Request) {
	q.ctx = req.Context()
	q.retries = q.verdict.settings.retryThrottled
	q.through = s.Transport()
	q.makeConditional(req)
	ctl.prepareTrace(q, req)
	q.handOver()
}

// newWireRequest returns the record of a request that no hook has admitted, or that has changed
// since then.
func (ctl *controller) newWireRequest(s *backend.Seam, req *http.Request) *request {
	before := req.Response
	if before == nil {
		s.Keep()
		ctl.report.warn("a request reached the transport that the plugin had not seen: a clone or collector without Attach, or an OnRequestHeaders callback that changes the URL", "url", req.URL.Redacted())
		ctl.frontier.drop(req)
		return ctl.newRequest(req.URL, page{early: true}) // the callbacks of its collector are not known
	}
	p, _ := handedOn(before)
	q := ctl.newRequest(req.URL, p)
	q.follow(before)
	return q
}

// sameName reports whether robots.txt is read under the same name for the target that is sent as
// for the target that was judged. A callback may have changed the User-Agent header in between.
func (ctl *controller) sameName(q *request, sent target) bool {
	v := &q.verdict
	if q.target.userAgent == sent.userAgent || v.settings.ignoreRobots || v.settings.byCollector() {
		return true
	}
	judged, err := ctl.policies.reader(v.settings, q.target.userAgent)
	if err != nil {
		return false
	}
	now, err := ctl.policies.reader(v.settings, sent.userAgent)
	return err == nil && now.name == judged.name
}

// admit judges a request as it is on the wire, and waits for its turn. A redirect of a collector
// fails with ErrRedirectWait if the wait is too long. A request of a clone waits as long as a page
// does, and a redirect of a client, which holds no slot, as long as its context allows.
func (ctl *controller) admit(ctx context.Context, q *request) error {
	if q.redirect && q.entry != nil {
		return ctl.admitRedirect(ctx, q)
	}
	err := ctl.checkWithoutHook(ctx, q)
	if err != nil {
		return err
	}
	q.recall(ctx)
	return ctl.start(ctx, q, true)
}

// admitRedirect is admit for a redirect of a collector. The delay of its host may become known only
// when it is judged.
func (ctl *controller) admitRedirect(ctx context.Context, q *request) error {
	delay := ctl.limiter.hosts.Delay(time.Now(), hostOf(q.target.url))
	err := atMost(ctx, redirectPatience(delay), func(ctx context.Context) error {
		return ctl.checkWithoutHook(ctx, q)
	})
	if err != nil {
		return err
	}
	q.recall(ctx)
	delay = q.host.Delay(time.Now())
	return atMost(ctx, redirectPatience(delay), func(ctx context.Context) error {
		return ctl.start(ctx, q, true)
	})
}

// atMost calls wait with a context that ends with ErrRedirectWait after d.
func atMost(ctx context.Context, d time.Duration, wait func(context.Context) error) error {
	patient, cancel := context.WithTimeoutCause(ctx, d, ErrRedirectWait)
	defer cancel()
	return wait(patient)
}

// checkWithoutHook checks q, and logs a denial of a dry run, because no hook does so.
func (ctl *controller) checkWithoutHook(ctx context.Context, q *request) error {
	err := ctl.check(ctx, q)
	if q.dry != nil {
		ctl.report.notSent(q.target.url, q.dry, true)
	}
	return err
}

// reject ends q, which is not sent because of err. ctx is the context of q. reject returns the
// error that a *url.Error has to wrap.
func (c *core) reject(ctx context.Context, q *request, err error) error {
	denied := (*DisallowedError)(nil)
	switch {
	case errors.As(err, &denied):
		c.countDenied(q.host, denied, q.numbers)
	case isForbidden(err), errors.Is(err, ErrRedirectWait):
		c.report.tellUnsent(q.target.url, err, q.numbers)
	case q.host != nil && hasEnded(ctx, err):
		markEnded(q.host, err)
		c.report.unsent.add(err)
	}
	refused := &refusedError{cause: err, url: q.target.url.Redacted()}
	q.close()
	return refused
}

// prepareTrace sets the fields of the events of q, which is about to go on the wire.
func (ctl *controller) prepareTrace(q *request, req *http.Request) {
	q.trace.report = ctl.report
	q.trace.url = q.target.url
	q.trace.numbers = q.numbers
	q.trace.kind = report.RequestPage
	if q.redirect && req.Response.Request != nil {
		q.trace.kind = report.RequestRedirect
		if ctl.report.events.Active() {
			q.trace.from = req.Response.Request.URL.Redacted()
		}
	}
	q.trace.decide(&q.verdict, q.target.url)
}

// Redirected implements backend.Controller. Colly has marked the target of the redirect as visited.
func (ctl *controller) Redirected(req *http.Request, err error) {
	visited := (*colly.AlreadyVisitedError)(nil)
	if ctl.frontier != nil && !errors.As(err, &visited) {
		ctl.frontier.visits.Drop(arrivals.HashOfURL(req.URL.String()))
	}
}

// Followed implements backend.Controller.
func (ctl *controller) Followed(redirect *http.Request) {
	ctl.report.warn("the transport follows redirects by itself: they are sent before robots.txt and the crawl delay are known; make its http.Client return http.ErrUseLastResponse from CheckRedirect", "url", redirect.URL.Redacted())
}

// Stray implements backend.Controller. It does not warn of robots.txt: Colly's built-in check
// requests that without the context of its collector, so the request seems to belong to no plugin.
func (ctl *controller) Stray(req *http.Request) {
	if !hasRobots(req.URL) || req.URL.Path == "/robots.txt" {
		return
	}
	ctl.report.warn("a request that the plugin does not govern was sent: its collector was cloned before Attach and shares its client; attach it as well, or give it a client of its own", "url", req.URL.Redacted())
}
