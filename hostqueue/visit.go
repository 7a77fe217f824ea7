package hostqueue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
)

// visitKey is the key of the visit in the colly.Context of a request.
const visitKey = "collyrobots/hostqueue"

// A visit is one attempt to fetch a page.
type visit struct {
	run    *run
	ctx    context.Context // ends when Run must end
	page   page
	hold   *hold // of the host
	status int   // of the response, 0 if there was none; written and read by the goroutine of the visit

	expired bool // the lease expired before the request was sent; used by the goroutine of the visit

	// mu protects the fields below it. It is held while links are recorded in Redis.
	mu    sync.Mutex
	links []page // that are not recorded yet
	ended bool   // the links can no longer be recorded
}

// Follow records a link of a page, unless it is known. Call it in the callbacks of the page,
// instead of [colly.Request.Visit]. href may be relative. The link is recorded before the page
// counts as done, so it is not lost if the process is killed. Its depth is that of the page plus
// one, and it does not get the colly.Context of the page.
//
// Follow returns colly.ErrMaxDepth if the link is too deep for the collector, ErrPageDone if the
// page is done already, and ErrNotRun if Run has not made the request. Follow also returns an
// error if the link is not an http or https URL, and a *collyrobots.DeniedError if the option
// EnforceNofollow does not allow it. Spiders usually ignore these errors.
func (q *Queue) Follow(r *colly.Request, href string) error {
	v := visitOf(r)
	if v == nil || v.run.queue.keys != q.keys {
		return ErrNotRun
	}
	depth := v.page.depth + 1
	if most := v.run.collector.MaxDepth; most > 0 && depth > most {
		return colly.ErrMaxDepth
	}
	p, err := newPage(r.AbsoluteURL(href), depth)
	if err != nil {
		return err
	}
	err = v.run.robots.CheckLink(r, href)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return ErrPageDone
	}
	v.links = append(v.links, p)
	if len(v.links) < mostAtOnce {
		return nil
	}
	return v.flush()
}

// visitOf returns the visit of a request, or nil.
func visitOf(r *colly.Request) *visit {
	if r == nil || r.Ctx == nil {
		return nil
	}
	v, _ := r.Ctx.GetAny(visitKey).(*visit)
	return v
}

// flush records the links. v.mu is held.
func (v *visit) flush() error {
	links := v.links
	v.links = nil
	return v.run.persist(v.ctx, "record links", v.page.host, func(ctx context.Context) error {
		return v.run.queue.add(ctx, links)
	})
}

// end records the last links. From then on, Follow returns ErrPageDone.
func (v *visit) end() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	return v.flush()
}

// fetch fetches the page and calls its callbacks.
func (v *visit) fetch() (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic in a callback: %v", x)
			v.run.queue.log.Error("panic in a callback", "url", v.page.redacted(), "panic", x, "stack", string(debug.Stack()))
		}
	}()
	r := *v.run.template
	if !v.hold.valid() {
		return errExpired
	}
	u, err := v.page.parsedURL()
	if err != nil {
		return err
	}
	r.URL = u
	r.Depth = v.page.depth
	r.Body = nil
	r.Headers = new(http.Header)
	r.Ctx = colly.NewContext()
	r.Ctx.Put(visitKey, v)
	err = r.Retry() // unlike Do, it does not consult the collector's storage of visited URLs
	if v.expired {
		return errExpired
	}
	return err
}

// checkLease aborts a request that is about to be sent if the lease of its host has expired, because
// the process was stopped while the page waited. Another process may crawl the host by now.
func checkLease(r *colly.Request) {
	v := visitOf(r)
	if v != nil && r.Depth == v.page.depth && !v.hold.valid() { // not a page that a callback has visited directly
		v.expired = true
		r.Abort()
	}
}

// answered stores the status of a response.
func answered(resp *colly.Response) {
	v := visitOf(resp.Request)
	if v != nil && resp.Request.Depth == v.page.depth { // not a page that a callback has visited directly
		v.status = resp.StatusCode
	}
}

const (
	mostAttempts = 3
	pauseGrowth  = 10 // the factor from one pause before a retry to the next one
)

// ending says how a visit that has returned err has ended.
func (v *visit) ending(err error) ending {
	e := ending{page: v.page.text(), outcome: outcomeDone}
	switch v.class(err) {
	case denied:
		e.outcome = outcomeDenied
	case unsent:
		e.outcome = outcomeBack
	case failure:
		e.outcome = outcomeRetry
		again := v.page
		again.attempts++
		e.text = again.text()
		e.pause = v.run.queue.retryPause
		for range v.page.attempts {
			e.pause *= pauseGrowth
		}
		if again.attempts >= mostAttempts {
			e.outcome = outcomeFailed
			e.text = failureText(v.page, v.status, err)
		}
	}
	return e
}

// A class is the meaning of the result of a visit.
type class int

const (
	done    class = iota
	denied        // not sent, and it will not be sent later either
	unsent        // not sent, for a reason that does not depend on the page
	failure       // the next attempt may succeed
)

// class returns the class of the visit, which has returned err.
func (v *visit) class(err error) class {
	if err != nil && v.status == 0 && v.run.collector.Context.Err() != nil {
		return unsent // the error may be any cause of the context
	}
	return classify(err, v.status)
}

// filtered has the errors of Colly for requests that the settings of the collector reject.
var filtered = []error{colly.ErrForbiddenDomain, colly.ErrForbiddenURL, colly.ErrNoURLFiltersMatch, colly.ErrMaxDepth}

// classify returns the class of a visit from its error and the status of its response, which is 0
// if there was none.
func classify(err error, status int) class {
	var disallowed *collyrobots.DeniedError
	var private *collyrobots.PrivateNetworkError
	var shard *collyrobots.ShardError
	var pace *collyrobots.PaceError
	switch {
	case errors.As(err, &disallowed):
		d := disallowed.Decision
		unread := d.Reason == report.ReasonUnreachable || d.Reason == report.ReasonSiteDown
		if unread && d.Option != "WhenForbidden" {
			return failure
		}
		return denied
	case errors.As(err, &private), errors.As(err, &shard):
		return denied
	case errors.As(err, &pace), errors.Is(err, errExpired), errors.Is(err, context.Canceled), errors.Is(err, collyrobots.ErrClosed), errors.Is(err, colly.ErrMaxRequests):
		return unsent
	case status == 407, status == 408, status == 429, status >= 500:
		return failure
	case err == nil, status != 0:
		return done
	}
	for _, f := range filtered {
		if errors.Is(err, f) {
			return denied
		}
	}
	return failure
}

// wait returns the time until the host may get its next request, or 0 if the visit has not changed
// that. err is the error of the visit.
func (v *visit) wait(ctx context.Context, err error) time.Duration {
	switch v.class(err) {
	case denied:
		return 0 // nothing was sent
	case unsent:
		if ctx.Err() == nil {
			return unsentWait
		}
		return 0
	}
	// The robots.txt is known, so Check waits for nothing.
	d, err := v.run.robots.Check(context.WithoutCancel(ctx), v.page.url)
	if err != nil || !d.Allowed {
		return 0
	}
	return max(d.Delay, time.Until(d.NotBefore))
}
