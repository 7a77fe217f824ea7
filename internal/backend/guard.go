package backend

import (
	"reflect"
	"sync"

	"github.com/gocolly/colly/v2"
)

// This file keeps responses from the callbacks of the user. Colly itself calls them for every
// response that is no error.

// A guard wraps the callbacks of a collector.
type guard struct {
	// mu protects the fields below it, except skip, which is set before the first request.
	mu        sync.Mutex
	skip      func(*colly.Response) bool // nil before Guard
	headers   *[]colly.ResponseHeadersCallback
	responses *[]colly.ResponseCallback
	scraped   *[]colly.ScrapedCallback
	last      bool // AddLast was called, so one of the callbacks is that of the plugin

	// The numbers of callbacks that are wrapped or belong to the plugin.
	guardedHeaders, guardedResponses, guardedScraped int
}

// Guard makes the collector skip its callbacks of OnResponseHeaders, OnResponse and OnScraped if
// skip returns true for the response. Callbacks that are registered by AddOwn and AddLast are not
// skipped. Guard must be called before AddOwn and AddLast. It returns an error that wraps
// ErrUnsupported if this version of Colly keeps the callbacks elsewhere.
func (h *Handle) Guard(skip func(*colly.Response) bool) error {
	var err error
	g := &h.guard
	g.headers = h.responseCallbacks
	g.responses, err = field[[]colly.ResponseCallback](h.collector, "responseCallbacks", reflect.Slice)
	if err != nil {
		return err
	}
	g.scraped, err = field[[]colly.ScrapedCallback](h.collector, "scrapedCallbacks", reflect.Slice)
	if err != nil {
		return err
	}
	g.skip = skip
	return nil
}

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
	g.wrap()
	register()
	g.guardedHeaders = len(*g.headers)
	g.guardedResponses = len(*g.responses)
	g.guardedScraped = len(*g.scraped)
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
	g.wrap()
}

// wrap wraps the callbacks that are not guarded. It changes the elements of the slices in place,
// because Colly may read their lengths. g.mu is held.
func (g *guard) wrap() {
	for i := g.guardedHeaders; i < len(*g.headers); i++ {
		f := (*g.headers)[i]
		(*g.headers)[i] = func(r *colly.Response) { g.call(f, r) }
	}
	for i := g.guardedResponses; i < len(*g.responses); i++ {
		f := (*g.responses)[i]
		(*g.responses)[i] = func(r *colly.Response) { g.call(f, r) }
	}
	for i := g.guardedScraped; i < len(*g.scraped); i++ {
		f := (*g.scraped)[i]
		(*g.scraped)[i] = func(r *colly.Response) { g.call(f, r) }
		if g.last {
			(*g.scraped)[i-1], (*g.scraped)[i] = (*g.scraped)[i], (*g.scraped)[i-1]
		}
	}
	g.guardedHeaders = len(*g.headers)
	g.guardedResponses = len(*g.responses)
	g.guardedScraped = len(*g.scraped)
}

// call calls a callback of the user unless the response is skipped.
func (g *guard) call(f func(*colly.Response), r *colly.Response) {
	if !g.skip(r) {
		f(r)
	}
}
