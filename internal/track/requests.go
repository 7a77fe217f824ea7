// Package track remembers facts about a colly.Request that are needed after its exchange: what its
// next hook has to do, and what became of it, for its retries.
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

// Requests remembers what the next hook of each request has to know or to do. It does not keep the
// requests alive. All methods may be called from any goroutine.
type Requests struct {
	hold   func() (release func()) // makes Collector.Wait wait
	missed func()                  // is called if no hook comes

	count atomic.Int32 // len(records), which a hook reads without the lock

	// mu protects records.
	mu      sync.Mutex
	records map[weak.Pointer[colly.Request]]*record
}

// A record has the facts about one request.
type record struct {
	denied  error       // the error that was passed to Deny; nil if there is none
	expects bool        // Watch was called
	timer   *time.Timer // calls lapse; nil while no hook is expected
	release func()      // ends the wait of Collector.Wait; valid if timer is not nil
}

// NewRequests returns an empty Requests. hold makes Collector.Wait wait until release is called.
// missed is called, while Wait waits, for each request whose hook does not come.
func NewRequests(hold func() (release func()), missed func()) *Requests {
	return &Requests{hold: hold, missed: missed, records: make(map[weak.Pointer[colly.Request]]*record)}
}

// Deny remembers why r would be denied without a dry run, until Hook is called. If err is nil, r
// would be allowed. OnDenied must not be called before Hook: it may call Retry, which uses the
// headers and the body of the request while the request itself uses them.
func (rs *Requests) Deny(r *colly.Request, err error) {
	if err == nil && rs.count.Load() == 0 {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if err != nil || rs.records[weak.Make(r)] != nil {
		rs.record(r).denied = err
	}
}

// Watch records that r is about to be sent, and that a hook of r will follow. Expect has no effect
// without it.
func (rs *Requests) Watch(r *colly.Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.record(r).expects = true
}

// record returns the record of r, which it makes if necessary. rs.mu is held.
func (rs *Requests) record(r *colly.Request) *record {
	w := weak.Make(r)
	rec := rs.records[w]
	if rec == nil {
		rec = new(record)
		rs.records[w] = rec
		rs.count.Store(int32(len(rs.records)))
		runtime.AddCleanup(r, func(w weak.Pointer[colly.Request]) { rs.take(w) }, w) // Colly may call no hook
	}
	return rec
}

// Expect is called when the exchange of r has ended. It makes Collector.Wait wait until the next
// hook of r is called, for at most ten seconds. After ten seconds, missed is called: Colly calls no
// hook for a page whose character set it does not know. If the hook was called already, Expect has
// no effect.
func (rs *Requests) Expect(r *colly.Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rec := rs.records[weak.Make(r)]
	if rec == nil || !rec.expects || rec.timer != nil {
		return
	}
	rec.release = rs.hold() // allowed now, because Wait still waits for r itself
	rec.timer = time.AfterFunc(hookLimit, func() { rs.lapse(r) })
}

// lapse is called when no hook of r has come in time.
func (rs *Requests) lapse(r *colly.Request) {
	rec := rs.take(weak.Make(r))
	if rec == nil {
		return
	}
	defer rec.end()
	rs.missed()
}

// Hook records that a hook of r was called after its exchange. It returns the error that was passed
// to Deny, once, or nil.
func (rs *Requests) Hook(r *colly.Request) (denied error) {
	if rs.count.Load() == 0 {
		return nil
	}
	rec := rs.take(weak.Make(r))
	if rec == nil {
		return nil
	}
	rec.end()
	return rec.denied
}

// take removes and returns a record, or returns nil if there is none.
func (rs *Requests) take(w weak.Pointer[colly.Request]) *record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rec := rs.records[w]
	delete(rs.records, w)
	rs.count.Store(int32(len(rs.records)))
	return rec
}

// Close ends all waits. missed is not called. Requests that are still under way keep the error that
// was passed to Deny.
func (rs *Requests) Close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, rec := range rs.records {
		rec.end()
		rec.expects = false
		rec.timer = nil
	}
}

// end ends the wait for a hook.
func (r *record) end() {
	if r.timer == nil {
		return
	}
	r.timer.Stop()
	r.release()
}
