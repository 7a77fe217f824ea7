// Package fed follows the pages that the plugin has passed to a collector, from a sitemap or from a
// urlstore.Store, until the result of each page is known.
//
// A Page is in the Context of its request. The hooks of the collector find it there, and report what
// becomes of the request. Colly may call no hook at all: it does not report that a later OnRequest
// callback has aborted a request, that the character set of a page was not detected, or that a
// request of a queue was refused. A Page therefore lapses if a hook does not come in time.
//
// The package knows nothing about robots.txt, sitemaps and stores.
package fed

import (
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/feed"
)

// limit is how long a page waits for a hook that Colly may never call.
const limit = 10 * time.Second

// A Listener learns what becomes of a page. Its methods are called without a lock.
type Listener interface {
	// Ended is called with the result of p, once. It is not called if no hook of p ever comes.
	Ended(p *Page, r feed.Result)
	// Lapsed is called at most once, before Ended, if no hook of p has come in time. r is
	// feed.Silent or feed.Unsent.
	Lapsed(p *Page, r feed.Result)
}

// A kind says where a page comes from.
type kind uint8

const (
	listed     kind = iota // a sitemap lists it
	queued                 // it is in the urlstore.Store of a queue
	recorded               // it is in the urlstore.Store of the option Frontier
	unrecorded             // that urlstore.Store could not record it
)

// A state is a step in the life of a page. A page begins in the state waiting.
//
//	event                        from                  to        listener
//	a request claims the page    waiting               claimed
//	its exchange has ended       claimed               sent
//	no hook comes in time        waiting               ended     Ended(Skipped or Unsent)
//	                             claimed               lapsed    Lapsed(Unsent)
//	                             sent                  lapsed    Lapsed(Silent)
//	a hook reports the result    all before found      ended     Ended(result)
//	of a page of Frontier        all before found      found
//	the last callback returns    found                 ended     Ended(result)
//
// All other events leave the state as it is.
type state uint8

const (
	waiting state = iota // no request has claimed the page
	claimed              // a request has claimed it
	sent                 // its exchange has ended, and Colly may call no further hook
	lapsed               // no hook came in time; a late result still counts
	found                // its result is known, but counts only when the last callback has returned
	ended                // its result was reported
)

// A Page is a page that the plugin has passed to a collector. The pages that the callbacks of its
// request visit have the same Context, so the Page belongs to the first request that claims it. The
// methods that the hooks call do nothing if the Page is nil. All methods may be called from any
// goroutine.
type Page struct {
	// From is the host that led to the page.
	From string
	// Keep records the validators of a page that outlives the hooks. It is called when the page is
	// done. It is nil before the last callback, and for other pages.
	Keep func()

	kind     kind
	listener Listener
	names    *Pages // has the name of the page; nil if it has none
	name     string

	// mu protects the fields below it.
	mu         sync.Mutex
	state      state
	owner      *colly.Request // the request that has claimed the page; nil if none has
	result     feed.Result    // valid in the states found and ended
	timer      *time.Timer    // calls lapse; nil before the first wait
	unaccepted bool           // see SetUnaccepted
}

// Listed returns a page that a sitemap lists and that the host from has led to. done is called with
// its result, and before that with feed.Silent or feed.Unsent if the page lapses.
func Listed(from string, done func(feed.Result)) *Page {
	return &Page{From: from, kind: listed, listener: doneFunc(done)}
}

// Queued returns a page that a queue has got from its urlstore.Store.
func Queued(from string, l Listener) *Page {
	return &Page{From: from, kind: queued, listener: l}
}

// Recorded returns a page that is in the urlstore.Store of the option Frontier. Its callbacks may
// visit further pages, so its result counts when the last of them has returned.
func Recorded(from string, l Listener) *Page {
	return &Page{From: from, kind: recorded, listener: l}
}

// Unrecorded returns a page that the urlstore.Store of the option Frontier could not record. Apart
// from that it is like a page of Recorded.
func Unrecorded(from string, l Listener) *Page {
	return &Page{From: from, kind: unrecorded, listener: l}
}

// A doneFunc is the Listener of a page that a sitemap lists.
type doneFunc func(feed.Result)

func (f doneFunc) Ended(_ *Page, r feed.Result)  { f(r) }
func (f doneFunc) Lapsed(_ *Page, r feed.Result) { f(r) }

// IsListed reports whether a sitemap lists the page.
func (p *Page) IsListed() bool { return p.kind == listed }

// IsRecorded reports whether the page is in the urlstore.Store of the option Frontier, so that it
// may go back to it.
func (p *Page) IsRecorded() bool { return p != nil && p.kind == recorded }

