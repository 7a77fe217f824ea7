package collyrobots

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/track"
)

// deny logs a page that is not sent, or that would not be sent without the dry run, and calls
// OnDenied.
func (h *hooks) deny(r *colly.Request, err error) {
	err = public(err)
	h.onDenied.notSent(h.judge.Report, r.URL, err, h.judge.DryRun)
	o := outcomeOf(err)
	if h.retries.Deny(r, o.denial()) > track.MaxDenials {
		h.warnOfRetries(r, err)
		return
	}
	for _, f := range h.onDenied {
		f(r, err)
	}
}

// endRetries aborts a page that OnDenied or OnError retries again and again although it is denied.
// Otherwise such a loop would never end, and would use up the stack of a synchronous collector.
func (h *hooks) endRetries(q *gate.Request, r *colly.Request, err error) {
	q.Close()
	r.Abort()
	h.warnOfRetries(r, err)
	page := h.fedPageOf(r)
	h.finish(r, 0, outcomeOf(err)) // Colly calls no other hook for an aborted request
	page.Settle()
}

// onDenied are the functions of the option OnDenied.
type onDenied []func(*colly.Request, error)

// notSent logs a request that is not sent, or would not be sent without the dry run. If the user
// has not set OnDenied, the first denial of each host has level INFO. Otherwise a crawl that may
// fetch nothing would log nothing.
func (f onDenied) notSent(r *reporter.Reporter, u *url.URL, err error, dryRun bool) {
	level := slog.LevelDebug
	message := "request denied"
	o := outcomeOf(err)
	switch {
	case dryRun:
		level = slog.LevelInfo
	case len(f) == 0 && o.denied != nil && o.denied.First:
		level = slog.LevelInfo
		message = "request denied, the first of its host; set OnDenied to get all denials"
	}
	r.Log.Log(context.Background(), level, message, "url", u.Redacted(), "error", err, "sent", dryRun)
}

// warnOfRetries warns once that retries of a denied page make no sense.
func (h *hooks) warnOfRetries(r *colly.Request, err error) {
	h.judge.Report.Warn("OnDenied or OnError calls Retry again and again: a request is denied until its robots.txt has been read again or its host may be requested again, so OnDenied is not called for it any more",
		"url", r.URL.Redacted(), "count", track.MaxDenials, "error", err)
}

// brake delays a page by one second. It is called for a page that a callback retries again and
// again while the reason of its denials may still pass. Nothing else slows such a loop down.
func (h *hooks) brake(q *gate.Request) {
	ctx, release := h.judge.Policies.Until(h.c.Context)
	defer release()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	q.Tick()
}

// refuse makes a page fail that OnRequest has not admitted. A page whose robots.txt got no response
// may still come from CacheDir, and may be admitted in OnRequestHeaders if its headers change.
func (h *hooks) refuse(q *gate.Request, r *colly.Request, err error) {
	o := outcomeOf(err)
	if o.silent {
		q.RefuseUnanswered(err, *r.Headers)
		return
	}
	q.Refuse(err)
	if !o.limited { // a page from CacheDir is not sent
		q.Uncached = keepFromCache(h.c, r)
	}
}

// failsEarly reports whether refused pages fail in OnRequest, so that they take no slot of a
// LimitRule. In a synchronous collector, Visit must return the error, which only the transport can
// do.
func (h *hooks) failsEarly() bool { return h.c.Async }

// mayFailEarly reports whether a page fails in OnRequest. A page may be refused and still come from
// CacheDir.
func (h *hooks) mayFailEarly(q *gate.Request, r *colly.Request) bool {
	return q.StillRefused(*r.Headers) && h.failsEarly() && !cached(h.c, r)
}

// failEarly makes a refused page fail as it would in the transport.
func (h *hooks) failEarly(q *gate.Request, r *colly.Request) {
	if q.Uncached {
		allowCache(r)
	}
	if body, ok := r.Body.(io.Closer); ok {
		body.Close() // as the transport does
	}
	err := h.gate.Reject(h.c.Context, q, q.Refusal())
	h.handle.Fail(r, &url.Error{Op: operationOf(r.Method), URL: r.URL.Redacted(), Err: err})
}

// operationOf returns the Op that net/http gives a *url.Error for a method.
func operationOf(method string) string {
	if method == "" {
		return "Get"
	}
	return method[:1] + strings.ToLower(method[1:])
}
