package collyrobots

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

// readers read robots.txt: one for each regime, and one for each shadow. All read through one store, so that each file is
// fetched once. They are made when the first user agent is seen, which may be the crawler's only name.
type readers struct {
	config  *config
	changed func(r *regime, old, new *policy.Policy)

	mu      sync.Mutex
	agent   string                    // the first user agent
	caches  map[*regime]*policy.Cache // nil until it is known
	shadows []*shadow
	own     store.Store // what the readers share where the options name no store; else nil
	closed  bool
}

// resolve sets the policy that governs u.
func (rs *readers) resolve(ctx context.Context, v *verdict, u *url.URL, userAgent string, do policy.Doer) error {
	if v.regime.ignoreRobots {
		v.reason, v.rule = ReasonIgnored, dialect.Decision{Allowed: true}
		v.policy = unasked(u)
		return nil
	}
	cache, err := rs.cache(v.regime, userAgent)
	if err == nil {
		v.policy, err = cache.Get(ctx, u, userAgent, do)
	}
	if errors.Is(err, policy.ErrClosed) {
		err = ErrClosed
	}
	return err
}

// unasked is the policy of an authority whose robots.txt nobody asks for.
func unasked(u *url.URL) *policy.Policy {
	p := &policy.Policy{Meaning: policy.NoRestriction, Group: nobody}
	if robots, err := dialect.Locate(u); err == nil {
		p.RobotsURL, p.Authority = robots.String(), robots.Scheme+"://"+robots.Host
	}
	return p
}

var nobody = dialect.RFC9309().Parse(nil).Group()

// cache returns what a regime reads with.
func (rs *readers) cache(r *regime, userAgent string) (*policy.Cache, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, ErrClosed
	}
	if rs.caches == nil {
		rs.open(userAgent)
	}
	return rs.caches[r], nil
}

// firstAgent returns the user agent that the readers were made for.
func (rs *readers) firstAgent() string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.agent
}

// open makes the readers. rs.mu is held.
func (rs *readers) open(userAgent string) {
	rs.agent = userAgent
	records := rs.config.store
	if records == nil && len(rs.config.shadows) > 0 {
		rs.own = store.Memory()
		records = rs.own
	}
	read := func(r *regime, changed func(old, new *policy.Policy)) *policy.Cache {
		return policy.New(policy.Options{
			Dialect: r.dialect, Tokens: r.productTokens(userAgent), HonorCrawlDelay: r.honorCrawlDelay,
			Store: records, Log: rs.config.log, Changed: changed,
		})
	}
	rs.caches = make(map[*regime]*policy.Cache)
	for _, r := range rs.config.regimes() {
		rs.caches[r] = read(r, func(old, new *policy.Policy) { rs.changed(r, old, new) })
	}
	for _, d := range rs.config.shadows {
		r := rs.config.regime
		r.dialect = d
		rs.shadows = append(rs.shadows, &shadow{stats: ShadowStats{Dialect: d}, reader: read(&r, nil)})
	}
}

// answered notes that a page of u's authority was answered.
func (rs *readers) answered(u *url.URL) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, cache := range rs.caches {
		cache.Answered(u)
	}
}

// close ends the readers. It waits for their callbacks, which may ask for a policy once more, so it holds no lock meanwhile.
func (rs *readers) close() error {
	rs.mu.Lock()
	rs.closed = true
	caches, shadows, own := rs.caches, rs.shadows, rs.own
	rs.mu.Unlock()
	var faults []error
	for _, cache := range caches {
		faults = append(faults, cache.Close())
	}
	for _, s := range shadows {
		faults = append(faults, s.reader.Close())
	}
	if own != nil {
		faults = append(faults, own.Close())
	}
	return errors.Join(faults...)
}
