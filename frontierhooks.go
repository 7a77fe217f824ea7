package collyrobots

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/fed"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// frontierHooks are the hooks of one collector for the option Frontier, and their state. Those
// that are called without the option do nothing if frontierHooks is nil.
type frontierHooks struct {
	h      *hooks
	number int          // Page.Collector
	last   sync.Once    // calls addLastRequestCallback
	added  atomic.Int32 // 1 if addLastRequestCallback was called
}

// callbacks returns the number of OnRequest callbacks that the plugin has added after those of the user.
func (fh *frontierHooks) callbacks() int {
	if fh == nil {
		return 0
	}
	return int(fh.added.Load())
}

// An arrival is what the option Frontier knows about a request: until the request has passed the
// OnRequest callback of the plugin and, if it has an attempt then, until the result of that is known.
type arrival struct {
	visit     *arrivals.Visit // nil if Colly has not looked whether the URL was visited
	submitted *fed.Page       // its page, if that comes from the urlstore.Store; otherwise nil
	page      *urlstore.Page  // to be recorded; nil if the request is not recorded

	attempt    *fed.Page // to fetch the page, which did not wait in the urlstore.Store; nil if there is none
	unrecorded bool      // the page could not be recorded, so the visit arrives when the page has ended
}

// assign makes r the owner of an attempt, which is not in the Context of r.
func (a *arrival) assign(attempt *fed.Page, r *colly.Request) {
	attempt.Claim(r)
	a.attempt = attempt
}

// onArrival is the first of all OnRequest callbacks, so that the request is recorded as the program
// has made it. The callbacks that are called for it now are called again if it waits.
func (fh *frontierHooks) onArrival(r *colly.Request) {
	if fh.h.retired() {
		return
	}
	fh.h.guardCallbacks()
	a := new(arrival)
	page := fh.h.fed.Claim(r)
	hash, ok := arrivals.HashOf(r)
	if ok && !page.IsUnaccepted() {
		a.visit = fh.h.visits.Arriving(hash)
	}
	switch {
	case page.IsRecorded():
		a.submitted = page
		r.Ctx.Put(CtxWaited, r.URL.String())
	case fh.isRecordable(r):
		a.page = fh.newPageOf(r, page)
	}
	fh.h.tracked.Set(r, a)
}

// prepare calls addLastRequestCallback once.
func (fh *frontierHooks) prepare() { fh.last.Do(fh.addLastRequestCallback) }

// addLastRequestCallback adds an OnRequest callback after those of the user, which sees the pages
// that they have aborted. It is called in the first Visit, because Colly reads the callbacks
// without a lock when the request exists.
func (fh *frontierHooks) addLastRequestCallback() {
	fh.added.Store(1)
	fh.h.c.OnRequest(func(r *colly.Request) {
		page := fh.h.fedPageOf(r)
		if r.IsAbort() {
			page.Aborted()
		} else {
			page.Hook()
		}
	})
}

// isRecordable reports whether a request is one that the option Frontier records.
func (fh *frontierHooks) isRecordable(r *colly.Request) bool {
	if r.Method != http.MethodGet || hasBody(r) || !judge.HasRobots(r.URL) {
		return false
	}
	if !fh.h.c.Async {
		fh.h.judge.Report.Warn("the pages of a collector without Async are not recorded in the urlstore.Store of Frontier", "url", r.URL.Redacted())
		return false
	}
	return true
}

// newPageOf returns the page of a request. listed is nil if no sitemap lists it.
func (fh *frontierHooks) newPageOf(r *colly.Request, listed *fed.Page) *urlstore.Page {
	p := &urlstore.Page{
		URL:       r.URL.String(),
		Host:      hostname.Of(r.URL),
		Collector: fh.number,
		Depth:     r.Depth,
		Request:   fh.marshal(r),
	}
	if u := fh.h.judge.Cleaned(r.URL); u != r.URL {
		p.Key = u.String()
	}
	if listed != nil {
		p.From = listed.From
	}
	return p
}

// marshal encodes a request without the values of its Context that would come back from JSON with
// another type, and without those of the plugin.
func (fh *frontierHooks) marshal(r *colly.Request) []byte {
	kept := colly.NewContext()
	r.Ctx.ForEach(func(key string, value any) any {
		switch {
		case key == fed.Key || key == CtxWaited:
		case survivesJSON(value):
			kept.Put(key, value)
		default:
			fh.h.judge.Report.Warn("the urlstore.Store of Frontier cannot keep a value in the Context of a request: use strings, or set it in OnRequest", "key", key)
		}
		return nil
	})
	encoded, err := (&colly.Request{URL: r.URL, Method: r.Method, Depth: r.Depth, Host: r.Host, Headers: r.Headers, Ctx: kept}).Marshal()
	if err != nil {
		return nil // a number that is not finite; the request is made again from its URL
	}
	return encoded
}

