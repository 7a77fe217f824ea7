// Package track remembers facts about a colly.Request between two hooks and after its exchange: what
// the next hook has to know or to do, and what became of the request, for its retries.
//
// The package knows neither robots.txt nor the pace.
package track

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"
)

// hookLimit is how long Requests waits for a hook that may never come.
const hookLimit = 10 * time.Second

// Requests has a record of each request whose next hook has to know or to do something. It does not
// keep the requests alive. P is the type of what the caller knows about a page. Get Requests from
// NewRequests. All methods may be called from any goroutine.
type Requests[P any] struct {
	count atomic.Int32 // len(records), which a hook reads without the lock

	// mu protects records.
	mu      sync.Mutex
	records map[weak.Pointer[colly.Request]]*record[P]
}

// A record has the facts about one request. It exists as long as it has a page or a nextHook.
type record[P any] struct {
	page *P        // the argument of Set; nil if there is none
	next *nextHook // what ends when a hook is called after the exchange; nil if there is nothing
	weak bool      // the record is removed when the request is garbage collected
}

// A nextHook says what the next hook of a request has to know or to do.
type nextHook struct {
	denied  error       // the error that was passed to Deny; nil if there is none
	expects bool        // Watch was called
	timer   *time.Timer // calls lapse; nil while no hook is expected
	release func()      // ends the wait of Collector.Wait; valid if timer is not nil
}

// NewRequests returns an empty Requests.
func NewRequests[P any]() *Requests[P] {
	return &Requests[P]{records: make(map[weak.Pointer[colly.Request]]*record[P])}
}

// Set remembers the page of r until Unset is called. If that may never happen, the caller also
// calls Weaken.
func (rs *Requests[P]) Set(r *colly.Request, page *P) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.record(r).page = page
}

// Get returns the page that was passed to Set, or nil.
func (rs *Requests[P]) Get(r *colly.Request) *P {
	if rs.count.Load() == 0 {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rec := rs.records[weak.Make(r)]
	if rec == nil {
		return nil
	}
	return rec.page
}

// Unset forgets the page of r.
func (rs *Requests[P]) Unset(r *colly.Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	w := weak.Make(r)
	rec := rs.records[w]
	if rec != nil {
		rec.page = nil
		rs.drop(w, rec)
	}
}

// Weaken forgets the page of r when r is garbage collected.
func (rs *Requests[P]) Weaken(r *colly.Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rec := rs.records[weak.Make(r)]
	if rec != nil {
		rs.weaken(r, rec)
	}
}

// Deny remembers why r would be denied without a dry run, until Hook is called. If err is nil, r
// would be allowed. OnDenied must not be called before Hook: it may call Retry, which uses the
// headers and the body of the request while the request itself uses them.
func (rs *Requests[P]) Deny(r *colly.Request, err error) {
	if err == nil && rs.count.Load() == 0 {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rec := rs.records[weak.Make(r)]
	if err != nil || rec != nil && rec.next != nil {
		rs.nextHook(r).denied = err
	}
}

// Watch records that r is about to be sent, and that a hook of r will follow. Expect has no effect
// without it.
func (rs *Requests[P]) Watch(r *colly.Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.nextHook(r).expects = true
}

// Expect is called when the exchange of r has ended. It makes Collector.Wait wait until the next
// hook of r is called, for at most ten seconds. hold makes Wait wait until release is called. After
// ten seconds, missed is called while Wait waits: Colly calls no hook for a page whose character
// set it does not know. If the hook was called already, Expect has no effect.
func (rs *Requests[P]) Expect(r *colly.Request, hold func() (release func()), missed func()) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rec := rs.records[weak.Make(r)]
	if rec == nil || rec.next == nil || !rec.next.expects || rec.next.timer != nil {
		return
	}
	rec.next.release = hold() // allowed now, because Wait still waits for r itself
	rec.next.timer = time.AfterFunc(hookLimit, func() { rs.lapse(r, missed) })
}

// lapse is called when no hook of r has come in time.
func (rs *Requests[P]) lapse(r *colly.Request, missed func()) {
	next := rs.takeNextHook(r)
	if next == nil {
		return
	}
	defer next.end()
	missed()
}

// Hook records that a hook of r was called after its exchange. It returns the error that was passed
// to Deny, once, or nil.
func (rs *Requests[P]) Hook(r *colly.Request) (denied error) {
	if rs.count.Load() == 0 {
		return nil
	}
	next := rs.takeNextHook(r)
	if next == nil {
		return nil
	}
	next.end()
	return next.denied
}

// Close ends all waits of Expect. missed is not called. Requests that are still under way keep the
// error that was passed to Deny.
func (rs *Requests[P]) Close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, rec := range rs.records {
		if rec.next != nil {
			rec.next.end()
			rec.next.expects = false
			rec.next.timer = nil
		}
	}
}

// record returns the record of r, which it makes if necessary. rs.mu is held.
func (rs *Requests[P]) record(r *colly.Request) *record[P] {
	w := weak.Make(r)
	rec := rs.records[w]
	if rec == nil {
		rec = new(record[P])
		rs.records[w] = rec
		rs.count.Store(int32(len(rs.records)))
	}
	return rec
}

// nextHook returns the nextHook of r, which it makes if necessary. rs.mu is held.
func (rs *Requests[P]) nextHook(r *colly.Request) *nextHook {
	rec := rs.record(r)
	if rec.next == nil {
		rec.next = new(nextHook)
		rs.weaken(r, rec) // Colly may call no hook
	}
	return rec.next
}

// takeNextHook removes and returns the nextHook of r, or returns nil if there is none.
func (rs *Requests[P]) takeNextHook(r *colly.Request) *nextHook {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	w := weak.Make(r)
	rec := rs.records[w]
	if rec == nil {
		return nil
	}
	next := rec.next
	rec.next = nil
	rs.drop(w, rec)
	return next
}

// weaken removes the record of r when r is garbage collected. rs.mu is held.
func (rs *Requests[P]) weaken(r *colly.Request, rec *record[P]) {
	if rec.weak {
		return
	}
	rec.weak = true
	runtime.AddCleanup(r, rs.forget, weak.Make(r))
}

// forget removes the record of a request that was garbage collected.
func (rs *Requests[P]) forget(w weak.Pointer[colly.Request]) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.records, w)
	rs.count.Store(int32(len(rs.records)))
}

// drop removes a record that has neither a page nor a nextHook. rs.mu is held.
func (rs *Requests[P]) drop(w weak.Pointer[colly.Request], rec *record[P]) {
	if rec.page == nil && rec.next == nil {
		delete(rs.records, w)
		rs.count.Store(int32(len(rs.records)))
	}
}

// end ends the wait for a hook.
func (next *nextHook) end() {
	if next.timer == nil {
		return
	}
	next.timer.Stop()
	next.release()
}
