package collyrobots

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

// An overdue knows the pages of an Async collector whose exchange has ended while sitemaps were to
// be read, until the next hook is called. Colly calls none for a page whose character set it does
// not know; then the sitemaps are read here, and Collector.Wait waits for that too.
type overdue struct {
	hold  func() (release func()) // makes Wait wait
	read  func()                  // reads the sitemaps that are pending
	count atomic.Int32            // len(pages), to be read without mu
	mu    sync.Mutex
	pages map[*colly.Request]*late
}

// A late is one such page.
type late struct {
	timer   *time.Timer
	release func()
}

// expect waits for a hook of r. It is called while Wait waits for r.
func (o *overdue) expect(r *colly.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pages == nil {
		o.pages = make(map[*colly.Request]*late)
	}
	if o.pages[r] != nil {
		return
	}
	o.pages[r] = &late{time.AfterFunc(fedLimit, func() { o.lapse(r) }), o.hold()}
	o.count.Store(int32(len(o.pages)))
}

// heard notes that a hook of r was called.
func (o *overdue) heard(r *colly.Request) {
	if o.count.Load() == 0 {
		return
	}
	if x := o.take(r); x != nil {
		x.timer.Stop()
		x.release()
	}
}

// lapse gives the hooks of r up.
func (o *overdue) lapse(r *colly.Request) {
	if x := o.take(r); x != nil {
		defer x.release()
		o.read()
	}
}

func (o *overdue) take(r *colly.Request) *late {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.pages[r]
	delete(o.pages, r)
	o.count.Store(int32(len(o.pages)))
	return x
}

// close gives all pages up: nothing is read any more.
func (o *overdue) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.pages {
		x.timer.Stop()
		x.release()
	}
	o.pages = nil
	o.count.Store(0)
}