// survivesJSON reports whether a value comes back from JSON with the same type.
func survivesJSON(value any) bool {
	switch v := value.(type) {
	case nil, string, bool, float64:
		return true
	case []any:
		for _, element := range v {
			if !survivesJSON(element) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, element := range v {
			if !survivesJSON(element) {
				return false
			}
		}
		return true
	}
	return false
}

// record passes a request to the urlstore.Store, unless it comes from there. listed is the page of a
// sitemap, or nil. goOn is false if the request was aborted. Otherwise record returns the page that
// the hooks report the result of, which may be nil.
func (fh *frontierHooks) record(r *colly.Request, listed *fed.Page) (page *fed.Page, goOn bool) {
	f := fh.h.frontier
	a := fh.h.tracked.Get(r)
	if a == nil {
		return listed, true
	}
	defer func() {
		if a.attempt == nil {
			fh.h.tracked.Unset(r)
		}
		if a.unrecorded {
			a.visit.Passed()
		} else {
			a.visit.Arrived()
		}
	}()
	switch {
	case a.submitted != nil:
		fh.markRecorded(a, r)
		return a.submitted, true
	case a.page == nil, r.IsAbort(), fh.h.judge.Shard.Owns(a.page.Host, r.URL) != nil, !fh.h.judge.DryRun && fh.h.links.Origin(r) != "":
		return listed, true
	case fh.h.closed.Load() && f.isBroken(): // while Shutdown waits, pages are recorded
		a.unrecorded = true
		return listed, true
	}
	result, err := f.offer(fh.h, a, r)
	if err != nil {
		f.fail(a.page, err)
		page = f.goOnUnrecorded(fh.h, a, listed)
		a.assign(page, r)
		return page, true
	}
	listed.End(feed.Done)
	switch result {
	case goesOn:
		fh.markRecorded(a, r)
		page = f.handOut(a.page, &storedPage{frontier: f, page: a.page})
		a.assign(page, r)
	case isParked:
		r.Abort()
		f.tellParked(r, a.page, reporter.IDs{Collector: fh.h.c.ID, Request: r.ID})
	case isKnown:
		r.Abort()
	}
	f.wake(fh.h)
	return page, result == goesOn
}

// returnPage aborts a page that goes back to the urlstore.Store.
func (fh *frontierHooks) returnPage(q *gate.Request, r *colly.Request, page *fed.Page) {
	fh.h.judge.Wire.TellReturn(q.Host)
	q.Close()
	r.Abort()
	page.EndNow(feed.Unfinished)
}

// markRecorded is called for a request of a page that is recorded. If Colly has not looked whether
// the URL was visited, the retries of the request are recognized by a mark.
func (fh *frontierHooks) markRecorded(a *arrival, r *colly.Request) {
	if a.visit == nil {
		fh.h.retries.Mark(r, track.Recorded)
	}
}

// requestOf returns the request of a page.
func (fh *frontierHooks) requestOf(p *urlstore.Page) (*colly.Request, error) {
	encoded := p.Request
	if encoded == nil {
		var err error
		encoded, err = requestOf(p)
		if err != nil {
			return nil, err
		}
	}
	return fh.h.c.UnmarshalRequest(encoded)
}

// submit makes the collector request a page. Colly looks again whether the page is within its
// limits, but not whether it was visited. The request finds page in its Context.
func (fh *frontierHooks) submit(r *colly.Request, page *fed.Page) error {
	r.Ctx.Put(fed.Key, page)
	stop := fh.h.visits.Exempt(arrivals.HashOfURL(r.URL.String()))
	defer stop()
	err := r.Do()
	o := outcomeOf(err)
	if o.visited {
		page.SetUnaccepted() // another visit has used the exemption
		return r.Retry()
	}
	return err
}

// fedPageOf returns the fed page of r: the one that did not wait in a urlstore.Store, or the one in
// its Context that r has claimed. It returns nil if there is none.
func (c *core) fedPageOf(r *colly.Request) *fed.Page {
	if a := c.tracked.Get(r); a != nil && a.attempt != nil {
		return a.attempt
	}
	return c.fed.Of(r)
}
