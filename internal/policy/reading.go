package policy

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A reading is what one cache's dialect and tokens make of a text. Authorities with the same text
// share one.
type reading struct {
	group    *dialect.Group
	sitemaps []string
	sum      sum
	weight   uint32       // see memory.go
	users    atomic.Int32 // policies in the cache that keep it; written by the reader alone
	written  bool         // take Crawl-delay as it is written, since the dialect does not support it
}

func (r *reading) crawlDelay() (time.Duration, bool) {
	if r.written {
		return r.group.WrittenDelay()
	}
	return r.group.CrawlDelay()
}

// A sum names a text: half of its SHA-256, which is too much to find another text for.
type sum [sha256.Size / 2]byte

func sumOf(text []byte) (s sum) {
	whole := sha256.Sum256(text)
	copy(s[:], whole[:])
	return s
}

// A reader makes the readings of one cache, and knows those that are in use there.
type reader struct {
	dialect dialect.Dialect
	tokens  []string
	written bool // see reading
	empty   *reading

	mu     sync.Mutex
	shared map[sum]*reading // those with users
}

func newReader(o Options) *reader {
	r := &reader{
		dialect: o.Dialect,
		tokens:  o.Tokens,
		written: o.HonorCrawlDelay && tableOf(o.Dialect).ignoreDelay,
		shared:  make(map[sum]*reading),
	}
	r.empty = r.parse(nil)
	return r
}

// read returns the reading of text, which it does not keep.
func (r *reader) read(text []byte) *reading {
	if len(text) == 0 {
		return r.empty
	}
	s := sumOf(text)
	r.mu.Lock()
	known := r.shared[s]
	r.mu.Unlock()
	if known != nil {
		return known
	}
	fresh := r.parse(text)
	fresh.sum = s
	return fresh
}

func (r *reader) parse(text []byte) *reading {
	rules := r.dialect.Parse(text)
	return &reading{
		group: rules.Group(r.tokens...), sitemaps: rules.Sitemaps(),
		weight: weightOf(r.dialect, len(text)), written: r.written,
	}
}

// use counts one more user of s, and returns the reading to use in its place: the one that others
// use already.
func (r *reader) use(s *reading) *reading {
	if s == nil || s == r.empty {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.shared[s.sum]; known != nil {
		s = known
	}
	r.shared[s.sum] = s
	s.users.Add(1)
	return s
}

// drop counts one user of s less, and forgets a reading that nobody uses any more.
func (r *reader) drop(s *reading) {
	if s == nil || s == r.empty {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.users.Add(-1) == 0 {
		delete(r.shared, s.sum)
	}
}
