package collyrobots

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/report"
)

// A refusedError is the error of a request that the plugin refuses. net/http puts it into a
// *url.Error.
type refusedError struct {
	cause error
	url   string // of the request; "" if the request has not reached the controller
}

// Error returns the text of the cause. If that begins with the URL of the request, the URL is left
// out, because the *url.Error has it.
func (e *refusedError) Error() string {
	return strings.Replace(e.cause.Error(), e.url+" denied: ", "denied: ", 1)
}

func (e *refusedError) Unwrap() error { return e.cause }

// Timeout reports whether the cause is a timeout. (*url.Error).Timeout calls it.
func (e *refusedError) Timeout() bool {
	timeout := interface{ Timeout() bool }(nil)
	return errors.As(e.cause, &timeout) && timeout.Timeout()
}

// An outcome says what an error means for a request: to the loop of retries, the feed, the frontier,
// the events, and the result of the page. The zero outcome is that of no error.
type outcome struct {
	err error

	// The following fields say why the plugin has not sent the request.
	refusal   error         // the reason, without the errors that wrap it; nil if the request was sent, or failed for another reason
	denied    *judge.Denied // robots.txt or a limit denies the request; nil if not
	private   bool          // it would go to a private address
	forbidden bool          // its target must not be requested, or not from the site that led to it; set with private
	foreign   bool          // its host belongs to another shard
	unpaced   bool          // the Pacer has failed
	late      bool          // it is a redirect that would wait too long

	// The following fields say more about denied.
	unread  bool // robots.txt cannot be read now
	silent  bool // the host does not respond, so robots.txt is not known, and no page of the host can be fetched
	limited bool // StopAfterRefusals or MaxPagesPerHost denies the request; a later run may send it

	exchange.Failure // what err means on the wire

	// The following fields are about Colly.
	visited  bool // the URL, or the target of its redirect, was visited before
	looped   bool // its redirects lead back to one of their URLs; visited may be set as well
	aborted  bool // a callback has aborted the request
	filtered bool // the URL is outside of what the collector may visit
	maximum  bool // MaxRequests is reached
}

// outcomeOf returns what err means. It is the only function that looks for the errors of this
// package and of Colly in the error of a request.
func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{}
	}
	o := outcome{err: err}
	o.read(err)
	if o.denied != nil {
		o.readDecision(&o.denied.Decision)
	}
	if o.refusal == nil {
		o.refusal = o.findRefusal()
	}
	return o
}

// read sets the fields that err and the errors that it wraps decide. It walks through them once,
// because errors.Is and errors.As for each field would cost a denied page several microseconds.
func (o *outcome) read(err error) {
	if typednil.Is(err) {
		return
	}
	o.Failure.Add(err)
	o.readType(err)
	o.readValue(err)
	switch e := err.(type) {
	case *DeniedError:
		o.read(e.Decision.Err)
	case interface{ Unwrap() error }:
		o.read(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			o.read(inner)
		}
	}
}

// readType sets the fields that the type of err decides.
func (o *outcome) readType(err error) {
	switch e := err.(type) {
	case *refusedError:
		if o.refusal == nil {
			o.refusal = e.cause
		}
	case *judge.Denied:
		o.setDenied(e)
	case *DeniedError:
		o.setDenied(cmp.Or(e.denied, &judge.Denied{Decision: e.Decision}))
	case *PrivateNetworkError:
		o.private = true
		o.forbidden = true
	case *ShardError:
		o.foreign = true
	case *PaceError:
		o.unpaced = true
	case *colly.AlreadyVisitedError:
		o.visited = true
	}
}

// setDenied sets denied, unless an outer error has set it.
func (o *outcome) setDenied(d *judge.Denied) {
	if o.denied == nil {
		o.denied = d
	}
}

// readValue sets the fields that err decides because it is one of some variables.
func (o *outcome) readValue(err error) {
	switch err {
	case feed.ErrElsewhere, colly.ErrForbiddenDomain:
		o.forbidden = true
	case ErrRedirectWait:
		o.late = true
	case ErrRedirectLoop:
		o.looped = true
	case colly.ErrAbortedBeforeRequest, colly.ErrAbortedAfterHeaders:
		o.aborted = true
	case colly.ErrForbiddenURL, colly.ErrNoURLFiltersMatch, colly.ErrMaxDepth:
		o.filtered = true
	case colly.ErrMaxRequests:
		o.maximum = true
	}
}

