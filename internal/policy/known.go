package policy

import (
	"context"
	"iter"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// Known returns the policy that governs the pages of a if the cache has one that holds at now, else
// nil: then Get has to be asked, which knows in addition what holds for one way of asking. It does
// not allocate.
func (c *Cache) Known(ctx context.Context, now time.Time, a dialect.Authority) *Policy {
	known := c.policies.get(a)
	if !known.Fresh(now) || known.unanswered() || c.closed.Load() || ctx.Err() != nil {
		return nil
	}
	return known
}

// Last returns the policy of a that the cache keeps, if it has one, even if that has expired. Else,
// and if ctx or the cache has ended, it returns nil.
func (c *Cache) Last(ctx context.Context, a dialect.Authority) *Policy {
	if c.closed.Load() || ctx.Err() != nil {
		return nil
	}
	return c.policies.get(a)
}

// All yields the policies that are kept, also those that hold no more, in no order. Those that come
// or go meanwhile may be missing.
func (c *Cache) All() iter.Seq[*Policy] { return c.policies.all }

// SiteAnswered notes that a page of the policy's authority was answered: the site is generally
// available, even if its robots.txt is not. It does nothing unless p is Failing.
func (p *Policy) SiteAnswered() {
	if p.failure != nil {
		p.failure.answered.set(now())
	}
}
