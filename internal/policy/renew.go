package policy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// renew returns the policy of a after a fetch, or after a look-up in the store that makes the fetch
// unnecessary. old is the policy in the cache; it may be nil. The update has no policy if ctx was
// canceled. The error is the reason why nothing was sent. In both cases nothing is known about the site.
func (c *Cache) renew(ctx context.Context, a dialect.Authority, old *Policy, how Fetch) (Update, error) {
	if c.options.Given != nil {
		f := c.given()
		return c.accept(c.policyOf(a, f), old, f, false), nil
	}
	release := c.options.Files.claim(ctx, a, c, how.Way.Client)
	defer release()
	known := c.recall(ctx, a, old)
	if old == nil && (known.copy != nil || known.failure != nil) && c.options.Found != nil {
		c.options.Found(a, known.copy != nil && known.copy.private)
	}
	if !c.stale(known, how.Way) && !how.needsText(old) {
		return c.accept(c.policyOf(a, known), old, known, true), nil
	}
	if old == nil && known.copy != nil && c.options.Read != nil {
		c.options.Read(c.policyOf(a, known)) // the crawl delay of the record holds until the file is read again
	}
	return c.refetch(ctx, a, old, known, how)
}

// refetch fetches the file of a, unless another process or cache does so first. known is the stale result
// of the earlier fetches.
func (c *Cache) refetch(ctx context.Context, a dialect.Authority, old *Policy, known facts, how Fetch) (Update, error) {
	stored := false // by another process or cache, while the Doer waited for the server
	look := func() error {
		known = c.recall(ctx, a, old)
		if c.stale(known, how.Way) || how.needsText(old) {
			return nil
		}
		stored = true
		return ErrUnsent
	}
	fetchCtx := ctx
	if c.store() != nil {
		w := wanted{look: sync.OnceValue(look), byOthers: c.options.Files.shared()}
		fetchCtx = context.WithValue(ctx, wantedKey{}, w)
	}
	waitToRetry(ctx, known.failure)
	before := old.unansweredBy(how.Way)
	o, done := c.fetch(fetchCtx, a, known, before, how)
	defer done()
	switch {
	case ctx.Err() != nil:
		return Update{}, nil
	case stored:
		return c.accept(c.policyOf(a, known), old, known, true), nil
	case o.unsent != nil:
		return Update{}, o.unsent
	case o.failure != nil && how.needsText(old) && old.Fresh(time.Now()):
		return Update{Policy: old}, nil // the fetch was made for the text only
	case o.failure.forbidden():
		p := c.policyOf(a, known.after(o))
		c.report(p)
		u := Update{Policy: p, Old: old}
		c.updated(u)
		return u, nil
	}
	known = c.remember(ctx, a, known, o)
	p := c.policyOf(a, known)
	if before == nil { // otherwise an earlier fetch was reported
		c.report(p)
	}
	return c.accept(p, old, known, false), nil
}

// accept announces p, the policy of f, and then puts it into the cache. It returns the update. If this
// fetch got no response, and another fetch got one in the meantime, the cache keeps the policy of the
// other fetch, and the update has that policy.
func (c *Cache) accept(p, old *Policy, f facts, stored bool) Update {
	c.share(p)
	if !p.unanswered() {
		u := c.announce(p, old, f, stored)
		c.memory.put(c, p)
		return u
	}
	defer c.lockUnanswered(p.Authority)()
	known := c.memory.get(c, p.Authority)
	if known.Fresh(time.Now()) && !known.unanswered() {
		c.dropped(p)
		return c.announce(known, old, f, stored)
	}
	unanswered := *p.failure.unanswered // a copy, because the policy that is replaced may have the same one
	unanswered.next = known.others(unanswered.way, maxWays)
	x := *p.failure
	x.unanswered = &unanswered
	p.failure = &x
	u := c.announce(p, old, f, stored)
	c.memory.put(c, p)
	return u
}

// announce returns the update to the policy p of f, after calling Options.Read and Options.Updated.
func (c *Cache) announce(p, old *Policy, f facts, stored bool) Update {
	if c.options.Read != nil {
		c.options.Read(p)
	}
	u := Update{Policy: p, Old: old, Stored: stored}
	if p.rules() != nil {
		u.Body = f.body
	}
	c.updated(u)
	return u
}

// stale reports whether the file has to be fetched in this way. A fetch without a response is
// always stale here: the pause after it holds only for callers with the same Way, which use the
// policy in the cache. The answer of a proxy holds for the ways that always use it.
func (c *Cache) stale(f facts, way Way) bool {
	x := f.failure
	if x != nil && x.unanswered != nil && (x.class == noResponse || way.Proxy == "" || !x.holdsFor(way)) {
		return true
	}
	_, expires := c.access.status(f)
	return expires <= now()
}

func (c *Cache) updated(u Update) {
	if c.options.Updated != nil {
		c.options.Updated(u)
	}
}

func (c *Cache) report(p *Policy) {
	err := p.Err()
	if err == nil {
		return
	}
	facts := []any{"robots", p.RobotsURL(), "error", err, "status", p.Status(),
		"robots_status", p.RobotsStatus.String(), "stale", p.Stale(), "until", p.Expires()}
	if p.Walled() {
		facts = append(facts, slog.Bool("walled", true))
	}
	option := p.Override(c.options.WhenUnreachable, c.options.WhenForbidden)
	if option != "" {
		facts = append(facts, slog.String("option", option))
	}
	c.log.Warn("robots.txt could not be read", facts...)
}
