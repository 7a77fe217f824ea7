package collyrobots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store"
)

// policies are the robots.txt files as this crawler reads them. The rules that apply depend on the
// settings of the host and on the crawler's product tokens. Therefore each pair of settings and
// tokens has its own reader, which is made when it is first needed. Settings that read robots.txt
// alike share their readers.
//
// All readers share one memory for their policies. From the second one on, they also share the
// files that they fetch, so a site gets one request for the names that follow.
type policies struct {
	report       *reporter.Reporter
	limiter      *limiter
	settings     *settings
	store        store.Store // of the user; nil if there is none
	files        *policy.Files
	memory       *policy.Memory
	shadows      []dialect.Dialect
	shadowMemory []*policy.Memory         // one for each of shadows
	last         []atomic.Pointer[reader] // the reader that was last used, by hostSettings.index

	// mu protects readers, uses, closed, and reader.used.
	mu      sync.Mutex
	readers map[readerKey]*reader
	uses    uint64 // the number of calls of open
	closed  bool

	closing context.Context // ends with stop
	end     context.CancelCauseFunc
}

// A reader has the robots.txt files for one pair of settings and product tokens.
type reader struct {
	name      string // readerKey.name
	tokens    string // separated by blanks
	userAgent string // that last led to this reader; "" for defaultUserAgent
	cache     *policy.Cache
	shadows   []*policy.Cache // one for each of policies.shadows
	used      uint64          // policies.uses when open last returned it
}

type readerKey struct {
	settings int    // hostSettings.index
	name     string // the product tokens
}

// maxReaders is the number of readers from which on the one that was not used for longest is
// dropped when a new one is needed. A program may have a name for each of its customers. A reader
// that is needed again is made again, and finds its files in policies.files or in the Store.
const maxReaders = 1000

// defaultUserAgent is the user agent of Check and Pages if no collector is attached. It is not the
// name of the crawler, so its first use by a collector is no change of the name.
const defaultUserAgent = "collyrobots (+https://github.com/collyrobots/collyrobots)"

// goUserAgent is the user agent of net/http, which sends it with requests that have no such header.
const goUserAgent = "Go-http-client/1.1"

// newPolicies returns the policies of a plugin. kept is the user's store, or nil.
func newPolicies(s *settings, shadows []dialect.Dialect, kept store.Store, l *limiter, r *reporter.Reporter) *policies {
	p := &policies{
		report:   r,
		limiter:  l,
		settings: s,
		store:    kept,
		files:    policy.NewFiles(),
		memory:   policy.NewMemory(0),
		shadows:  shadows,
		last:     make([]atomic.Pointer[reader], len(s.all())),
		readers:  make(map[readerKey]*reader),
	}
	p.closing, p.end = context.WithCancelCause(context.Background())
	for range shadows {
		p.shadowMemory = append(p.shadowMemory, policy.NewMemory(0))
		p.files.Share() // so that a file is fetched once for all dialects
	}
	return p
}

// token returns Decision.Token. r may be nil, if robots.txt is ignored.
func (r *reader) token() string {
	if r == nil {
		return ""
	}
	return r.tokens
}

// A pacedHost is a host that has a delay.
type pacedHost interface {
	Delay(now time.Time) time.Duration
}

// known returns the policy that applies at now to requests for a, which go to host. It returns nil
// if robots.txt has to be fetched first.
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

// get returns the policy of an authority from one of the reader's caches, which fetches robots.txt
// as f says if necessary.
func (r *reader) get(ctx context.Context, cache *policy.Cache, a dialect.Authority, userAgent string, f fetcher) (*policy.Policy, error) {
	if pol := cache.Known(ctx, time.Now(), a); pol != nil {
		return pol, nil
	}
	for {
		pol, err := cache.Get(ctx, a, f.policyFetch(a, userAgent))
		if err == nil {
			if pol.Forbidden() && f.from.host == "" && !f.wire.networks.DeniesAll() {
				continue // the fetch of another caller was refused; this caller's would not be
			}
			return pol, nil
		}
		var noPace *PaceError
		var exceeded *netguard.QuotaError
		switch {
		case errors.As(err, &noPace):
			return nil, noPace
		case errors.Is(err, policy.ErrClosed):
			return nil, errReaderClosed
		case errors.As(err, &exceeded) && exceeded.From != f.from.payer:
			continue // another caller has used up its quota; this caller has its own
		}
		return nil, err
	}
}

