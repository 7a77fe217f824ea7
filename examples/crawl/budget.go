package main

import "sync"

// A budget bounds the pages of a crawl. When so many were asked for as may be, and all of them are
// done, the crawl ends.
type budget struct {
	max int    // 0: there is no bound
	end func() // ends the crawl

	mu    sync.Mutex
	asked int
	open  map[uint32]bool // requests under way
}

// take reports whether a page may be asked for.
func (b *budget) take(request uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.max > 0 && b.asked >= b.max {
		return false
	}
	b.asked++
	b.open[request] = true
	return true
}

// done notes that a page was dealt with.
func (b *budget) done(request uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.open, request); b.max > 0 && b.asked >= b.max && len(b.open) == 0 {
		b.end()
	}
}

// spent reports whether no more pages may be asked for.
func (b *budget) spent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max > 0 && b.asked >= b.max
}
