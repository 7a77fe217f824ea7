package collyrobots

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/feed"
)

// A fedPage is a page that a sitemap listed, from the moment when the collector has it until its
// request is done. It travels in the request's context, which the page's own children share: only
// the first request to claim it holds it. All methods of a nil page do nothing.
type fedPage struct {
	done  func(feed.Result)
	from  string // the host that led to it
	mu    sync.Mutex
	page  atomic.Pointer[colly.Request]
	timer *time.Timer
	ended bool
	quiet bool // for fedLimit
	mute  bool // Colly may call no hook at the page's end
	sent  bool // and its exchange has ended
}

// ctxPage is the key of a fedPage in a request's context, or of its name.
const ctxPage = "collyrobots.page"

// fedLimit is how long a fed page goes without a sign of life where Colly may never give one: it
// does not report that a later OnRequest callback has aborted a request, that the character set of
// a page was not detected, or that a request of a queue was refused.
const fedLimit = 10 * time.Second

// newFedPage returns a page to which a host has led.
func newFedPage(from string, done func(feed.Result)) *fedPage {
	return &fedPage{done: done, from: from}
}

// claimed reports whether a request has come for the page.
func (p *fedPage) claimed() bool { return p.page.Load() != nil }

// await gives the page up if nothing is heard of it for fedLimit.
func (p *fedPage) await() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaitLocked()
}

// awaitHook is await for the hook that should follow an exchange. It may come late, after the delay
// of a LimitRule.
func (p *fedPage) awaitHook() {
	if p == nil || !p.mute {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = true
	p.awaitLocked()
}

// awaitClaim is await until the page is claimed.
func (p *fedPage) awaitClaim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.claimed() {
		p.awaitLocked()
	}
}

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

// lapse is called when nothing was heard of the page.
func (p *fedPage) lapse() {
	p.mu.Lock()
	before := p.ended || p.quiet
	sent := p.sent
	p.quiet = true
	p.mu.Unlock()
	switch {
	case before:
	case !p.claimed():
		p.done(feed.Skipped)
	case sent:
		p.done(feed.Silent)
	default:
		p.done(feed.Unsent)
	}
}

// keep ends an await.
func (p *fedPage) keep() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

// end tells what became of the page. Only what is told first counts.
func (p *fedPage) end(result feed.Result) {
	if p == nil {
		return
	}
	p.keep()
	p.mu.Lock()
	before := p.ended
	p.ended = true
	p.mu.Unlock()
	if !before {
		p.done(result)
	}
}

// over reports whether it is known what became of the page, or is not going to be.
func (p *fedPage) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended || p.quiet
}

// fedPages find the page in a request's context. A queue writes its requests down: through it a
// page travels by its name.
type fedPages struct {
	inUse  atomic.Bool
	byName sync.Map // *fedPage by name
}

// name gives p a name until it is over. Nobody else has it, nor has another process.
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

// in returns the page in a context, or nil.
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

// claim gives the fed page in r's context to r, if it is the first to come. mute says that Colly
// may call no hook at its end.
func (f *fedPages) claim(r *colly.Request, mute bool) *fedPage {
	p := f.in(r.Ctx)
	if p == nil {
		return nil
	}
	if p.page.CompareAndSwap(nil, r) {
		p.keep()
		p.mute = mute
	}
	return f.of(r)
}

// of returns the fed page that r holds, or nil.
func (f *fedPages) of(r *colly.Request) *fedPage {
	if p := f.in(r.Ctx); p != nil && p.page.Load() == r {
		return p
	}
	return nil
}
