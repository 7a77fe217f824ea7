package policy

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

// Options say how a Cache reads robots.txt. The zero value reads as RFC 9309, for a crawler without a name.
type Options struct {
	Dialect         dialect.Dialect
	Tokens          []string     // product tokens, most specific first; none: the groups for "*" apply
	HonorCrawlDelay bool         // also under a dialect that ignores Crawl-delay: read then as RFC 9309's base reads it
	Store           store.Store  // what is learnt is kept there, and looked for there first; nil: in the cache alone. Not closed by Close
	Log             *slog.Logger // nil: nothing is logged
	MaxWeight       uint64       // bound of the cache in octets, estimated; 0: DefaultMaxWeight

	// Changed is told, after the fact, when what an authority's robots.txt means is no longer what it was. It runs
	// outside all locks, on no goroutine of a caller of Get; nil: nobody is told.
	Changed func(old, new *Policy)
}

// DefaultMaxWeight is room for a million hosts.
const DefaultMaxWeight = 500_000_000

// A Cache keeps the policies of authorities. All methods may be called by any number of goroutines at once.
//
// Of otter it uses the bounded map and nothing else: a policy is needed beyond its expiry, as the copy to fall back
// on, and a fetch belongs to all who wait for it, so expiry and loading are its own, in flight.go.
type Cache struct {
	options  Options
	row      row
	reader   *reader
	log      *slog.Logger
	policies *otter.Cache[key, *Policy]

	ctx   context.Context // ends with Close
	close context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	flights map[key]*flight
	running sync.WaitGroup
}

// New returns an empty cache, to be closed by the caller.
func New(o Options) *Cache {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Cache{
		options: o,
		row:     rowOf(o.Dialect),
		reader:  newReader(o),
		log:     o.Log,
		ctx:     ctx,
		close:   cancel,
		flights: make(map[key]*flight),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if o.MaxWeight == 0 {
		o.MaxWeight = DefaultMaxWeight
	}
	c.policies = newMap(o.MaxWeight)
	return c
}

// Get returns the policy that governs the page u, from the cache if it still holds and else by one fetch however many
// ask, made with the first one's userAgent and do. While a policy that has just expired is fetched again by one
// caller, the others use it.
//
// A robots.txt that cannot be read is a policy that says so. An error means that ctx ended, that the cache is closed,
// or that no robots.txt governs u: its scheme is not http, https or ftp, or it has no host.
func (c *Cache) Get(ctx context.Context, u *url.URL, userAgent string, do Doer) (*Policy, error) {
	k, err := keyOf(u)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	known, _ := c.policies.GetIfPresent(k)
	if known.holds(time.Now()) && c.ctx.Err() == nil {
		return known, nil
	}
	return c.join(ctx, k, known, userAgent, do)
}

func (p *Policy) holds(now time.Time) bool { return p != nil && now.Before(p.Expires) }

// Answered notes that a page of u's authority was answered: the site is generally available, even if its robots.txt
// is not.
func (c *Cache) Answered(u *url.URL) {
	k, err := keyOf(u)
	if err != nil {
		return
	}
	if p, ok := c.policies.GetIfPresent(k); ok && p.facts.failure != nil {
		p.facts.failure.answered.set(time.Now())
	}
}

// Close ends the fetches under way and waits for them; whoever waits in Get, or calls it later, gets ErrClosed. The
// store stays open.
func (c *Cache) Close() error {
	c.mu.Lock()
	c.closed = true
	c.close(ErrClosed)
	c.mu.Unlock()
	c.running.Wait()
	c.policies.InvalidateAll()
	return nil
}
