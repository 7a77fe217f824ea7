package collyrobots

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/feed"
)

// A fedPage is a page that a sitemap lists, from the moment when the collector gets it until its
// request is done. It is in the request's Context. The pages that the callbacks of that request
// visit have the same Context, so the fedPage belongs to the first request that claims it. The
// methods that the hooks call do nothing if the fedPage is nil.
type fedPage struct {
	done  func(feed.Result)
	from  string                        // the host that led to it
	owner atomic.Pointer[colly.Request] // the request that has claimed it; nil if none has

	// stored is set if the page is in a urlstore.Store, and not listed by a sitemap.
	stored bool
	// recorded is set if the option Frontier has recorded the page, so that it can go back.
	recorded bool
	// ctx and depth are those of the request of a page that is recorded. ctx is nil if it is not
	// known.
	ctx   *colly.Context
	depth int
	// unaccepted is set if the collector was not asked whether it accepts the page. So the visit
	// that it has accepted for this URL belongs to another request.
	unaccepted bool
	// settles is set if the result counts only when the last callback of the user has returned,
	// because the callbacks may visit further pages. The hooks then call settle.
	settles bool

	// keep records the validators of a page that is stored, when it is done. It is nil before the
	// last callback.
	keep func()

	// hookMayFail is set if Colly may call no hook after the exchange. It is valid when the page is
	// claimed.
	hookMayFail bool

	// mu protects the fields below it.
	mu     sync.Mutex
	timer  *time.Timer
	ended  bool         // its result is known
	found  *feed.Result // the result that the hooks have found; nil if there is none. See settles.
	lapsed bool         // no hook was called for fedLimit
	sent   bool         // its exchange has ended, and hookMayFail is set
}

// ctxPage is the key of a fedPage, or of its name, in the Context of a request.
const ctxPage = "collyrobots.page"

// fedLimit is how long the plugin waits for a hook of a fed page that Colly may never call. Colly
// does not report that a later OnRequest callback has aborted a request, that the character set of
// a page was not detected, or that a request of a queue was refused.
const fedLimit = 10 * time.Second

// newFedPage returns a page that the host from has led to. done is called with the result of the
// page. If a hook is late, done is called twice: when fedLimit has passed, and with the result.
func newFedPage(from string, done func(feed.Result)) *fedPage {
	return &fedPage{done: done, from: from}
}

// claimed reports whether a request has claimed the page.
func (p *fedPage) claimed() bool { return p.owner.Load() != nil }

// await gives the page up unless a hook is called for it within fedLimit.
func (p *fedPage) await() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaitLocked()
}

// awaitHook is like await, for the hook that should follow the exchange. It has no effect if that
// hook is certain. The hook may be late, because Colly calls it after the delay of a LimitRule.
func (p *fedPage) awaitHook() {
	if p == nil || !p.hookMayFail {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = true
	p.awaitLocked()
}

// awaitClaim is like await, unless the page is claimed.
func (p *fedPage) awaitClaim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.claimed() {
		p.awaitLocked()
	}
}

// awaitLocked is await. p.mu is held.
func (p *fedPage) awaitLocked() {
	if p.ended {
		return
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(fedLimit, p.lapse)
	} else {
		p.timer.Reset(fedLimit)
	}
}

// lapse is called when no hook was called for the page in time.
func (p *fedPage) lapse() {
	p.mu.Lock()
	over := p.ended || p.lapsed || p.found != nil
	sent := p.sent
	p.lapsed = true
	p.mu.Unlock()
	switch {
	case over:
	case !p.claimed():
		p.done(feed.Skipped)
	case sent:
		p.done(feed.Silent)
	default:
		p.done(feed.Unsent)
	}
}

// stopWait ends the wait of await, because a hook was called.
func (p *fedPage) stopWait() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

// end reports the result of the page, which its hooks have found. Only the first call has an
// effect.
func (p *fedPage) end(result feed.Result) {
	if p == nil {
		return
	}
	p.stopWait()
	p.mu.Lock()
	if p.settles {
		if p.found == nil {
			p.found = &result
		}
		p.mu.Unlock()
		return
	}
	over := p.ended
	p.ended = true
	p.mu.Unlock()
	if !over {
		p.done(result)
	}
}