// errReaderClosed is the error of a reader that was dropped or closed.
var errReaderClosed = errors.New("collyrobots: the reader of robots.txt is closed")

// get returns the policy of a. If the reader of v was dropped, get sets another one in v.
func (p *policies) get(ctx context.Context, v *verdict, a dialect.Authority, userAgent string, f fetcher) (*policy.Policy, error) {
	for {
		pol, err := v.reader.get(ctx, v.reader.cache, a, userAgent, f)
		if !errors.Is(err, errReaderClosed) {
			return pol, err
		}
		if p.closing.Err() != nil {
			return nil, ErrClosed
		}
		v.reader, err = p.reader(v.settings, v.settings.nameFor(&f, userAgent))
		if err != nil {
			return nil, err
		}
	}
}

// reader returns the reader for hosts with settings s and a crawler with this user agent.
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

// lastUserAgent returns a user agent that robots.txt was read for, or "".
func (p *policies) lastUserAgent() string {
	for i := range p.last {
		r := p.last[i].Load()
		if r != nil {
			return r.userAgent
		}
	}
	return ""
}

// warnOfName warns if the crawler's name, which is new, is probably a mistake. before is the reader
// that was used before; if nil, the name is the first. The caller must not hold a lock, because the
// user's slog.Handler may call the Plugin.
func (p *policies) warnOfName(s *hostSettings, before *reader, token, userAgent string) {
	if before != nil {
		p.report.Warn("user agent changes during the crawl, robots.txt is read for each name; set ProductToken",
			"agent", before.userAgent, "token", token)
	}
	if token == "" && userAgent != defaultUserAgent && !s.byCollector() {
		p.report.Warn("user agent names no crawler, only the groups for * apply; set ProductToken", "agent", userAgent)
	}
	if userAgent == goUserAgent {
		p.report.Warn("requests have no User-Agent header, so net/http sends its own; set the header, or ProductToken", "agent", userAgent)
	}
}

// open returns the reader for a crawler with these tokens, and makes it if necessary. It reports
// whether the tokens are new. userAgent is the one that led to the tokens.
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
	p.uses++
	r.used = p.uses
	if userAgent == defaultUserAgent {
		return r, isNew, nil
	}
	used := *r
	used.userAgent = userAgent
	p.last[s.index].Store(&used)
	return &used, isNew, nil
}

// add makes the reader of a key. p.mu is held.
func (p *policies) add(s *hostSettings, key readerKey, tokens []string, userAgent string) *reader {
	if len(p.readers) >= maxReaders {
		p.drop()
	}
	if len(p.readers) > 0 {
		p.files.Share()
	}
	o := p.cacheOptions(s, s.dialect, tokens)
	o.Memory = p.memory
	o.Read = func(pol *policy.Policy) { p.limiter.learn(p.settings.ofSite(pol.Authority), key.name, pol) }
	o.Updated = func(u policy.Update) {
		of := p.settings.ofSite(u.Policy.Authority)
		p.logIfNoDelay(of, u.Policy)
		p.updated(of, u)
	}
	r := &reader{name: key.name, tokens: strings.Join(tokens, " "), cache: policy.New(o)}
	for i, d := range p.shadows {
		o := p.cacheOptions(s, d, s.productTokens(d, userAgent))
		o.Memory = p.shadowMemory[i]
		r.shadows = append(r.shadows, policy.New(o))
	}
	p.readers[key] = r
	return r
}

