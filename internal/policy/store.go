package policy

import (
	"context"
	"errors"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

// recordLife is how long a record is kept after its last change. It is longer than any stage of an
// outage, during which each fetch changes the record.
const recordLife = 60 * day

// storeKey returns the key of a's record.
func storeKey(a dialect.Authority) string { return "robots:" + a.String() }

// recall returns the facts about a in old, which may be nil, and in the store, where another
// process may have written by now.
func (c *Cache) recall(ctx context.Context, a dialect.Authority, old *Policy) facts {
	var f facts
	if old != nil {
		f = facts{copy: old.copy, failure: old.failure}
	}
	kept := c.store()
	if kept == nil {
		return f
	}
	raw, err := kept.Get(ctx, storeKey(a))
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

// remember adds o to the known facts about a, also in the store, and returns the result. If the
// store fails, remember logs that, and the crawl continues with the facts of this process.
func (c *Cache) remember(ctx context.Context, a dialect.Authority, known facts, o outcome) facts {
	result := known.after(o)
	kept := c.store()
	if kept == nil {
		return result
	}
	var unusable error // logged below: the store may hold a lock while it calls update
	update := func(old []byte) ([]byte, error) {
		var stored facts
		stored, unusable = usable(old)
		result = c.access.readable(stored).merge(known).after(o)
		return stored.merge(known).after(o).withBody(stored).encode()
	}
	err := kept.Update(ctx, storeKey(a), recordLife, update)
	if corrupt := (*store.CorruptError)(nil); errors.As(err, &corrupt) {
		c.storeFailed(ctx, "updating", a, err)
		err = kept.Update(ctx, storeKey(a), recordLife, update)
	}
	if err != nil {
		c.storeFailed(ctx, "updating", a, err)
	}
	if unusable != nil {
		c.storeFailed(c.ctx, "decoding", a, unusable)
	}
	return result
}

// usable returns the facts of a record. It returns no facts if there is no record, and an error if
// the record cannot be used.
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

// errFuture is the error for a record from a clock that was ahead. Such a record would not expire
// before its time has come.
var errFuture = errors.New("the record has a time in the future")

// clockSkew is how much the clocks of the processes that share a store may differ.
const clockSkew = time.Minute

// inFuture reports whether a time in f is after now, or whether its Retry-After is longer than the
// limit.
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
		c.log.Error("stored robots.txt record not available", "action", action, "robots", a.RobotsURL(), "error", err)
	}
}

// withBody returns f with the body of its copy. A parsed copy no longer has the body, so withBody
// takes it from stored. If it is not there either, withBody removes the copy, which cannot be
// stored without its body.
func (f facts) withBody(stored facts) facts {
	if f.copy == nil || f.body != nil || f.copy.parsed == nil || f.copy.parsed.sum == emptySum {
		return f
	}
	if stored.copy == nil || sumOf(stored.body) != f.copy.parsed.sum {
		f.copy = nil
		return f
	}
	f.body = stored.body
	return f
}
