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

// Requests remember what the next hook of a request has to know or to do. They do not keep the
// requests alive. All methods may be called from any goroutine.
type Requests struct {
	hold   func() (release func()) // makes Collector.Wait wait
	missed func()                  // is called if no hook comes

	count atomic.Int32 // len(known), which a hook reads without the lock
	mu    sync.Mutex
	known map[weak.Pointer[colly.Request]]*record
}

// A record belongs to one request.
type record struct {
	denied  error // see Deny
	expects bool  // see Watch
	timer   *time.Timer
	release func()
}

// NewRequests returns an empty Requests. hold makes Collector.Wait wait until release is called.
// missed is called, while Wait waits, for each request whose hook does not come.
func NewRequests(hold func() (release func()), missed func()) *Requests {
	return &Requests{hold: hold, missed: missed, known: make(map[weak.Pointer[colly.Request]]*record)}
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
	if err != nil || rs.known[weak.Make(r)] != nil {
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
	known := rs.known[w]
	if known == nil {
		known = new(record)
		rs.known[w] = known
		rs.count.Store(int32(len(rs.known)))
		runtime.AddCleanup(r, func(w weak.Pointer[colly.Request]) { rs.take(w) }, w) // Colly may call no hook
	}
	return known
}

// Expect waits for the next hook of r, whose exchange has ended, unless that was called. Colly calls
// no hook for a page whose character set it does not know. After ten seconds, missed is called.
func (rs *Requests) Expect(r *colly.Request) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.known[weak.Make(r)]
	if known == nil || !known.expects || known.timer != nil {
		return
	}
	known.release = rs.hold() // now Wait still waits for r itself
	known.timer = time.AfterFunc(hookLimit, func() { rs.lapse(r) })
}

// lapse is called when no hook of r has come.
func (rs *Requests) lapse(r *colly.Request) {
	known := rs.take(weak.Make(r))
	if known == nil {
		return
	}
	defer known.end()
	rs.missed()
}

// Hook records that a hook of r was called after its exchange. It returns the error that was passed
// to Deny, once, or nil.
func (rs *Requests) Hook(r *colly.Request) (denied error) {
	if rs.count.Load() == 0 {
		return nil
	}
	known := rs.take(weak.Make(r))
	if known == nil {
		return nil
	}
	known.end()
	return known.denied
}

// take removes and returns a record, or returns nil if there is none.
func (rs *Requests) take(w weak.Pointer[colly.Request]) *record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.known[w]
	delete(rs.known, w)
	rs.count.Store(int32(len(rs.known)))
	return known
}

// Close ends all waits. missed is not called. Requests that are still under way keep the error that
// was passed to Deny.
func (rs *Requests) Close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, known := range rs.known {
		known.end()
		known.expects = false
		known.timer = nil
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
