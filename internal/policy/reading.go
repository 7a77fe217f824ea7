package policy

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/collyrobots/collyrobots/dialect"
)

// reading is what one cache's dialect and tokens make of a body. Hosts with equal files share one.
type reading struct {
	body []byte // as fetched, and still to be read: all else is zero. On its way to or from a store

	group    *dialect.Group
	sitemaps []string
	delay    time.Duration
	hasDelay bool
	size     int // of the body
	sum      [sha256.Size]byte
	users    atomic.Int32 // policies in the map that keep it
}

func unread(body []byte) *reading { return &reading{body: body} }

// reader reads bodies, and knows what it has read for as long as somebody uses it.
type reader struct {
	dialect dialect.Dialect
	tokens  []string
	delays  bool // take Crawl-delay as it is written, since dialect does not support it
	nothing *reading

	mu   sync.Mutex
	seen map[[sha256.Size]byte]weak.Pointer[reading]
}

func newReader(o Options) *reader {
	r := &reader{
		dialect: o.Dialect,
		tokens:  o.Tokens,
		delays:  o.HonorCrawlDelay && rowOf(o.Dialect).ignoreDelay,
		seen:    make(map[[sha256.Size]byte]weak.Pointer[reading]),
	}
	r.nothing = r.parse(nil)
	return r
}

// read returns the reading of body, which it does not keep.
func (r *reader) read(body []byte) *reading {
	if len(body) == 0 {
		return r.nothing
	}
	sum := sha256.Sum256(body)
	if known := r.known(sum); known != nil {
		return known
	}
	fresh := r.parse(body)
	fresh.sum = sum
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[sum] = weak.Make(fresh)
	runtime.AddCleanup(fresh, r.forget, sum)
	return fresh
}

func (r *reader) known(sum [sha256.Size]byte) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[sum].Value()
}

// forget drops sum unless the same text has been read again since.
func (r *reader) forget(sum [sha256.Size]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[sum].Value() == nil {
		delete(r.seen, sum)
	}
}

func (r *reader) parse(body []byte) *reading {
	rules := r.dialect.Parse(body)
	group := rules.Group(r.tokens...)
	read := &reading{group: group, sitemaps: rules.Sitemaps(), size: len(body)}
	read.delay, read.hasDelay = group.CrawlDelay()
	if r.delays {
		read.delay, read.hasDelay = group.WrittenDelay()
	}
	return read
}
