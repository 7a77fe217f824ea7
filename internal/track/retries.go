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

// Retries recognizes the retries of requests. It counts how often a request and its retries were
// denied in a row, and remembers what else became of them. It does not keep the requests alive. The
// zero value is empty. All methods may be called from any goroutine.
type Retries struct {
	count atomic.Int32 // len(chains), which a hook reads without the lock

	// mu protects the fields below it.
	mu     sync.Mutex
	chains map[key]*chain
	limit  int // when chains has this length, sweep is called
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

// A chain has the facts about a request and its retries.
type chain struct {
	url  string
	last weak.Pointer[colly.Request] // the last request
	at   time.Time                   // of the last call of Refuse, Deny or Mark

	refused Row // see Refuse
	denied  Row // see Deny
	marks   Mark
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

	at time.Time // of the last denial
}

// Exhausted reports whether the row is so long that further retries make no sense.
func (row Row) Exhausted() bool { return row.Count >= MaxDenials }

// add adds a denial to the row, or begins another row with it.
func (row *Row) add(why Denial, now time.Time) {
	late := why.Temporary && now.Sub(row.at) > quickly
	if late || row.Denial != why {
		*row = Row{Denial: why}
	}
	row.Count++
	row.at = now
}

// A Mark is a fact about a request that counts for its retries. Marks may be combined.
type Mark uint8

const (
	// Answered marks a request whose page has reached the callbacks, or has not changed.
	Answered Mark = 1 << iota
	// Recorded marks a request of a page that a urlstore.Store has.
	Recorded
	// Sent marks a request that was about to be sent, with the option Retry.
	Sent
)

// Refuse counts that r was not sent. It is called before the OnError callbacks of the user, which
// may retry r.
func (rs *Retries) Refuse(r *colly.Request, why Denial) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	c := rs.chainOf(r)
	c.refused.add(why, c.at)
}

// Deny counts that OnDenied is due for r, and returns the length of the row.
func (rs *Retries) Deny(r *colly.Request, why Denial) int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	c := rs.chainOf(r)
	c.denied.add(why, c.at)
	return c.denied.Count
}

// Mark adds a mark to r. Its retries have the same marks.
func (rs *Retries) Mark(r *colly.Request, m Mark) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.chainOf(r).marks |= m
}

// Refused returns the row of calls of Refuse that r may continue, because r is a retry. It returns
// the zero Row if there is none. It is called in the first hook of each request.
func (rs *Retries) Refused(r *colly.Request) Row {
	if rs.count.Load() == 0 {
		return Row{}
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	c := rs.chains[keyOf(r)]
	if c == nil || c.isOver(time.Now()) || c.url != r.URL.String() {
		return Row{}
	}
	c.last = weak.Make(r)
	return c.refused
}

// IsMarked reports whether r is a retry of a request with this mark. It is called in the first hook
// of each request. If the addresses of a request are in use again, it may return true for another
// request of the same URL.
func (rs *Retries) IsMarked(r *colly.Request, m Mark) bool {
	if rs.count.Load() == 0 {
		return false
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	c := rs.chains[keyOf(r)]
	return c != nil && c.marks&m != 0 && c.url == r.URL.String()
}

// chainOf returns the chain of r, whose last request is r and whose time is now. It makes the chain
// if necessary. rs.mu is held.
func (rs *Retries) chainOf(r *colly.Request) *chain {
	if len(rs.chains) >= rs.limit {
		rs.sweep()
	}
	k := keyOf(r)
	u := r.URL.String()
	now := time.Now()
	c := rs.chains[k]
	if c == nil || c.url != u {
		c = &chain{url: u}
		rs.chains[k] = c
		rs.count.Store(int32(len(rs.chains)))
	} else if c.isOver(now) {
		c.refused = Row{}
		c.denied = Row{}
	}
	c.last = weak.Make(r)
	c.at = now
	return c
}

// isOver reports whether no denial can be in a row with those of c. If the last request was garbage
// collected, its addresses may be in use again, so that another request has the key by accident.
func (c *chain) isOver(now time.Time) bool {
	return c.last.Value() == nil && now.Sub(c.at) > handover
}

// sweep drops the chains whose last request was garbage collected. rs.mu is held.
func (rs *Retries) sweep() {
	if rs.chains == nil {
		rs.chains = make(map[key]*chain)
	}
	maps.DeleteFunc(rs.chains, func(_ key, c *chain) bool { return c.last.Value() == nil })
	rs.limit = 2*len(rs.chains) + 64
}