// readDecision sets the fields that say more about denied.
func (o *outcome) readDecision(d *Decision) {
	o.unread = judge.IsUnread(d)
	o.silent = judge.IsSilent(d)
	o.limited = d.Reason == report.ReasonRefused || d.Reason == report.ReasonBudget
}

// findRefusal returns the field refusal of an error without a *refusedError.
func (o *outcome) findRefusal() error {
	switch {
	case o.denied != nil:
		return o.denied
	case o.Closed, o.private, o.foreign, o.unpaced:
		return o.err // the plugin has refused a second attempt, or the address of the connection
	}
	return nil
}

// temporary reports whether a page that was refused may soon be allowed: its robots.txt could not be
// read, or the Pacer has failed.
func (o *outcome) temporary() bool {
	if o.denied != nil {
		return o.unread
	}
	return o.unpaced
}

// denial returns the reason why a request was refused, as a row of denials knows it.
func (o *outcome) denial() track.Denial {
	d := track.Denial{Temporary: o.unpaced}
	if o.denied == nil {
		d.Later = o.forbidden || o.late
		return d
	}
	d.Later = o.denied.Redirect
	switch {
	case o.limited:
		d.Version = o.denied.Decision.NextTry
	case !o.silent: // otherwise each attempt may have requested the file again
		d.Version = o.denied.Decision.Expires
	}
	return d
}

// isEnd reports whether the crawl has ended, which is then the reason for the error. ctx is the
// context of the collector.
func (o *outcome) isEnd(ctx context.Context) bool { return ctx.Err() != nil || o.Closed }

// isFailure reports whether the page of the error has failed, as HostStats.Failed counts it, unless the
// crawl has ended.
func (o *outcome) isFailure() bool {
	return o.err != nil && o.denied == nil && !o.foreign && !o.Closed && !o.aborted && (!o.visited || o.looped)
}

// ofPage returns the result of a page that a sitemap lists. status is that of its response, or 0 if
// there was none. With Colly's option ParseHTTPErrorResponse, there is no error for any status.
func (o *outcome) ofPage(ctx context.Context, status int) feed.Result {
	switch {
	case o.err == nil && status < 400: // the usual case
		return feed.Done
	case o.isEnd(ctx):
		return feed.Unfinished
	case o.denied != nil && !o.denied.Redirect:
		return feed.Skipped
	case status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return feed.Failed // the status is not a property of the page
	case status >= 400 && status < 500:
		return feed.Done // the page does not exist or is not public
	}
	return feed.Failed
}

// ofAttempt is like ofPage, for a page that is in a urlstore.Store.
func (o *outcome) ofAttempt(ctx context.Context, status int) feed.Result {
	switch {
	case o.err == nil, o.isEnd(ctx):
	case o.visited, o.looped, o.aborted:
		return feed.Done // the target of its redirect was visited, or a callback has aborted it
	case o.temporary():
		return feed.Failed
	case o.limited:
		return feed.Unsent
	case o.denied != nil, o.foreign, o.forbidden, o.filtered:
		return feed.Skipped
	case status > 0 && status < 400:
		return feed.Done // Colly treats 203 to 399 as errors
	}
	return o.ofPage(ctx, status)
}

// ofVisit returns the result of a page that a sitemap lists if the collector has made no request.
func (o *outcome) ofVisit() feed.Result {
	switch {
	case o.maximum:
		return feed.Unfinished
	case o.visited:
		return feed.Done
	}
	return feed.Skipped
}

// ofSubmission is like ofVisit, for a page that is in a urlstore.Store.
func (o *outcome) ofSubmission() feed.Result {
	switch {
	case o.maximum:
		return feed.Unsent
	case o.filtered, o.forbidden:
		return feed.Skipped
	}
	return feed.Failed
}