// OutlivesHooks reports whether the result of the page counts only after the last callback.
func (p *Page) OutlivesHooks() bool {
	return p != nil && (p.kind == recorded || p.kind == unrecorded)
}

// SetUnaccepted records that the collector was not asked whether it accepts the page. So the visit
// that it has accepted for this URL belongs to another request.
func (p *Page) SetUnaccepted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unaccepted = true
}

// IsUnaccepted reports whether SetUnaccepted was called.
func (p *Page) IsUnaccepted() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unaccepted
}

// Claim gives the page to r, unless another request has claimed it or its result is known. It
// reports whether the page belongs to r now.
func (p *Page) Claim(r *colly.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == waiting {
		p.state = claimed
		p.owner = r
		p.stopTimer()
	}
	return p.owner == r
}

// Owner returns the request that has claimed the page, or nil.
func (p *Page) Owner() *colly.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owner
}

// Disown makes the page forget its request, so that it does not keep the request alive.
func (p *Page) Disown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner = nil
}

// IsClaimed reports whether a request has claimed the page.
func (p *Page) IsClaimed() bool { return p.Owner() != nil }

// IsOver reports whether the result of the page is known, or the page has lapsed.
func (p *Page) IsOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == ended || p.state == lapsed
}

// AwaitClaim makes the page end if no request claims it in time.
func (p *Page) AwaitClaim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == waiting {
		p.startTimer()
	}
}

// Await makes the page lapse if no hook of its request is called in time.
func (p *Page) Await() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startTimer()
}

// AwaitHook is like Await. It is called when the exchange of the page has ended and Colly may call no
// further hook. The hook may be late, because Colly calls it after the delay of a LimitRule.
func (p *Page) AwaitHook() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == claimed {
		p.state = sent
	}
	p.startTimer()
}

// Hook ends the wait of Await and AwaitHook, because a hook was called.
func (p *Page) Hook() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopTimer()
}

// startTimer calls lapse when limit has passed. p.mu is held.
func (p *Page) startTimer() {
	switch {
	case p.state >= lapsed:
	case p.timer == nil:
		p.timer = time.AfterFunc(limit, p.lapse)
	default:
		p.timer.Reset(limit)
	}
}

// stopTimer ends the wait for a hook. p.mu is held.
func (p *Page) stopTimer() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// lapse is called when no hook was called in time.
func (p *Page) lapse() {
	p.mu.Lock()
	before := p.state
	switch before {
	case waiting:
		p.state = ended
		p.result = p.unclaimed()
	case claimed, sent:
		p.state = lapsed
	}
	p.mu.Unlock()
	switch before {
	case waiting:
		p.report()
	case claimed:
		p.listener.Lapsed(p, feed.Unsent)
	case sent:
		p.listener.Lapsed(p, feed.Silent)
	}
}

// unclaimed returns the result of a page that no request has claimed, because the collector has
// refused it. A page that is in a store is tried again, because the reason may be MaxRequests.
func (p *Page) unclaimed() feed.Result {
	if p.kind == listed {
		return feed.Skipped
	}
	return feed.Unsent
}

// End reports the result of the page, which its hooks have found. Only the first call has an effect.
// The result of a page of the option Frontier counts when Settle is called.
func (p *Page) End(r feed.Result) {
	if p == nil {
		return
	}
	next := ended
	if p.OutlivesHooks() {
		next = found
	}
	if p.find(r, next) && next == ended {
		p.report()
	}
}

// find sets the result of the page and its next state, unless the result is known. It reports
// whether it did.
func (p *Page) find(r feed.Result, next state) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopTimer()
	if p.state >= found {
		return false
	}
	p.state = next
	p.result = r
	return true
}

// Settle is called after the last callback. It reports the result that was passed to End, if any.
func (p *Page) Settle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	due := p.state == found
	if due {
		p.state = ended
	}
	p.mu.Unlock()
	if due {
		p.report()
	}
}

// EndNow is End and Settle, for a page that gets no other hook.
func (p *Page) EndNow(r feed.Result) {
	p.End(r)
	p.Settle()
}

// Aborted reports that a callback has aborted the request of the page.
func (p *Page) Aborted() {
	switch {
	case p == nil:
	case p.kind == listed:
		p.End(feed.Skipped)
	default:
		p.EndNow(feed.Done)
	}
}

// report reports the result of a page that has just ended.
func (p *Page) report() {
	if p.names != nil {
		p.names.byName.Delete(p.name)
	}
	p.listener.Ended(p, p.result)
}
