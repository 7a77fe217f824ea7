package collyrobots

import (
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
)

// feedLease is how long a place in the window stays with a request that was let through and did not reach the wire: a later
// OnRequest callback may have aborted it, which nothing tells.
const feedLease = 10 * time.Second

// A place in the window belongs to one fed page, from the moment it is handed to the collector until its request is done. It
// travels in the request's context, which the page's own children share: only the first request to claim it holds it.
type place struct {
	window chan struct{}
	file   *ledger // that lists the page; may be nil
	mu     sync.Mutex
	page   *colly.Request
	lease  *time.Timer // runs between the two stages of a request
	left   bool
}

// of returns the place that r holds, or nil.
func (f *feeder) of(r *colly.Request) *place {
	if f == nil {
		return nil
	}
	p, _ := r.Ctx.GetAny(ctxPlace).(*place)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page != r {
		return nil
	}
	return p
}

// claim gives the place in r's context to r, if it is the first to come.
func (f *feeder) claim(r *colly.Request) {
	if f == nil {
		return
	}
	if p, _ := r.Ctx.GetAny(ctxPlace).(*place); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.page == nil {
			p.page = r
		}
	}
}

// admitted starts the lease of a page that passed the first stage.
func (f *feeder) admitted(r *colly.Request) {
	if p := f.of(r); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lease = time.AfterFunc(feedLease, p.leave)
	}
}

// sent ends the lease: the page is on the wire, and one of its hooks will come.
func (f *feeder) sent(r *colly.Request) {
	if p := f.of(r); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stopLease()
	}
}

// release gives the place of a request that is done back.
func (f *feeder) release(r *colly.Request) {
	if p := f.of(r); p != nil {
		p.leave()
	}
}

// held tells whether a request has claimed the place.
func (p *place) held() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.page != nil
}

// leave gives the place back, once.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopLease()
	if !p.left {
		p.left = true
		<-p.window
		p.file.left()
	}
}

func (p *place) stopLease() {
	if p.lease != nil {
		p.lease.Stop()
	}
}
