package judge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store"
)

// Policies are the robots.txt files as this crawler reads them. The rules that apply depend on the
// settings of the host and on the crawler's product tokens. Therefore each pair of settings and
// tokens has its own reader, which is made when it is first needed. Settings that read robots.txt
// alike share their readers.
//
// All readers share one memory for their policies. From the second one on, they also share the
// files that they fetch, so a site gets one request for the names that follow.
type Policies struct {
	report       *reporter.Reporter
	delays       Delays
	settings     *Settings
	Store        store.Store // of the user; nil if there is none
	files        *policy.Files
	memory       *policy.Memory
	shadows      []dialect.Dialect
	shadowMemory []*policy.Memory // one for each of shadows

	// mu protects readers, uses, closed, and reader.used.
	mu      sync.Mutex
	readers map[readerKey]*Reader
	uses    uint64 // the number of calls of open
	closed  bool

	closing context.Context // ends with stop
	end     context.CancelCauseFunc
}

// A Reader has the robots.txt files for one pair of settings and product tokens.
type Reader struct {
	Name      string // readerKey.name
	tokens    string // separated by blanks
	userAgent string // that last led to this reader; "" for DefaultUserAgent
	cache     *policy.Cache
	shadows   []*policy.Cache // one for each of policies.shadows
	used      uint64          // policies.uses when open last returned it
}

type readerKey struct {
	settings int    // alike.number
	name     string // the product tokens
}

// maxReaders is the number of readers from which on the one that was not used for longest is
// dropped when a new one is needed. A program may have a name for each of its customers. A reader
// that is needed again is made again, and finds its files in policies.files or in the Store.
const maxReaders = 1000

// DefaultUserAgent is the user agent of Check and Pages if no collector is attached. It is not the
// name of the crawler, so its first use by a collector is no change of the name.
const DefaultUserAgent = "collyrobots (+https://github.com/collyrobots/collyrobots)"

// GoUserAgent is the user agent of net/http, which sends it with requests that have no such header.
const GoUserAgent = "Go-http-client/1.1"

// NewPolicies returns the policies of a plugin. kept is the user's store, or nil.
func NewPolicies(s *Settings, shadows []dialect.Dialect, kept store.Store, w *exchange.Wire) *Policies {
	p := &Policies{
		report:   w.Report,
		delays:   Delays{Wire: w},
		settings: s,
		Store:    kept,
		files:    policy.NewFiles(),
		memory:   policy.NewMemory(0),
		shadows:  shadows,
		readers:  make(map[readerKey]*Reader),
	}
	p.closing, p.end = context.WithCancelCause(context.Background())
	if kept != nil && !w.IsShared {
		w.Hosts.UseMemory(paces{store: kept, log: w.Report.Log})
	}
	for range shadows {
		p.shadowMemory = append(p.shadowMemory, policy.NewMemory(0))
		p.files.Share() // so that a file is fetched once for all dialects
	}
	return p
}

// token returns Decision.Token. r may be nil, if robots.txt is ignored.
func (r *Reader) token() string {
	if r == nil {
		return ""
	}
	return r.tokens
}

// A pacedHost is a host that has a delay.
type pacedHost interface {
	Delay(now time.Time) time.Duration
}

// Known returns the policy that applies at now to requests for a, which go to host. It returns nil
// if robots.txt has to be fetched first. A policy that has expired applies if it was read at turn or
// later, which is the time of Fetcher.Turn.
func (r *Reader) Known(ctx context.Context, now time.Time, a dialect.Authority, host pacedHost, turn time.Time) *policy.Policy {
	return known(ctx, r.cache, now, a, host, turn)
}

// known is Known for one of the reader's caches.
func known(ctx context.Context, cache *policy.Cache, now time.Time, a dialect.Authority, host pacedHost, turn time.Time) *policy.Policy {
	if pol := cache.Known(ctx, now, a); pol != nil {
		return pol
	}
	pol := cache.Last(ctx, a)
	if pol.MayDecide(now, host.Delay(now)) || pol.ReadSince(turn) {
		return pol
	}
	return nil
}

// get returns the policy of an authority from one of the reader's caches, which fetches robots.txt
// as f says if necessary.
func (r *Reader) get(ctx context.Context, cache *policy.Cache, a dialect.Authority, userAgent string, f exchange.Fetcher) (*policy.Policy, error) {
	if pol := cache.Known(ctx, time.Now(), a); pol != nil && !f.ReadsText {
		return pol, nil
	}
	for {
		pol, err := cache.Get(ctx, a, f.PolicyFetch(a, userAgent))
		if err == nil {
			if pol.Forbidden() && f.From.Host == "" && !f.Wire.Networks.DeniesAll() {
				continue // the fetch of another caller was refused; this caller's would not be
			}
			return pol, nil
		}
		var noPace *report.PaceError
		var exceeded *netguard.QuotaError
		switch {
		case errors.As(err, &noPace):
			return nil, noPace
		case errors.Is(err, policy.ErrClosed):
			return nil, errReaderClosed
		case errors.As(err, &exceeded) && exceeded.From != f.From.Payer:
			continue // another caller has used up its quota; this caller has its own
		}
		return nil, err
	}
}

