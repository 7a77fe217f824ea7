package collyrobots

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

// An overdue knows the pages of an Async collector that were sent while sitemaps were to be read,
// until the next hook is called. Colly calls none for a page whose character set it does
// not know; then the sitemaps are read here, and Collector.Wait waits for that too.
type overdue struct {
	hold  func() (release func()) // makes Wait wait
	read  func()                  // reads the sitemaps that are pending
	count atomic.Int32            // len(pages), to be read without mu
	mu    sync.Mutex
	pages map[*colly.Request]*late
}

// A late is one such page. It is zero until its exchange has ended.
type late struct {
	timer   *time.Timer
	release func()
}

// end ends the wait for a hook.
func (l *late) end() {
	if l.timer != nil {
		l.timer.Stop()
		l.release()
	}
}

// watch notes that r is about to be sent, and a hook will follow. An exchange may end after that:
// on another goroutine, when it was cut off.
func (o *overdue) watch(r *colly.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pages == nil {
		o.pages = make(map[*colly.Request]*late)
	}
	o.pages[r] = new(late)
	o.count.Store(int32(len(o.pages)))
}

// expect waits for the hook of r, unless it was called. It is called when the exchange has ended.
func (o *overdue) expect(r *colly.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.pages[r]; l != nil && l.timer == nil {
		l.release = o.hold() // Wait waits for r itself now
		l.timer = time.AfterFunc(fedLimit, func() { o.lapse(r) })
	}
}

// heard notes that a hook of r was called.
func (o *overdue) heard(r *colly.Request) {
	if o.count.Load() == 0 {
		return
	}
	if l := o.take(r); l != nil {
		l.end()
	}
}

// lapse gives the hooks of r up.
func (o *overdue) lapse(r *colly.Request) {
	if l := o.take(r); l != nil {
		defer l.end()
		o.read()
	}
}

func (o *overdue) take(r *colly.Request) *late {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.pages[r]
	delete(o.pages, r)
	o.count.Store(int32(len(o.pages)))
	return l
}

// close gives all pages up: nothing is read any more.
func (o *overdue) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.pages {
		l.end()
	}
	o.pages = nil
	o.count.Store(0)
}
