package collyrobots

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// redirectPatience is the longest time that a redirect waits for its host, because it holds a slot
// of a LimitRule while it waits.
const redirectPatience = time.Minute

// A transport is the plugin where the collectors' requests go on the wire. It judges and paces what
// no hook of Colly has seen: redirect hops, what an OnRequestHeaders callback rewrote, and the
// requests of clones that are not attached.
type transport struct{ *core }

// Knows implements backend.Governor.
func (t *transport) Knows(u *url.URL) bool { return t.requests.knows(u) }

// Before implements backend.Governor.
func (t *transport) Before(s *backend.Seam, req *http.Request) (backend.Trip, error) {
	if !hasRobots(req.URL) {
		return nil, nil
	}
	q := t.requests.take(req.URL)
	if q != nil && q.refusal != nil && q.unchanged() {
		return nil, t.reject(q, req, q.refusal)
	}
	var err error
	switch {
	case q == nil || !q.isFor(req):
		t.stranger(s, req)
		if q != nil {
			q.close() // its turn was another URL's
		}
		q = t.requests.open(req.URL, time.Now())
		q.early = req.Response == nil // which callbacks its collector has is not known
		q.follow(req.Response)
		err = t.takeTurn(q, s, req)
	case q.userAgent != userAgentOf(req.Header) && !t.namesakes(q, req), !q.ticket.OnWire():
		err = t.takeTurn(q, s, req) // a callback has given it another name, or its turn has lapsed
	}
	if err == nil && q.fed != nil && req.Response == nil {
		q.guard, err = t.limiter.guard(q.fed.from, q.host.Name(), req.URL)
	}
	if err != nil {
		return nil, t.reject(q, req, err)
	}
	q.limiter, q.retries, q.through = t.limiter, q.settings.retryThrottled, s.Transport()
	q.sending = sending{seam: s, req: req, by: t}
	t.trace(q, req)
	return q, nil
}

// namesakes reports whether req goes by the name that q was judged by, as far as robots.txt has names.
func (t *transport) namesakes(q *request, req *http.Request) bool {
	if q.settings.ignoreRobots || q.settings.byCollector() {
		return true
	}
	judged, err := t.policies.reader(q.settings, q.userAgent)
	if err != nil {
		return false
	}
	sent, err := t.policies.reader(q.settings, userAgentOf(req.Header))
	return err == nil && sent.name == judged.name
}

// Followed implements backend.Governor.
func (t *transport) Followed(hop *http.Request) {
	t.report.warn("the transport follows redirects by itself: they are sent before robots.txt and the crawl delay are known; make its http.Client return http.ErrUseLastResponse from CheckRedirect", "url", hop.URL.Redacted())
}

// Stray implements backend.Governor. Colly's built-in check asks for robots.txt in nobody's name.
func (t *transport) Stray(req *http.Request) {
	if !hasRobots(req.URL) || req.URL.Path == "/robots.txt" {
		return
	}
	t.report.warn("a request that the plugin does not govern was sent: its collector was cloned before Attach and shares its client; attach it as well, or give it a client of its own", "url", req.URL.Redacted())
}

// trace says what q is for those who hear of it, as it is about to go on the wire.
func (t *transport) trace(q *request, req *http.Request) {
	q.trace.events = t.report.events
	q.trace.url = q.url
	q.trace.kind = RequestPage
	if req.Response != nil && req.Response.Request != nil {
		q.trace.kind = RequestRedirect
		if q.trace.events.Active() {
			q.trace.from = req.Response.Request.URL.Redacted()
		}
	}
	q.handOver()
}

// stranger warns of a request that no hook has seen as it is, unless it is a redirect hop.
func (t *transport) stranger(s *backend.Seam, req *http.Request) {
	if req.Response == nil {
		s.Keep()
		t.report.warn("a request reached the transport that the plugin had not seen: a clone or collector without Attach, or an OnRequestHeaders callback that changes the URL", "url", req.URL.Redacted())
	}
}

// reject ends q, which is not sent because of err. It returns the error for net/http.
func (t *transport) reject(q *request, req *http.Request, err error) error {
	denied := (*DisallowedError)(nil)
	switch {
	case errors.As(err, &denied):
		t.countDenied(q.host, denied, &q.trace)
	case isForbidden(err), errors.Is(err, ErrRedirectWait):
		t.tellKept(req.URL, err, &q.trace)
	}
	q.close()
	return &refusedError{cause: err, url: req.URL.Redacted()}
}

