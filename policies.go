package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

// policies are what robots.txt files say to this crawler. Settings that differ read the same file
// differently, and so do collectors with different names: each pair of settings and name has a
// reader of its own, which is made when the name is first seen.
type policies struct {
	report  *report
	shadows []dialect.Dialect                                        // that read along
	read    func(s *hostSettings, reader string, pol *policy.Policy) // told before the host is given back; nil: nobody is
	found   func(a dialect.Authority, private bool)                  // is told which sites the store knows
	private func(a dialect.Authority) bool                           // reports whether a site is at a private address
	last    []atomic.Pointer[reader]                                 // the reader that served last, by hostSettings.index

	mu      sync.Mutex
	readers map[readerKey]*reader
	store   store.Store // what the readers share; nil: nothing
	own     bool        // nobody else knows the store
	closed  bool

	closing context.Context // ends with stop
	end     context.CancelCauseFunc
}

// A reader reads robots.txt under one name and one hostSettings.
type reader struct {
	name      string // readerKey.name
	userAgent string // it was last asked for
	cache     *policy.Cache
	shadows   []*policy.Cache // the same in the dialects of policies.shadows
}

type readerKey struct {
	settings int // hostSettings.index
	name     string
}

// maxNames bounds the names of one crawl. A program that makes up its names is read as its first.
const maxNames = 32

// nobody is the user agent of Check and Pages where no collector is attached. Only pages name the
// crawler, so nothing is concluded from it.
const nobody = "collyrobots (+https://github.com/collyrobots/collyrobots)"

func newPolicies(settings int, shadows []dialect.Dialect, s store.Store, r *report) *policies {
	p := &policies{report: r, shadows: shadows, store: s, last: make([]atomic.Pointer[reader], settings), readers: make(map[readerKey]*reader)}
	p.closing, p.end = context.WithCancelCause(context.Background())
	if s == nil && len(shadows) > 0 {
		p.store, p.own = store.Memory(), true // so that each file is fetched once
	}
	return p
}

// A pacedHost is a host that has a delay.
type pacedHost interface {
	Delay(now time.Time) time.Duration
}

// known returns the policy that decides at now about requests for a, which go to host, or nil if
// robots.txt has to be read first.
func (r *reader) known(ctx context.Context, now time.Time, a dialect.Authority, host pacedHost) *policy.Policy {
	if pol := r.cache.Known(ctx, now, a); pol != nil {
		return pol
	}
	pol := r.cache.Last(ctx, a)
	if pol.MayDecide(now, host.Delay(now)) {
		return pol
	}
	return nil
}

// get returns the policy of an authority from one of the reader's caches.
func (r *reader) get(ctx context.Context, cache *policy.Cache, a dialect.Authority, userAgent string, f fetcher) (*policy.Policy, error) {
	if pol := cache.Known(ctx, time.Now(), a); pol != nil {
		return pol, nil
	}
	for {
		pol, err := cache.Get(ctx, a, f.how(userAgent))
		if unpaced := (*PaceError)(nil); errors.As(err, &unpaced) {
			err = unpaced
		} else if errors.Is(err, policy.ErrClosed) {
			err = ErrClosed
		}
		excess := (*netguard.QuotaError)(nil)
		switch {
		case err == nil && pol.Forbidden() && f.from.host == "":
			continue // the fetch of another caller was refused, which has no bearing on this one
		case errors.As(err, &excess) && excess.From != f.from.payer:
			continue
		}
		return pol, err
	}
}

// reader returns the reader for a crawler with this user agent.
func (p *policies) reader(s *hostSettings, userAgent string) (*reader, error) {
	before := p.last[s.index].Load()
	if before != nil && before.userAgent == userAgent {
		return before, nil
	}
	tokens := s.productTokens(s.dialect, userAgent)
	r, isNew, err := p.open(s, tokens, userAgent)
	if isNew {
		p.warnOfName(s, before, tokens[0], userAgent)
	}
	return r, err
}

// warnOfName warns if a name that robots.txt is read for is probably a mistake. before is the
// reader that was in use; if nil, the name is the first. The caller must not hold a lock, because
// the user's slog.Handler may call the Plugin.
func (p *policies) warnOfName(s *hostSettings, before *reader, token, userAgent string) {
	if before != nil {
		p.report.warn("the user agent changes during the crawl and no ProductToken is set: robots.txt is read for each of its names",
			"agent", before.userAgent, "token", token)
	}
	if token == "" && userAgent != nobody && !s.byCollector() {
		p.report.warn("the user agent names no crawler, so only the groups for * of each robots.txt apply: set ProductToken", "agent", userAgent)
	}
}

// open returns the reader for a crawler with these tokens and this user agent, made if need be, and
// reports whether the tokens are new.
func (p *policies) open(s *hostSettings, tokens []string, userAgent string) (r *reader, isNew bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, ErrClosed
	}
	key := readerKey{settings: s.index, name: fmt.Sprint(tokens)}
	r = p.readers[key]
	if r == nil {
		isNew = true
		r = p.add(s, key, tokens, userAgent)
	}
	if userAgent == nobody {
		return r, isNew, nil
	}
	known := &reader{name: r.name, userAgent: userAgent, cache: r.cache, shadows: r.shadows}
	p.last[s.index].Store(known)
	return known, isNew, nil
}

