package policy

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

// Options configure a Cache. The zero value is for RFC 9309 and a crawler without a name.
type Options struct {
	Dialect dialect.Dialect

	// Tokens are the product tokens, most specific first. If there are none, the groups for "*"
	// apply.
	Tokens []string

	// HonorDelays means that Crawl-delay, Request-rate and Visit-time hold also under a dialect
	// that does not support them. They are then read as written.
	HonorDelays bool

	// Given is the text that replaces the robots.txt of every authority. If it is not nil, nothing
	// is fetched, and the store is neither read nor written.
	Given []byte

	// WhenUnreachable and WhenForbidden replace what the dialect says about a robots.txt that is
	// unreachable, or answered with status 401 or 403.
	WhenUnreachable, WhenForbidden Access

	// Store keeps the results of fetches, and is searched before each fetch. If nil, only the cache
	// and Files keep them. Close does not close the store.
	Store store.Store

	// Files are shared with the other caches of the program. It may be nil.
	Files *Files

	// Memory keeps the policies. If nil, the cache has a Memory of its own, which Close clears.
	Memory *Memory

	// Log receives the log. If nil, nothing is logged.
	Log *slog.Logger

	// Found is called before the first request for an authority if the store has a record that
	// this cache did not write. private is what Private returned for the record's copy. Found may
	// be nil.
	Found func(a dialect.Authority, private bool)

	// Private reports whether the server of an authority has a private address. It is called after
	// a file was fetched, and the store keeps its result. It may be nil.
	Private func(dialect.Authority) bool

	// Read is called with each policy that is read from the site or from the store, before the
	// server is released (see [Wanted]). It is also called with an expired record of the store,
	// before the file is requested. It may be nil.
	Read func(*Policy)

	// Updated is called after each fetch, and after each look-up in the store that makes a fetch
	// unnecessary, before any caller gets the policy. It must return quickly. It may be nil.
	Updated func(Update)
}

// An Update is the result of a fetch, or of a look-up in the store that makes one unnecessary.
type Update struct {
	Policy *Policy // in force now
	Old    *Policy // in force before; nil if there was none
	Stored bool    // the policy was in the store: nothing was fetched
	Body   []byte  // the text of the rules in force, not to be changed; nil if there are none or it is not in memory
}

// Changed reports whether there was a policy before, with another status or other rules.
func (u *Update) Changed() bool {
	return u.Old != nil && !u.Policy.Forbidden() && u.Policy.differs(u.Old)
}

// DefaultMaxWeight is the usual bound of a [Memory]. It is enough for two million authorities that
// share a few files, or for half a million with different files of the usual size.
const DefaultMaxWeight = 500_000_000

// A Cache keeps the policies of authorities. Any number of goroutines may call its methods at once.
//
// It uses otter as a bounded map, without its expiry and loading. A policy is needed after it has
// expired, as the copy to fall back on, and one fetch serves all callers that wait for it: see
// sharedfetch.go.
type Cache struct {
	options Options
	access  *accessTable
	parser  *parser
	log     *slog.Logger
	memory  *Memory
	number  uint64 // of the cache in memory

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	closed atomic.Bool // set under mu
	left   atomic.Bool // set by CloseIdle

	// mu protects fetches, the shared fetches in it, and unanswered. closed is set, and running grows,
	// while it is held.
	mu      sync.Mutex
	fetches map[dialect.Authority][]*sharedFetch // those under way, oldest first
	running sync.WaitGroup

	unanswered map[dialect.Authority]*unansweredLock // protected by mu
}

// New returns an empty cache. The caller must close it.
func New(o Options) *Cache {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Cache{
		options: o,
		access:  tableFor(o),
		parser:  newParser(o),
		log:     o.Log,
		memory:  o.Memory,
		ctx:     ctx,
		cancel:  cancel,
		fetches: make(map[dialect.Authority][]*sharedFetch),

		unanswered: make(map[dialect.Authority]*unansweredLock),
	}
	if c.memory == nil {
		c.memory = NewMemory(0)
	}
	c.number = c.memory.caches.Add(1)
	return c
}