// drop closes and removes the reader that was not used for longest. It keeps a reader that fetches
// a file, and one that is in p.last, because its uses are not counted. A request that still has the
// reader is judged by another one with the same name. p.mu is held.
func (p *policies) drop() {
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

// isLast reports whether a reader is in p.last.
func (p *policies) isLast(r *reader) bool {
	for i := range p.last {
		if last := p.last[i].Load(); last != nil && last.cache == r.cache {
			return true
		}
	}
	return false
}

// cacheOptions returns the options of a cache of robots.txt files that are read under dialect d.
func (p *policies) cacheOptions(s *hostSettings, d dialect.Dialect, tokens []string) policy.Options {
	return policy.Options{
		Dialect:          d,
		Tokens:           tokens,
		HonorCrawlDelay:  s.honorCrawlDelay,
		HonorRequestRate: s.honorRate,
		Given:            s.robotsTxt,
		WhenUnreachable:  policy.Access(s.whenUnreachable),
		WhenForbidden:    policy.Access(s.whenForbidden),
		Store:            p.store,
		Files:            p.files,
		Log:              p.report.Log,
		Found:            p.limiter.found,
		Private:          p.limiter.private,
	}
}

// cleaned returns u without the query parameters that do not change the page, according to the
// Clean-param lines in the robots.txt of its site. It returns u itself if there are none, if they
// are not known yet, or if the dialect has no Clean-param. The lines hold for all crawlers, so the
// name of the crawler does not matter.
func (p *policies) cleaned(s *hostSettings, a dialect.Authority, u *url.URL) *url.URL {
	if s.dialect != dialect.Yandex() || s.ignoreRobots {
		return u
	}
	r := p.last[s.index].Load()
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
func (p *policies) logIfNoDelay(s *hostSettings, pol *policy.Policy) {
	hasDelay := s.pace.MinDelay > 0 || s.pace.Adaptive > 0 || pol.CrawlDelay() > 0 || pol.LastSchedule() != nil
	if s.pace.Free || hasDelay || pol.RobotsStatus == policy.Unreachable || pol.RobotsStatus == policy.SiteDown {
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
func (p *policies) updated(s *hostSettings, u policy.Update) {
	var change *report.RobotsChange
	if u.Changed() {
		change = reporter.ChangeOf(u.Old, u.Policy)
		p.report.Log.Info("robots.txt has changed", "robots", change.RobotsURL,
			"robots_status", change.New.RobotsStatus, "delay", change.New.CrawlDelay,
			slog.Group("old", "robots_status", change.Old.RobotsStatus, "delay", change.Old.CrawlDelay))
	}
	p.report.TellRobots(u, change, s.override(u.Policy))
}

// statistics counts the policies in all caches by their status.
func (p *policies) statistics() map[report.RobotsStatus]report.PolicyStats {
	stats := make(map[report.RobotsStatus]report.PolicyStats)
	for pol := range p.memory.All {
		status := report.RobotsStatus(pol.RobotsStatus.String())
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

// until returns a context that ends with ctx, or with ErrClosed when the plugin is closed. The
// caller must call release when it no longer needs the context.
func (p *policies) until(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(p.closing, func() { cancel(ErrClosed) })
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

// stop ends all waits for policies, and the reading of sitemaps, with ErrClosed.
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

// close closes the readers after stop. It waits for the fetches under way. It holds no lock while
// it waits, because a fetch may log, and the user's slog.Handler may call the Plugin.
func (p *policies) close() {
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

// A client is a collector or an http.Client. The plugin makes requests of its own on its behalf.
type client interface {
	// seam returns the seam of the client, or nil if there is none.
	seam() *backend.Seam
	// userAgent returns the collector's UserAgent, or nil if it is not known.
	userAgent() *string
	// forbids returns an error if the user has forbidden the domain of u.
	forbids(u *url.URL) error
	// caller returns the Caller of a policy.Way, or nil if the seam identifies the client.
	caller() any
}

// A seamClient is the client of a request whose collector is not known. Without a seam it is the
// client of a program without a collector.
type seamClient struct {
	through *backend.Seam
	name    *string // the collector's UserAgent; nil if it is not known
}

func (c seamClient) seam() *backend.Seam { return c.through }

func (c seamClient) userAgent() *string { return c.name }

func (c seamClient) caller() any { return nil }

// forbids implements client. Any of the seam's collectors may have made the request.
func (c seamClient) forbids(u *url.URL) error {
	if c.through == nil {
		return nil
	}
	return c.through.Forbids(u)
}

// A lead says why the plugin makes a request of its own.
type lead struct {
	kind report.RequestKind // report.RequestRobots, report.RequestSitemap or report.RequestTDM
	origin
	client client
}

// An origin says which host led to a URL, and which host pays for the requests to other sites.
type origin struct {
	host  string // "" if the program requests the URL
	payer string // "" if the requests are not counted
}

// guardedBy returns the origin of a request with a guard. If guard is nil, the host of the origin
// is empty, and the request may go to any address.
func guardedBy(guard *report.PrivateNetworkError, payer string) origin {
	if guard == nil {
		return origin{payer: payer}
	}
	return origin{host: guard.From, payer: payer}
}

// A fetcher says how robots.txt is fetched when a request needs it.
type fetcher struct {
	wire     *wire
	client   client
	from     origin      // of the request
	header   http.Header // of the request; nil if it is one of the plugin's own
	changed  bool        // header has changed since robots.txt was requested with it
	readsTDM bool        // the TDMRep file is also fetched if the request needs it
}

// nameFor returns the name under which robots.txt is read for a request with a user agent, whose
// robots.txt f fetches.
func (s *hostSettings) nameFor(f *fetcher, userAgent string) string {
	if name := f.client.userAgent(); name != nil && s.byCollector() {
		return *name // which may be empty, as for the built-in check
	}
	return userAgent
}

// policyFetch returns a policy.Fetch that requests the robots.txt of a under a user agent.
func (f *fetcher) policyFetch(a dialect.Authority, userAgent string) policy.Fetch {
	w := f.wire
	requests := &robotsRequests{
		wire:  w,
		first: lead{kind: report.RequestRobots, origin: f.from, client: f.client},
		seam:  f.client.seam(),
	}
	fetch := policy.Fetch{UserAgent: userAgent, Do: requests.do, Proxy: requests.proxy}
	switch {
	case w.client != nil:
		fetch.Limit = w.client.Timeout
		fetch.Way.Client = fetch.Limit
	case requests.seam != nil:
		fetch.Limit = requests.seam.Timeout()
		addHeaders(&fetch, f.header, requests.seam.Jar())
		fetch.Way.Client = clientWay{client: requests.seam.Way(), header: fmt.Sprint(fetch.Header)}
	}
	fetch.Way.Proxy = fixedProxy(w.transport(requests.seam), a)
	fetch.Way.Caller = f.client.caller()
	if f.changed {
		fetch.Way.Caller = changedPage{caller: fetch.Way.Caller}
	}
	return fetch
}

// fixedProxy returns a name of the proxy that rt sends every request for the robots.txt of a
// through. It returns "" if there is none, or if the proxies may take turns. Paid proxies choose the
// server by the user name, so the name has a checksum of the URL. It has only 16 bits, because a
// Store keeps it, and a password must not be found with it.
func fixedProxy(rt http.RoundTripper, a dialect.Authority) string {
	robots, err := url.Parse(a.RobotsURL())
	if err != nil {
		return ""
	}
	proxy := backend.FixedProxy(rt, robots)
	if proxy == nil {
		return ""
	}
	sum := crc32.ChecksumIEEE([]byte(proxy.String()))
	return fmt.Sprintf("%s/%04x", proxy.Host, uint16(sum))
}

// A clientWay is the Client of a policy.Way: the client that requests robots.txt, and the headers
// that choose its proxy.
type clientWay struct {
	client backend.Way
	header string // the headers of the page that are for the proxy
}

// A changedPage is the Caller of a policy.Way if a callback has changed the headers of the page,
// which may name a proxy. So robots.txt is requested once more.
type changedPage struct{ caller any }

// robotsRequests makes the requests for one robots.txt: each attempt, and the redirects that follow
// it. Redirects to other sites are charged to the payer of the first request, or if it has none, to
// the host of the file.
type robotsRequests struct {
	wire  *wire
	seam  *backend.Seam
	first lead           // of the first request of each attempt
	next  lead           // of the next request
	via   atomic.Value   // string: "host:port" of the proxy of the last request; "" if there is none
	open  []openExchange // the exchanges whose bodies may still be open
}

// proxy returns the proxy of the last request, or "" if there is none.
func (r *robotsRequests) proxy() string {
	name, _ := r.via.Load().(string)
	return name
}

// do makes one request. A request without a Response is the first of an attempt.
func (r *robotsRequests) do(req *http.Request) (*http.Response, error) {
	if req.Response == nil {
		r.next = r.first
	}
	at := hostname.Of(req.URL)
	x := &exchange{wire: r.wire}
	host := r.wire.hosts.At(time.Now(), at)
	if len(r.open) > 0 {
		r.wire.join(req.Context(), host, r.wire.transport(r.seam), req.URL)
	}
	r.open = slices.DeleteFunc(r.open, func(o openExchange) bool { return o.endBefore(x, host) })
	resp, _, err := x.send(r.traced(req, at), r.seam, 0, r.next)
	if err == nil && x.locked {
		resp.Body.Close()
		resp = nil
		err = errProxyAuth
	}
	if err == nil {
		r.open = append(r.open, openExchange{exchange: x, body: resp.Body})
		if isRedirect(resp.StatusCode) {
			r.next.host = at
			r.next.payer = cmp.Or(r.next.payer, at)
		}
	}
	return resp, r.forPolicy(err)
}

// traced returns req with a trace that finds its proxy. host is the host that req is for.
func (r *robotsRequests) traced(req *http.Request, host string) *http.Request {
	r.via.Store("")
	trace := &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			if !hostname.IsServer(host, hostPort) {
				r.via.Store(hostPort)
			}
		},
		// req's context has the values of a page's context. policy.WithValues hides the ClientTrace
		// of the page, but package net finds the page's ConnectStart under a key of its own, which
		// only another ConnectStart replaces.
		ConnectStart: func(string, string) {},
	}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
}

// forPolicy returns err, the error of a request, or nil if that is nil. Errors that say nothing
// about the site get one of the errors of package policy.
func (r *robotsRequests) forPolicy(err error) error {
	unpaced := (*report.PaceError)(nil)
	excess := (*netguard.QuotaError)(nil)
	switch {
	case errors.As(err, &unpaced), errors.As(err, &excess) && r.first.payer != "":
		return withKind(err, policy.ErrUnsent)
	case (r.next.host != "" || r.wire.networks.DeniesAll()) && isForbidden(err):
		return withKind(err, policy.ErrForbidden)
	}
	return err
}

// withKind adds an error of another package to err, so that the package can tell which kind of error
// err is. The text stays that of err.
func withKind(err, kind error) error { return kindError{error: err, kind: kind} }

type kindError struct {
	error
	kind error
}

func (e kindError) Unwrap() []error { return []error{e.error, e.kind} }

// errProxyAuth is the error of a robots.txt if a proxy responds in place of the site.
var errProxyAuth = errors.New("collyrobots: the proxy requires authentication: status 407")

// An openExchange is an exchange of a fetch whose body may still be open.
type openExchange struct {
	*exchange
	body io.ReadCloser
}

// endBefore ends the exchange before x, which goes to the host at, and reports whether it has done
// so.
//
// If processes share the pace and at has another pace, the exchange stays open. Its lease then
// keeps the other processes from fetching the same file. But its body is read, so that its
// connection is free for x: it may be the connection to a proxy.
func (o openExchange) endBefore(x *exchange, at *pace.Host) bool {
	if o.wire.isShared && !o.host.SharesPace(at) {
		io.CopyN(io.Discard, o.body, maxRedirectBody)
		return false
	}
	o.ticket.Pass(&x.ticket)
	o.body.Close()
	return true
}

// maxRedirectBody is how many bytes of a redirect's body are read, so that its connection can be
// used again.
const maxRedirectBody = 2 << 10