// errReaderClosed is the error of a reader that was dropped or closed.
var errReaderClosed = errors.New("collyrobots: the reader of robots.txt is closed")

// get returns the policy of a. If the reader of v was dropped, get sets another one in v.
func (p *Policies) get(ctx context.Context, v *Verdict, a dialect.Authority, userAgent string, f exchange.Fetcher) (*policy.Policy, error) {
	for {
		pol, err := v.Reader.get(ctx, v.Reader.cache, a, userAgent, f)
		if !errors.Is(err, errReaderClosed) {
			return pol, err
		}
		if p.closing.Err() != nil {
			return nil, report.ErrClosed
		}
		v.Reader, err = p.Reader(v.Settings, v.Settings.nameFor(&f, userAgent))
		if err != nil {
			return nil, err
		}
	}
}

// Reader returns the reader for hosts with settings s and a crawler with this user agent.
func (p *Policies) Reader(s *HostSettings, userAgent string) (*Reader, error) {
	before := s.alike.last.Load()
	if before != nil && before.userAgent == userAgent {
		return before, nil
	}
	tokens := s.ProductTokens(s.Dialect, userAgent)
	r, isNew, err := p.open(s, tokens, userAgent)
	if isNew {
		p.warnOfName(s, before, tokens[0], userAgent)
	}
	return r, err
}

// LastUserAgent returns a user agent that robots.txt was read for, or "".
func (p *Policies) LastUserAgent() string {
	for _, a := range p.settings.readings() {
		r := a.last.Load()
		if r != nil {
			return r.userAgent
		}
	}
	return ""
}

// warnOfName warns if the crawler's name, which is new, is probably a mistake. before is the reader
// that was used before; if nil, the name is the first. The caller must not hold a lock, because the
// user's slog.Handler may call the Plugin.
func (p *Policies) warnOfName(s *HostSettings, before *Reader, token, userAgent string) {
	if before != nil {
		p.report.Warn("user agent changes during the crawl, robots.txt is read for each name; set ProductToken",
			"agent", before.userAgent, "token", token)
	}
	if token == "" && userAgent != DefaultUserAgent && !s.ByCollector() {
		p.report.Warn("user agent names no crawler, only the groups for * apply; set ProductToken", "agent", userAgent)
	}
	if userAgent == GoUserAgent && s.Tokens == nil {
		p.report.Warn("requests have no User-Agent header, so net/http sends its own; set the header, or ProductToken", "agent", userAgent)
	}
}

// open returns the reader for a crawler with these tokens, and makes it if necessary. It reports
// whether the tokens are new. UserAgent is the one that led to the tokens.
func (p *Policies) open(s *HostSettings, tokens []string, userAgent string) (r *Reader, isNew bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, report.ErrClosed
	}
	key := readerKey{settings: s.alike.number, name: fmt.Sprint(tokens)}
	r = p.readers[key]
	if r == nil {
		isNew = true
		r = p.add(s, key, tokens, userAgent)
	}
	p.uses++
	r.used = p.uses
	if userAgent == DefaultUserAgent {
		return r, isNew, nil
	}
	used := *r
	used.userAgent = userAgent
	s.alike.last.Store(&used)
	return &used, isNew, nil
}

// add makes the reader of a key. p.mu is held.
func (p *Policies) add(s *HostSettings, key readerKey, tokens []string, userAgent string) *Reader {
	if len(p.readers) >= maxReaders {
		p.drop()
	}
	if len(p.readers) > 0 {
		p.files.Share()
	}
	o := p.cacheOptions(s, s.Dialect, tokens)
	o.Memory = p.memory
	o.Read = func(pol *policy.Policy) { p.delays.learn(p.settings.ofSite(pol.Authority), key.name, pol) }
	o.Updated = func(u policy.Update) {
		of := p.settings.ofSite(u.Policy.Authority)
		p.logIfNoDelay(of, u.Policy)
		p.updated(of, u)
	}
	r := &Reader{Name: key.name, tokens: strings.Join(tokens, " "), cache: policy.New(o)}
	for i, d := range p.shadows {
		o := p.cacheOptions(s, d, s.ProductTokens(d, userAgent))
		o.Memory = p.shadowMemory[i]
		r.shadows = append(r.shadows, policy.New(o))
	}
	p.readers[key] = r
	return r
}

// drop closes and removes the reader that was not used for longest. It keeps a reader that fetches
// a file, and one that was used last, because its uses are not counted. A request that still has the
// reader is judged by another one with the same name. p.mu is held.
func (p *Policies) drop() {
	oldest := readerKey{}
	found := false
	for key, r := range p.readers {
		if (!found || r.used < p.readers[oldest].used) && !p.isLast(r) && !r.cache.Busy() {
			oldest = key
			found = true
		}
	}
	if !found || !p.readers[oldest].cache.CloseIdle() {
		return
	}
	for _, cache := range p.readers[oldest].shadows {
		cache.Stop() // it has no fetch under way, or one whose result only a comparison needs
	}
	delete(p.readers, oldest)
}