// Get returns the policy of a. If the cache has none that is fresh, Get fetches the file as f says;
// all callers that ask at the same time share the fetch of the first. While one caller fetches a
// file whose policy has just expired, the others use the expired policy. A fresh policy costs no
// allocation.
//
// The cache keeps a for as long as it keeps the policy, so a.Host should not be part of a longer
// string.
//
// An unanswered fetch counts only for callers with the same Way: a caller with another Way makes
// another fetch.
//
// A robots.txt that cannot be read is a policy that says so. An error means that ctx ended, that
// the cache is closed, that nothing was sent ([ErrUnsent]), or that a is not a valid result of
// [dialect.AuthorityOf].
func (c *Cache) Get(ctx context.Context, a dialect.Authority, f Fetch) (*Policy, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	known := c.memory.get(c, a).by(f.Way)
	if known.Fresh(time.Now()) && !c.closed.Load() && (!f.Text || c.hasText(ctx, known)) {
		return known, nil
	}
	if known == nil && !hasRobots(a) {
		return nil, fmt.Errorf("no robots.txt for %q", a.String())
	}
	return c.join(ctx, a, f)
}

// hasRobots reports whether a can have a robots.txt.
func hasRobots(a dialect.Authority) bool {
	return a.Host != "" && (a.Scheme == "https" || a.Scheme == "http" || a.Scheme == "ftp")
}

// Known returns the policy of a if the cache has one that is fresh at now and valid for all ways of
// fetching. Otherwise it returns nil, and the caller has to call Get. Known does not allocate.
func (c *Cache) Known(ctx context.Context, now time.Time, a dialect.Authority) *Policy {
	known := c.memory.get(c, a)
	if !known.Fresh(now) || known.unanswered() || c.closed.Load() || ctx.Err() != nil {
		return nil
	}
	return known
}

// Last returns the policy of a that the cache keeps, which may have expired. It returns nil if
// there is none, and after the end of ctx or of the cache.
func (c *Cache) Last(ctx context.Context, a dialect.Authority) *Policy {
	if c.closed.Load() || ctx.Err() != nil {
		return nil
	}
	return c.memory.get(c, a)
}

// Busy reports whether a fetch is under way.
func (c *Cache) Busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fetches) > 0
}

// CloseIdle closes c if no fetch is under way, and reports whether it is closed. Unlike Close, it
// leaves the policies in the memory, from which they are dropped as others come.
func (c *Cache) CloseIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fetches) > 0 {
		return false
	}
	c.left.Store(true)
	c.closed.Store(true)
	c.cancel(ErrClosed)
	return true
}

// Stop ends the fetches under way. Callers that wait in Get, and later callers, get ErrClosed.
// Unlike Close, Stop does not wait for the fetches.
func (c *Cache) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(true)
	c.cancel(ErrClosed)
}

// Close calls Stop and waits for the fetches. The store stays open.
func (c *Cache) Close() {
	c.Stop()
	c.running.Wait()
	if c.options.Memory == nil {
		c.memory.Clear()
	}
}

// store returns the store of c, or nil if there is none.
func (c *Cache) store() store.Store {
	switch {
	case c.options.Store != nil:
		return c.options.Store
	case c.options.Files.shared():
		return c.options.Files
	}
	return nil
}

// policyOf returns the policy of a that f leads to.
func (c *Cache) policyOf(a dialect.Authority, f facts) (p *Policy) {
	defer func() {
		if v := recover(); v != nil {
			p = c.policyOf(a, facts{failure: failed(noResponse, &PanicError{v}).failure})
		}
	}()
	p = &Policy{Authority: a, copy: c.parsedCopy(f), failure: f.failure}
	p.RobotsStatus, p.expires = c.access.status(f)
	return p
}

// given returns the facts about an authority whose robots.txt is replaced by Options.Given.
func (c *Cache) given() facts {
	return facts{
		copy: &goodCopy{class: ok, given: true, maxAge: noMaxAge, fetched: now()},
		body: c.options.Given,
	}
}

// parsedCopy returns f's copy with its text parsed.
func (c *Cache) parsedCopy(f facts) *goodCopy {
	if f.copy == nil || f.copy.parsed != nil || !f.copy.class.hasText() {
		return f.copy
	}
	s := *f.copy
	s.parsed = c.parser.read(f.body)
	return &s
}

// share makes p, which is new, use the parsed file of other policies with the same text.
func (c *Cache) share(p *Policy) {
	if p.copy == nil {
		return
	}
	shared := c.parser.use(p.copy.parsed)
	if shared != p.copy.parsed {
		s := *p.copy
		s.parsed = shared
		p.copy = &s
	}
}

// dropped releases the parsed file of p, which is no longer in the cache.
func (c *Cache) dropped(p *Policy) {
	if p.copy != nil {
		c.parser.drop(p.copy.parsed)
	}
}