// aborted reports that a callback has aborted the request of the page.
func (p *fedPage) aborted() {
	if p != nil && p.stored {
		p.endNow(feed.Done)
		return
	}
	p.end(feed.Skipped)
}

// settle is called after the last callback of the user. It reports the result that was passed to
// end, if any.
func (p *fedPage) settle() {
	if p == nil {
		return
	}
	p.mu.Lock()
	over := p.ended || p.found == nil
	p.ended = p.ended || p.found != nil
	p.mu.Unlock()
	if !over {
		p.done(*p.found)
	}
}

// endNow is end and settle, for a page that gets no other hook.
func (p *fedPage) endNow(result feed.Result) {
	p.end(result)
	p.settle()
}

// over reports whether the result of the page is known, or the page was given up.
func (p *fedPage) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended || p.lapsed
}

// fedPages finds the fed page of a request. colly/queue serializes its requests, so their Context
// contains the name of the page.
type fedPages struct {
	inUse  atomic.Bool // pages may be fed; if false, no Context is searched
	byName sync.Map    // *fedPage by name
	taken  sync.Map    // *fedPage by *colly.Request: pages of a urlstore.Store that did not wait in it
	late   sync.Map    // *fedPage by weak.Pointer[colly.Request]: those that have lapsed
}

// name gives p a name until its result is known. The name is unique, even among other processes.
func (f *fedPages) name(p *fedPage) string {
	name := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	f.inUse.Store(true)
	f.byName.Store(name, p)
	done := p.done
	p.done = func(r feed.Result) {
		if r != feed.Silent && r != feed.Unsent {
			f.byName.Delete(name)
		}
		done(r)
	}
	return name
}

// in returns the page in a Context, or nil.
func (f *fedPages) in(ctx *colly.Context) *fedPage {
	if !f.inUse.Load() {
		return nil
	}
	switch p := ctx.GetAny(ctxPage).(type) {
	case *fedPage:
		return p
	case string:
		if p, ok := f.byName.Load(p); ok {
			return p.(*fedPage)
		}
	}
	return nil
}

// claim gives the fed page in the Context of r to r, unless another request has claimed it.
// hookMayFail says that Colly may call no hook after the exchange of r. claim returns the page that
// r has claimed, or nil.
func (f *fedPages) claim(r *colly.Request, hookMayFail bool) *fedPage {
	p := f.in(r.Ctx)
	if p == nil {
		return nil
	}
	if p.owner.CompareAndSwap(nil, r) {
		p.stopWait()
		p.hookMayFail = hookMayFail
	}
	return f.of(r)
}

// of returns the fed page that r has claimed, or nil.
func (f *fedPages) of(r *colly.Request) *fedPage {
	if !f.inUse.Load() {
		return nil
	}
	if p, ok := f.taken.Load(r); ok {
		return p.(*fedPage)
	}
	if p := f.in(r.Ctx); p != nil && p.owner.Load() == r {
		return p
	}
	if p, ok := f.late.Load(weak.Make(r)); ok {
		return p.(*fedPage)
	}
	return nil
}

// take makes r the owner of p, which is not in the Context of r, until the result of p is known.
func (f *fedPages) take(p *fedPage, r *colly.Request) {
	p.owner.Store(r)
	f.taken.Store(r, p)
}

// giveUp is called when a page that r may have taken has lapsed. Hooks that are called
// later still find the page, but it does not keep r alive.
func (f *fedPages) giveUp(p *fedPage) {
	r := p.owner.Load()
	_, taken := f.taken.LoadAndDelete(r)
	if !taken {
		return
	}
	p.owner.Store(nil)
	w := weak.Make(r)
	f.late.Store(w, p)
	runtime.AddCleanup(r, func(w weak.Pointer[colly.Request]) { f.late.Delete(w) }, w)
}

// forget is called when the result of p is known.
func (f *fedPages) forget(p *fedPage) {
	if r := p.owner.Load(); r != nil {
		f.taken.Delete(r)
	}
}
