// Package track remembers facts about a colly.Request that are needed after its exchange: what its
// next hook has to do, and how often the request and its retries were denied.
//
// The package knows neither robots.txt nor the pace.
package track

import (
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"
)

// MaxDenials is how often a request and its retries may be denied in a row for one reason. A
// callback that calls Request.Retry for each denied page would otherwise never end.
const MaxDenials = 10

// quickly is the longest time between two denials in a row if their reason may soon pass. A
// callback that waits for longer before it retries a page may go on.
const quickly = 5 * time.Second

// handover is how long a row is kept after its last request was garbage collected. An asynchronous
// collector may drop a request before it calls the first hook of the retry.
const handover = 100 * time.Millisecond

// Denials counts how often a request and its retries were denied in a row. The zero value is empty.
// All methods may be called from any goroutine.
type Denials struct {
	count atomic.Int32 // len(rows), which a hook reads without the lock

	// mu protects the fields below it.
	mu    sync.Mutex
	rows  map[key]Row
	limit int // when rows has this length, sweep is called
}

// A key is equal for a request and its retries, because Colly's Request.Retry passes the header map
// and the Context on. One of them is not enough: the callbacks of a page share its Context with all
// pages that they visit, and programs pass one header map to many requests.
type key struct{ header, ctx uintptr } // addresses

func keyOf(r *colly.Request) key {
	return key{
		header: reflect.ValueOf(*r.Headers).Pointer(),
		ctx:    reflect.ValueOf(r.Ctx).Pointer(),
	}
}

// A Denial says why a request was denied. Only equal denials can be in a row.
type Denial struct {
	// Version identifies the robots.txt that has denied the request. It is the zero time if the
	// reason is another one.
	Version time.Time
	// Temporary reports whether the reason may pass at any moment, so that only quick retries are
	// in a row.
	Temporary bool
	// Later reports whether the request was denied after its page was allowed, for example because
	// of the target of a redirect.
	Later bool
}

// A Row describes the denials in a row of a request and its retries.
type Row struct {
	Denial
	Count int

	url  string
	at   time.Time                   // of the last denial
	last weak.Pointer[colly.Request] // the last request
}

// Exhausted reports whether the row is so long that further retries make no sense.
func (row Row) Exhausted() bool { return row.Count >= MaxDenials }

// collected reports whether the last request of the row was garbage collected.
func (row Row) collected() bool { return row.last.Value() == nil }

// contains reports whether r, which has the key of the row, is a retry of its requests. If the last
// request was garbage collected, its addresses may be in use again, so that r has the key by
// accident.
func (row Row) contains(r *colly.Request, now time.Time) bool {
	if row.Count == 0 || row.collected() && now.Sub(row.at) > handover {
		return false
	}
	return row.url == r.URL.String()
}

// Retried returns the row of denials that r may continue, because r is a retry. It returns the zero
// Row if there is none. It is called in the first hook of each request.
func (d *Denials) Retried(r *colly.Request) Row {
	if d.count.Load() == 0 {
		return Row{}
	}
	k := keyOf(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	row := d.rows[k]
	if !row.contains(r, time.Now()) {
		return Row{}
	}
	row.last = weak.Make(r)
	d.rows[k] = row
	return row
}

// Add records that r was denied, and returns the length of the row.
func (d *Denials) Add(r *colly.Request, why Denial) int {
	k := keyOf(r)
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.rows) >= d.limit {
		d.rows, d.limit = sweep(d.rows)
	}
	row := d.rows[k]
	late := why.Temporary && now.Sub(row.at) > quickly
	if late || row.Denial != why || !row.contains(r, now) {
		row = Row{Denial: why, url: r.URL.String()}
	}
	row.Count++
	row.at = now
	row.last = weak.Make(r)
	d.rows[k] = row
	d.count.Store(int32(len(d.rows)))
	return row.Count
}

// A collectable is a record about a request that the program may drop.
type collectable interface {
	collected() bool // reports whether the request was garbage collected
}

// sweep drops the records whose request was garbage collected. It returns the map, which is a new
// one if records is nil, and the length at which it should be swept again.
func sweep[R collectable](records map[key]R) (map[key]R, int) {
	if records == nil {
		records = make(map[key]R)
	}
	maps.DeleteFunc(records, func(_ key, r R) bool { return r.collected() })
	return records, 2*len(records) + 64
}
