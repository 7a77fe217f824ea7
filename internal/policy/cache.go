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

// Options say how a Cache reads robots.txt. The zero value reads as RFC 9309, for a crawler without
// a name.
type Options struct {
	Dialect         dialect.Dialect
	Tokens          []string     // product tokens, most specific first; none: the groups for "*" apply
	HonorCrawlDelay bool         // also under a dialect that ignores Crawl-delay: read then as RFC 9309's base reads it
	Store           store.Store  // what is learnt is kept there, and looked for there first; nil: in the cache alone. Not closed by Close
	Log             *slog.Logger // nil: nothing is logged
	MaxWeight       uint64       // bound of the cache in octets, estimated; 0: DefaultMaxWeight

	// Found is called with an authority of which the store has a record that is not this cache's,
	// before anything is requested. private is what Private returned for the record's copy. Found
	// may be nil.
	Found func(a dialect.Authority, private bool)

	// Private reports whether the server of an authority is at a private address. It is called when
	// a file was fetched, and the store keeps what it returns. It may be nil.
	Private func(dialect.Authority) bool

	// Read is called with what was read, from the site or from the store, before the server is
	// given back (see [Wanted]). It is also called with a record of the store that has expired,
	// before the file is requested. It may be nil.
	Read func(*Policy)

	// Learnt is called for each fetch that has ended, and for each look into the store that spares
	// one, before anybody gets the policy; nil: nobody is told. It must be quick.
	Learnt func(News)
}

// News is what was learnt of a robots.txt.
type News struct {
	Policy *Policy // in force now
	Old    *Policy // in force before; nil: none was
	Stored bool    // it was in the store: nothing was fetched
	Body   []byte  // of the rules in force, as read, not to be changed; nil: there are none, or it is not at hand
}

// Differs reports whether there was a policy before that meant something else.
func (n *News) Differs() bool {
	return n.Old != nil && !n.Policy.Forbidden() && n.Policy.differs(n.Old)
}

// DefaultMaxWeight is room for two million authorities that share a few files, or for half a
// million whose files are of a usual size and all different.
const DefaultMaxWeight = 500_000_000

// A Cache keeps the policies of authorities. All methods may be called by any number of goroutines
// at once.
//
// Of otter it uses the bounded map and nothing else: a policy is needed beyond its expiry, as the
// copy to fall back on, and a fetch belongs to all who wait for it, so expiry and loading are its
// own, in fetching.go.
type Cache struct {
	options  Options
	access   *accessTable
	reader   *reader
	log      *slog.Logger
	policies *table

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	closed atomic.Bool // set under mu

	mu       sync.Mutex
	fetching map[dialect.Authority][]*fetching // the one that began last is the last
	running  sync.WaitGroup

	silences sync.Mutex // held while the policy of a fetch that was not answered is kept
}

// New returns an empty cache, to be closed by the caller.
func New(o Options) *Cache {
	if o.MaxWeight == 0 {
		o.MaxWeight = DefaultMaxWeight
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Cache{
		options:  o,
		access:   tableOf(o.Dialect),
		reader:   newReader(o),
		log:      o.Log,
		ctx:      ctx,
		cancel:   cancel,
		fetching: make(map[dialect.Authority][]*fetching),
	}
	c.policies = newTable(o.MaxWeight, c.dropped)
	return c
}

// Get returns the policy of a, from the cache if it still holds and else by one fetch however many
// ask, made as the first one's f says. While a policy that has just expired is fetched again by one
// caller, the others use it. A policy that holds costs no allocation.
//
// The cache keeps a for as long as it knows the policy: a.Host should be no part of a longer
// string.
//
// A fetch that is not answered is known to callers with the same Way alone: another caller makes
// another fetch.
//
// A robots.txt that cannot be read is a policy that says so. An error means that ctx ended, that
// the cache is closed, that nothing was sent ([ErrUnsent]), or that a is not what
// [dialect.AuthorityOf] returns without an error.
func (c *Cache) Get(ctx context.Context, a dialect.Authority, f Fetch) (*Policy, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	known := c.policies.get(a).by(f.Way)
	if known.Fresh(time.Now()) && !c.closed.Load() {
		return known, nil
	}
	if known == nil && !governs(a) {
		return nil, fmt.Errorf("policy: no robots.txt for %q", a.String())
	}
	return c.join(ctx, a, f)
}

// governs reports whether there is a robots.txt for a.
func governs(a dialect.Authority) bool {
	return a.Host != "" && (a.Scheme == "https" || a.Scheme == "http" || a.Scheme == "ftp")
}

// Stop ends the fetches under way; whoever waits in Get, or calls it later, gets ErrClosed. It does
// not wait for the fetches, as Close does.
func (c *Cache) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(true)
	c.cancel(ErrClosed)
}

// Close is Stop, and then waits for the fetches. The store stays open.
func (c *Cache) Close() error {
	c.Stop()
	c.running.Wait()
	c.policies.clear()
	return nil
}

// policyOf is what f means for a.
func (c *Cache) policyOf(a dialect.Authority, f facts) (p *Policy) {
	defer func() {
		if v := recover(); v != nil {
			p = c.policyOf(a, facts{failure: failed(noResponse, &PanicError{v}).failure})
		}
	}()
	p = &Policy{Authority: a, copy: c.readCopy(f), failure: f.failure}
	p.RobotsStatus, p.expires = c.access.status(f)
	return p
}

// readCopy returns f's copy with its text read.
func (c *Cache) readCopy(f facts) *goodCopy {
	if f.copy == nil || f.copy.reading != nil || !f.copy.class.hasText() {
		return f.copy
	}
	s := *f.copy
	s.reading = c.reader.read(f.body)
	return &s
}