// isLast reports whether a reader was the last one that its settings have used.
func (p *Policies) isLast(r *Reader) bool {
	for _, a := range p.settings.readings() {
		if last := a.last.Load(); last != nil && last.cache == r.cache {
			return true
		}
	}
	return false
}

// cacheOptions returns the options of a cache of robots.txt files that are read under dialect d.
func (p *Policies) cacheOptions(s *HostSettings, d dialect.Dialect, tokens []string) policy.Options {
	return policy.Options{
		Dialect:         d,
		Tokens:          tokens,
		HonorDelays:     s.HonorDelays,
		Given:           s.RobotsTxt,
		WhenUnreachable: s.WhenUnreachable,
		WhenForbidden:   s.WhenForbidden,
		Store:           p.Store,
		Files:           p.files,
		Log:             p.report.Log,
		Found:           p.delays.found,
		Private:         p.delays.private,
	}
}

// cleaned returns u without the query parameters that do not change the page, according to the
// Clean-param lines in the robots.txt of its site. It returns u itself if there are none, if they
// are not known yet, or if the dialect has no Clean-param. The lines hold for all crawlers, so the
// name of the crawler does not matter.
func (p *Policies) cleaned(s *HostSettings, a dialect.Authority, u *url.URL) *url.URL {
	if s.Dialect != dialect.Yandex() || s.IgnoresRobots(time.Now()) {
		return u
	}
	r := s.alike.last.Load()
	if r == nil {
		return u
	}
	pol := r.cache.Last(context.Background(), a)
	if pol == nil {
		return u
	}
	return pol.CleanParams().Clean(u)
}

// logIfNoDelay logs, once per plugin, that a host has no delay at all. Its crawl is not polite,
// although each request is checked.
func (p *Policies) logIfNoDelay(s *HostSettings, pol *policy.Policy) {
	hasDelay := s.Pace.MinDelay > 0 || s.Pace.Adaptive > 0 || pol.CrawlDelay() > 0 || pol.LastSchedule() != nil
	if s.Pace.Free || hasDelay || pol.RobotsStatus == policy.Unreachable || pol.RobotsStatus == policy.SiteDown {
		return
	}
	if !p.report.MarkLogged("no delay") {
		return
	}
	server, _ := policy.Server(pol.Authority)
	p.report.Log.Info("no delay between requests to this host, because its robots.txt asks for none; set MinDelay to be polite to all hosts",
		"host", server)
}

// updated logs a change of robots.txt, and sends the event about the fetch. The new crawl delay is
// already in force, and the rules are in force when updated returns. Each request that waits is
// checked again before it starts.
func (p *Policies) updated(s *HostSettings, u policy.Update) {
	var change *report.RobotsChange
	if u.Changed() {
		change = reporter.ChangeOf(u.Old, u.Policy)
		p.report.Log.Info("robots.txt has changed", "robots", change.RobotsURL,
			"robots_status", change.New.RobotsStatus, "delay", change.New.CrawlDelay,
			slog.Group("old", "robots_status", change.Old.RobotsStatus, "delay", change.Old.CrawlDelay))
	}
	p.report.TellRobots(u, change, s.override(u.Policy))
}

// Statistics counts the policies in all caches by their status.
func (p *Policies) Statistics() map[report.RobotsStatus]report.PolicyStats {
	stats := make(map[report.RobotsStatus]report.PolicyStats)
	for pol := range p.memory.All {
		status := reporter.StatusOf(pol)
		at := pol.Fetched()
		s := stats[status]
		s.Count++
		if s.Oldest.IsZero() || at.Before(s.Oldest) {
			s.Oldest = at
		}
		stats[status] = s
	}
	return stats
}

// Until returns a context that ends with ctx, or with ErrClosed when the plugin is closed. The
// caller must call release when it no longer needs the context.
func (p *Policies) Until(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(p.closing, func() { cancel(report.ErrClosed) })
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

// Stop ends all waits for policies, and the reading of sitemaps, with ErrClosed.
func (p *Policies) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.end(report.ErrClosed)
	for _, r := range p.readers {
		r.cache.Stop()
		for _, cache := range r.shadows {
			cache.Stop()
		}
	}
}

// Close closes the readers after stop. It waits for the fetches under way. It holds no lock while
// it waits, because a fetch may log, and the user's slog.Handler may call the Plugin.
func (p *Policies) Close() {
	p.mu.Lock()
	readers := p.readers
	p.mu.Unlock()
	for _, r := range readers {
		r.cache.Close()
		for _, cache := range r.shadows {
			cache.Close()
		}
	}
	p.memory.Clear()
	for _, memory := range p.shadowMemory {
		memory.Clear()
	}
}
