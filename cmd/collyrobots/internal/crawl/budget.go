package crawl

import (
	"context"
	"sync"
)

// A budget limits the number of pages of a crawl. When the limit is reached and all requests are
// done, it ends the crawl.
type budget struct {
	ctx context.Context // of the crawl
	end func()          // cancels ctx
	max int             // 0 means no limit

	mu        sync.Mutex
	changed   sync.Cond       // signals that requested has become smaller, or that the crawl has ended
	requested int             // the number of pages that were requested
	open      map[uint32]bool // the requests in flight
}

// newBudget returns a budget of max pages for a crawl with ctx, which end cancels.
func newBudget(ctx context.Context, max int, end func()) *budget {
	b := &budget{ctx: ctx, end: end, max: max, open: make(map[uint32]bool)}
	b.changed.L = &b.mu
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	return b
}

// take waits until a page may be requested. It returns false if the crawl ends before that.
func (b *budget) take(request uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.isReached() && b.ctx.Err() == nil {
		b.changed.Wait()
	}
	if b.isReached() {
		return false
	}
	b.requested++
	b.open[request] = true
	return true
}

// giveBack undoes take for a page that was not requested.
func (b *budget) giveBack(request uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[request] {
		delete(b.open, request)
		b.requested--
		b.changed.Signal()
	}
}

// done records that the request for a page is done.
func (b *budget) done(request uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, request)
	if b.isReached() && len(b.open) == 0 {
		b.end()
	}
}

// spent reports whether the limit is reached.
func (b *budget) spent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isReached()
}

// isReached is spent for callers that hold b.mu.
func (b *budget) isReached() bool { return b.max > 0 && b.requested >= b.max }
