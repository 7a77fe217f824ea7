package policy

import (
	"context"
	"errors"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

// recordLife is how long a record outlives its last change: longer than any stage of an outage, in
// which the record changes with every try.
const recordLife = 60 * day

// storeKey is the key of a's record.
func storeKey(a dialect.Authority) string { return "robots:" + a.String() }

// recall returns what is known of a: by the cache, and by the store, where others may have written
// since.
func (c *Cache) recall(ctx context.Context, a dialect.Authority, old *Policy) facts {
	var f facts
	if old != nil {
		f = facts{copy: old.copy, failure: old.failure}
	}
	if c.options.Store == nil {
		return f
	}
	raw, err := c.options.Store.Get(ctx, storeKey(a))
	if err != nil {
		c.storeFailed(ctx, "reading", a, err)
		return f
	}
	stored, err := usable(raw)
	if err != nil {
		c.storeFailed(c.ctx, "decoding", a, err)
	}
	return f.merge(c.access.readable(stored))
}

// remember adds o to what is known of a, in the store too, and returns the sum. A store that fails
// is reported; the crawl goes on with what the process knows.
func (c *Cache) remember(ctx context.Context, a dialect.Authority, known facts, o outcome) facts {
	sum := known.after(o)
	if c.options.Store == nil {
		return sum
	}
	var unusable error // logged below: the store may hold a lock while it calls update
	update := func(old []byte) ([]byte, error) {
		var stored facts
		stored, unusable = usable(old)
		sum = c.access.readable(stored).merge(known).after(o)
		return stored.merge(known).after(o).withBody(stored).encode()
	}
	err := c.options.Store.Update(ctx, storeKey(a), recordLife, update)
	if corrupt := (*store.CorruptError)(nil); errors.As(err, &corrupt) {
		c.storeFailed(ctx, "updating", a, err)
		err = c.options.Store.Update(ctx, storeKey(a), recordLife, update)
	}
	if err != nil {
		c.storeFailed(ctx, "updating", a, err)
	}
	if unusable != nil {
		c.storeFailed(c.ctx, "decoding", a, unusable)
	}
	return sum
}

// usable returns the facts of a record. It returns none if there is no record, and none and an
// error if the record cannot be used.
func usable(raw []byte) (facts, error) {
	if raw == nil {
		return facts{}, nil
	}
	f, err := decode(raw)
	if err != nil {
		return facts{}, err
	}
	if f.inFuture(now()) {
		return facts{}, errFuture
	}
	return f, nil
}

// errFuture is what is wrong with a record that was written by a clock that ran ahead: for as long
// as that, it would never be old.
var errFuture = errors.New("its time lies in the future")

// clockSkew is how far the clocks of those who share a store may differ.
const clockSkew = time.Minute

// inFuture reports whether a time in f lies after now, or the next try further off than Retry-After
// can put it.
func (f facts) inFuture(now instant) bool {
	limit := now.add(clockSkew)
	if f.copy != nil && f.copy.fetched > limit {
		return true
	}
	x := f.failure
	return x != nil && (max(x.first, x.last, x.answered.get()) > limit || x.wait > longestWait)
}

func (c *Cache) storeFailed(ctx context.Context, action string, a dialect.Authority, err error) {
	if ctx.Err() == nil {
		c.log.Error("robots.txt record lost", "action", action, "robots", a.RobotsURL(), "error", err)
	}
}

// withBody returns f with the body of its copy, which one that has been read no longer has: the
// stored one has it. A copy whose body is gone is not worth storing.
func (f facts) withBody(stored facts) facts {
	if f.copy == nil || f.body != nil || f.copy.reading == nil || f.copy.reading.sum == (sum{}) {
		return f
	}
	if stored.copy == nil || sumOf(stored.body) != f.copy.reading.sum {
		f.copy = nil
		return f
	}
	f.body = stored.body
	return f
}