// takeTurn judges q and waits for its turn. A redirect fails with ErrRedirectWait if the wait is
// too long. A request of a clone waits as long as a page does.
func (t *transport) takeTurn(q *request, s *backend.Seam, req *http.Request) error {
	ctx := req.Context()
	if req.Response != nil {
		patient, cancel := context.WithTimeoutCause(ctx, redirectPatience, ErrRedirectWait)
		defer cancel()
		ctx = patient
	}
	judge := func() error {
		err := t.judgeHop(ctx, q, s, req)
		if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
			denied.redirect = req.Response != nil
		}
		if err == nil && req.Response != nil && q.host.BusyFor(redirectPatience) {
			err = ErrRedirectWait
		}
		return err
	}
	err := judge()
	if err == nil {
		_, err = q.takeTurn(ctx, time.Now(), true, judge)
	}
	return err
}

func (t *transport) judgeHop(ctx context.Context, q *request, s *backend.Seam, req *http.Request) error {
	guard, err := t.guard(req)
	if err != nil {
		return err
	}
	v, err := t.decideSent(ctx, q, s, req, guard)
	if err != nil {
		return err
	}
	if private := (*PrivateNetworkError)(nil); guard != nil && v.policy.Forbidden() && errors.As(v.policy.Err(), &private) {
		guard.Address = private.Address
		return guard
	}
	q.guard = guard
	q.set(v)
	t.sitemaps.offer(v.policy)
	return t.refuseSent(v, q, req)
}

// decideSent decides about a request as the transport has it. guard is that of a redirect hop.
func (t *transport) decideSent(ctx context.Context, q *request, s *backend.Seam, req *http.Request, guard *PrivateNetworkError) (verdict, error) {
	f := &pageFetcher{fetcher: seamFetcher{limiter: t.limiter, through: s, name: q.name}, page: req.Header}
	switch {
	case guard != nil:
		f.host = guard.From
	case q.fed != nil && req.Response == nil:
		f.host = q.fed.from
	}
	return t.decideAs(ctx, time.Now(), req.URL, hostHeaderOf(req.Host, req.URL, req.Header), userAgentOf(req.Header), f)
}

// refuseSent is refuse for a request that the transport has.
func (t *transport) refuseSent(v verdict, q *request, req *http.Request) error {
	return t.refuse(v, req.URL, &q.trace, func(err error) { t.report.notSent(req.URL, err, true) })
}

// judgeSending judges a request that is sent once more. It leaves alone what the transport below may
// be reading: the host and the guard, which are the same.
func (t *transport) judgeSending(ctx context.Context, q *request) error {
	v, err := t.decideSent(ctx, q, q.sending.seam, q.sending.req, q.guard)
	if err != nil {
		return err
	}
	q.policy = v.policy
	v.obeyedBy(&q.ticket)
	err = t.refuseSent(v, q, q.sending.req)
	if err == nil {
		return nil
	}
	denied := (*DisallowedError)(nil)
	if errors.As(err, &denied) {
		t.countDenied(q.host, denied, &q.trace)
	}
	return &refusedError{cause: err, url: q.sending.req.URL.Redacted()}
}

// guard returns what guards a redirect hop; nil: nothing has to.
func (t *transport) guard(req *http.Request) (*PrivateNetworkError, error) {
	if req.Response == nil || req.Response.Request == nil {
		return nil, nil
	}
	return t.limiter.guard(hostOf(req.Response.Request.URL), hostOf(req.URL), req.URL)
}

// A seamFetcher fetches robots.txt for a request of which only the seam is known; nil is of none.
type seamFetcher struct {
	limiter *limiter
	through *backend.Seam
	name    *string // the collector's UserAgent; nil if it is not known
}

func (f seamFetcher) fetch(userAgent string, from origin, page http.Header) policy.Fetch {
	return f.limiter.fetch(f.through, userAgent, lead{kind: RequestRobots, origin: from, user: f}, page)
}

func (f seamFetcher) from() origin { return origin{} }

func (f seamFetcher) seam() *backend.Seam { return f.through }

func (f seamFetcher) collector() *string { return f.name }

// forbids implements fetcher. Which collector of the seam asks is not known.
func (f seamFetcher) forbids(u *url.URL) bool {
	if f.through == nil {
		return false
	}
	return slices.ContainsFunc(f.through.Collectors(), func(c *colly.Collector) bool { return forbidden(c.DisallowedDomains, u) })
}
