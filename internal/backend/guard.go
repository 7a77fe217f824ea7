package backend

import (
	"sync"

	"github.com/gocolly/colly/v2"
)

// This file keeps responses from the callbacks of the user. Colly itself calls them for every
// response that is no error.

// A guard wraps the callbacks of a collector.
type guard struct {
	// mu protects the fields below it, except skip, which is set before the first request.
	mu   sync.Mutex
	skip func(*colly.Response) bool // nil before Guard
	last bool                       // AddLast was called, so one of the callbacks is that of the plugin

	// The numbers of callbacks that are wrapped or belong to the plugin.
	guardedHeaders, guardedResponses, guardedScraped int
}

// Guard makes the collector skip its callbacks of OnResponseHeaders, OnResponse and OnScraped if
// skip returns true for the response. Callbacks that are registered by AddOwn and AddLast are not
// skipped. Guard must be called before AddOwn and AddLast.
func (h *Handle) Guard(skip func(*colly.Response) bool) { h.guard.skip = skip }

// AddOwn calls register, which registers callbacks of the plugin. They are called for every
// response.
func (h *Handle) AddOwn(register func()) {
	g := &h.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.skip == nil {
		register()
		return
	}
	h.wrap()
	register()
	h.countGuarded()
}

// AddLast registers an OnScraped callback of the plugin. It stays the last one, also if the program
// registers others while no request is under way. It is called after Guard, and once.
func (h *Handle) AddLast(f colly.ScrapedCallback) {
	h.AddOwn(func() { h.collector.OnScraped(f) })
	h.guard.mu.Lock()
	defer h.guard.mu.Unlock()
	h.guard.last = h.guard.skip != nil
}

// GuardNew guards the callbacks that the user has registered in the meantime. It is called for each
// request before Colly calls one of them.
func (h *Handle) GuardNew() {
	g := &h.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	h.wrap()
}

// wrap wraps the callbacks that are not guarded. It changes the elements of the slices in place,
// because Colly may read their lengths. guard.mu is held.
func (h *Handle) wrap() {
	g := &h.guard
	headers, responses, scraped := *h.responseHeadersCallbacks, *h.responseCallbacks, *h.scrapedCallbacks
	for i := g.guardedHeaders; i < len(headers); i++ {
		f := headers[i]
		headers[i] = func(r *colly.Response) { g.call(f, r) }
	}
	for i := g.guardedResponses; i < len(responses); i++ {
		f := responses[i]
		responses[i] = func(r *colly.Response) { g.call(f, r) }
	}
	for i := g.guardedScraped; i < len(scraped); i++ {
		f := scraped[i]
		scraped[i] = func(r *colly.Response) { g.call(f, r) }
		if g.last {
			scraped[i-1], scraped[i] = scraped[i], scraped[i-1]
		}
	}
	h.countGuarded()
}

// countGuarded records that all callbacks are guarded or belong to the plugin. guard.mu is held.
func (h *Handle) countGuarded() {
	h.guard.guardedHeaders = len(*h.responseHeadersCallbacks)
	h.guard.guardedResponses = len(*h.responseCallbacks)
	h.guard.guardedScraped = len(*h.scrapedCallbacks)
}

// call calls a callback of the user unless the response is skipped.
func (g *guard) call(f func(*colly.Response), r *colly.Response) {
	if !g.skip(r) {
		f(r)
	}
}
