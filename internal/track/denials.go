// Package track remembers what concerns a colly.Request after its exchange: what its next hook has to
// do, and how often its retries were denied.
//
// The package knows neither robots.txt nor the pace.
package track

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"
)

// MaxDenials is how often a request and its retries may be denied in a row for one reason. A callback
// that calls Request.Retry for each denied page would otherwise never end.
const MaxDenials = 10

// quickly is the longest time between two denials in a row if their reason may soon pass. A callback
// that waits for longer before it retries a page may go on.
const quickly = 5 * time.Second

// Denials count how often requests were denied that are retries of each other. The zero value is
// empty. All methods may be called from any goroutine.
type Denials struct {
	mu        sync.Mutex
	known     map[key]Row
	limit     int         // when known has this length, rows that have ended are dropped
	exhausted atomic.Bool // some row was exhausted; until then a page costs no look-up
}

// A key is equal for a request and its retries, because Colly's Request.Retry passes the URL, the
// header map and the Context on. None of them is enough: the callbacks of a page share its Context
// with all pages that they visit, and programs pass one header map to many requests.
type key struct {
	url         string
	header, ctx uintptr // addresses
}

func keyOf(r *colly.Request) key {
	return key{
		url:    r.URL.String(),
		header: reflect.ValueOf(*r.Headers).Pointer(),
		ctx:    reflect.ValueOf(r.Ctx).Pointer(),
	}
}

// A Denial says why a request was denied. Only equal denials can be in a row.
type Denial struct {
	// Version identifies the robots.txt that has denied the request. It is the zero time if the reason
	// is another one.
	Version time.Time
	// Temporary reports whether the reason may soon pass.
	Temporary bool
	// Later reports whether the request was denied after its page was allowed, for example because of
	// the target of a redirect.
	Later bool
}

// A Row describes denials in a row.
type Row struct {
	Denial
	Count int

	at   time.Time                   // of the last denial
	last weak.Pointer[colly.Request] // the last request; if it is gone, it is not retried any more
}

// Exhausted reports whether the row is so long that further retries make no sense.
func (r Row) Exhausted() bool { return r.Count >= MaxDenials }

// goesOn reports whether a request at now, which is a retry, may be the next one of the row.
func (r Row) goesOn(now time.Time) bool {
	return r.last.Value() != nil && (!r.Temporary || now.Sub(r.at) <= quickly)
}

// Add records that r was denied, and returns the length of the row.
func (d *Denials) Add(r *colly.Request, why Denial) int {
	k := keyOf(r)
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= d.limit {
		d.sweep()
	}
	row := d.known[k]
	if row.Denial != why || !row.goesOn(now) {
		row = Row{Denial: why}
	}
	row.Count++
	row.at = now
	row.last = weak.Make(r)
	d.known[k] = row
	if row.Exhausted() {
		d.exhausted.Store(true)
	}
	return row.Count
}

// Exhausted returns the row of the requests that r is a retry of, if that is exhausted, or else the
// zero Row.
func (d *Denials) Exhausted(r *colly.Request) Row {
	if !d.exhausted.Load() {
		return Row{}
	}
	k := keyOf(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	row := d.known[k]
	if !row.Exhausted() || !row.goesOn(time.Now()) {
		return Row{}
	}
	return row
}

// sweep drops the rows that have ended. d.mu is held.
func (d *Denials) sweep() {
	if d.known == nil {
		d.known = make(map[key]Row)
	}
	for k, row := range d.known {
		if row.last.Value() == nil {
			delete(d.known, k)
		}
	}
	d.limit = 2*len(d.known) + 64
}
