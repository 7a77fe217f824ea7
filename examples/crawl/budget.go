package main

import (
	"context"
	"sync"
)

// A budget bounds the pages of a crawl. When so many were asked for as may be, and all of them are
// done, the crawl ends.
type budget struct {
	ctx context.Context // of the crawl
	end func()          // ends the crawl
	max int             // 0: there is no bound

	mu      sync.Mutex
	changed sync.Cond // asked is less, or the crawl has ended
	asked   int
	open    map[uint32]bool // requests under way
}

// newBudget returns a budget of max pages for a crawl that ends with ctx. end ends ctx.
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

// take waits until a page may be asked for. It returns false if the crawl ends before that.
func (b *budget) take(request uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.allAsked() && b.ctx.Err() == nil {
		b.changed.Wait()
	}
	if b.allAsked() {
		return false
	}
	b.asked++
	b.open[request] = true
	return true
}

// giveBack notes that a page was not asked for after all.
func (b *budget) giveBack(request uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[request] {
		delete(b.open, request)
		b.asked--
		b.changed.Signal()
	}
}

// done notes that a page was dealt with.
func (b *budget) done(request uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, request)
	if b.allAsked() && len(b.open) == 0 {
		b.end()
	}
}

// spent reports whether no more pages may be asked for.
func (b *budget) spent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.allAsked()
}

func (b *budget) allAsked() bool { return b.max > 0 && b.asked >= b.max }
