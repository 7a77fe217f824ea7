package policy

import "context"

// Text returns the text of the file whose rules apply, as far as the dialect reads it. It reports false
// if rules apply but their text is not in the store. If no rules apply, the text is nil. The caller must
// not change it.
func (c *Cache) Text(ctx context.Context, p *Policy) (text []byte, ok bool) {
	f := p.rules()
	switch {
	case f == nil:
		return nil, true
	case p.copy.given:
		return c.options.Given, true
	case f.sum == emptySum:
		return []byte{}, true
	}
	kept := c.store()
	if kept == nil {
		return nil, false
	}
	raw, err := kept.Get(ctx, storeKey(p.Authority))
	if err != nil {
		c.storeFailed(ctx, "reading", p.Authority, err)
		return nil, false
	}
	stored, err := usable(raw)
	if err != nil || stored.copy == nil || sumOf(stored.body) != f.sum {
		return nil, false
	}
	return stored.body, true
}

func (c *Cache) hasText(ctx context.Context, p *Policy) bool {
	_, ok := c.Text(ctx, p)
	return ok
}

// needsText reports whether the file has to be fetched because its text is needed and no longer known.
// old is the policy in the cache, or nil. A policy that is in the store has its text there.
func (f Fetch) needsText(old *Policy) bool { return f.Text && old != nil && old.rules() != nil }