// add makes the reader of a key, or returns the last one if there are too many. p.mu is held.
func (p *policies) add(s *hostSettings, key readerKey, tokens []string, userAgent string) *reader {
	last := p.last[s.index].Load()
	if last != nil && len(p.readers) >= maxNames {
		return last
	}
	r := &reader{name: key.name, cache: p.cacheOf(s, s.dialect, key.name, tokens, true)}
	for _, d := range p.shadows {
		r.shadows = append(r.shadows, p.cacheOf(s, d, key.name, s.productTokens(d, userAgent), false))
	}
	p.readers[key] = r
	return r
}

// cacheOf returns a cache of what files say in a dialect. Without tell, that is nobody's concern.
func (p *policies) cacheOf(s *hostSettings, d dialect.Dialect, name string, tokens []string, tell bool) *policy.Cache {
	o := policy.Options{Dialect: d, Tokens: tokens, HonorCrawlDelay: s.honorCrawlDelay, Store: p.store, Log: p.report.log, Found: p.found, Private: p.private}
	if tell {
		o.Updated = func(u policy.Update) {
			p.sayIfUnpaced(s, u.Policy)
			p.updated(u)
		}
	}
	if tell && p.read != nil {
		o.Read = func(pol *policy.Policy) { p.read(s, name, pol) }
	}
	return policy.New(o)
}

// sayIfUnpaced logs, once per plugin, that a host has no delay at all. Its crawl is not polite,
// although each request was checked.
func (p *policies) sayIfUnpaced(s *hostSettings, pol *policy.Policy) {
	if s.pace.Free || s.pace.MinDelay > 0 || pol.CrawlDelay() > 0 || pol.RobotsStatus == policy.Unreachable || pol.RobotsStatus == policy.SiteDown {
		return
	}
	if !p.report.first("no delay") {
		return
	}
	server, _ := policy.Server(pol.Authority)
	p.report.log.Info("no delay between requests to this host, because its robots.txt asks for none: set MinDelay to be polite to all hosts", "host", server)
}

// updated logs a robots.txt that has changed, and tells listeners of one that was read, or could not
// be. The delay of the new one is in force already, and each request that waits is judged again when
// its turn comes.
func (p *policies) updated(u policy.Update) {
	var change *RobotsChange
	if u.Changed() {
		change = changeOf(u.Old, u.Policy)
		p.report.log.Info("robots.txt has changed", "robots", change.RobotsURL, "robots_status", change.New.RobotsStatus, "delay", change.New.CrawlDelay,
			slog.Group("old", "robots_status", change.Old.RobotsStatus, "delay", change.Old.CrawlDelay))
	}
	p.report.tellRobots(u, change)
}

// PolicyStats are the robots.txt files that mean the same. A file that is read in several ways,
// because of several names or ForHosts, counts for each.
type PolicyStats struct {
	Count  int       `json:"count"`
	Oldest time.Time `json:"oldest,omitzero"` // when the first of them was read, or the last try failed
}

// statistics returns how many policies are kept, by what they mean.
func (p *policies) statistics() map[RobotsStatus]PolicyStats {
	p.mu.Lock()
	readers := slices.Collect(maps.Values(p.readers))
	p.mu.Unlock()
	stats := make(map[RobotsStatus]PolicyStats)
	for _, r := range readers {
		for pol := range r.cache.All() {
			status, at := RobotsStatus(pol.RobotsStatus.String()), pol.Fetched()
			s := stats[status]
			if s.Count++; s.Oldest.IsZero() || at.Before(s.Oldest) {
				s.Oldest = at
			}
			stats[status] = s
		}
	}
	return stats
}

// userStore returns the user's store, or nil.
func (p *policies) userStore() store.Store {
	if p.own {
		return nil
	}
	return p.store
}

// until returns a context that ends with ctx, or with ErrClosed when the plugin is closed. release
// must be called when it is no longer needed.
func (p *policies) until(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(p.closing, func() { cancel(ErrClosed) })
	return ctx, func() { forget(); cancel(nil) }
}

// stop ends whatever waits for a policy, or reads sitemaps, with ErrClosed.
func (p *policies) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.end(ErrClosed)
	for _, r := range p.readers {
		r.cache.Stop()
		for _, cache := range r.shadows {
			cache.Stop()
		}
	}
}

// close ends the readers after stop. It waits for fetches that are under way. They may log, and the
// user's slog.Handler may ask for a policy, so close holds no lock meanwhile.
func (p *policies) close() error {
	p.mu.Lock()
	readers := p.readers
	p.mu.Unlock()
	for _, r := range readers {
		r.cache.Close()
		for _, cache := range r.shadows {
			cache.Close()
		}
	}
	if p.own {
		return p.store.Close()
	}
	return nil
}
