package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/fed"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/sitemap"
)

// sitemaps feeds the pages that the sitemaps of the crawled sites list. All methods of a nil
// pointer do nothing.
type sitemaps struct {
	*judge.Judge
	feed    *feed.Feed
	slots   feed.Slots   // for the pages of all collectors that are Async
	open    atomic.Int64 // pages that were passed to a collector, without a result
	options Feed

	onDenied onDenied
}

func newSitemaps(c *core, f Feed) *sitemaps {
	s := &sitemaps{Judge: c.judge, onDenied: c.onDenied, options: f}
	unwritten := 0
	if f.Sink != nil {
		unwritten = sinkUnwritten
	}
	s.feed = feed.New(feed.Options{
		Window:      f.Window,
		MaxURLs:     f.MaxURLs,
		Since:       f.Since,
		Keep:        f.Keep,
		Scope:       scopes[f.Scope],
		WellKnown:   f.WellKnown,
		NewestFirst: f.NewestFirst,
		Resume:      f.Resume,
		Unwritten:   unwritten,
		Limits:      f.Limits,
		Store:       c.judge.Policies.Store,
		Log:         c.judge.Report.Log,
		Read:        c.judge.Report.TellSitemap,
	})
	return s
}

// sinkUnwritten is the largest number of pages that Sink gets again after a crash; see Feed.Resume.
const sinkUnwritten = 10_000

// offer is called for each page with the policy of its site. The sitemaps of the site are read when
// a request is done. The sitemaps of a site that a Host header names at another address are not
// read, because the pages that they list are at the site's own address.
func (s *sitemaps) offer(pol *policy.Policy) {
	if s == nil || policy.IsVirtual(pol.Authority) {
		return
	}
	if pol.RobotsStatus == policy.Rules || pol.RobotsStatus == policy.NoRobots {
		s.feed.Offer(pol.Authority, pol.Sitemaps())
	}
}

// pending reports whether there may be sitemaps to read.
func (s *sitemaps) pending() bool { return s != nil && s.feed.Pending() }

// run reads the pending sitemaps for c. It is called by a hook of c when a request is done, and
// returns when the sitemaps are read.
func (s *sitemaps) run(c *colly.Collector, by exchange.Client) {
	if !s.pending() {
		return
	}
	ctx, release := s.Policies.Until(c.Context)
	defer release()
	s.feed.Run(ctx, &feeder{sitemaps: s, ctx: ctx, c: c, userAgent: c.UserAgent, fetcher: exchange.Fetcher{Wire: s.Wire, Client: by}})
}

// statistics returns the counts so far.
func (s *sitemaps) statistics() report.FeedStats {
	if s == nil {
		return report.FeedStats{}
	}
	return feedStats(s.feed)
}

// isIdle reports whether no sitemap is being read, and the results of all pages are known.
func (s *sitemaps) isIdle() bool {
	return s == nil || s.feed.IsIdle() && s.open.Load() == 0
}

// flush writes the checkpoints of Resume to the Store at the end of the crawl.
func (s *sitemaps) flush() {
	if s != nil {
		s.feed.Flush()
	}
}

// examples returns the first URLs that were not fed, by reason.
func (s *sitemaps) examples() map[string][]string {
	if s == nil {
		return nil
	}
	return notFed(s.feed)
}

// A feeder feeds one collector. It implements feed.Crawl.
type feeder struct {
	*sitemaps
	ctx       context.Context  // of the walk, for Sink
	c         *colly.Collector // nil if the program takes the pages itself
	userAgent string
	fetcher   exchange.Fetcher
}

// Allowed implements feed.Crawl.
func (f *feeder) Allowed(ctx context.Context, site dialect.Authority, sitemap string, u *url.URL) (bool, feed.Result) {
	host := hostname.Of(u)
	if f.sitemaps.Shard.Owns(host, u) != nil {
		return true, feed.Done // the process that crawls the host judges the page
	}
	from := f.leadFrom(site)
	from.Host = leaderOf(site, sitemap, u.String())
	from.Payer = "" // Feed.Scope limits the pages on other sites
	guard, err := f.sitemaps.Wire.Allow(from, host, u)
	if err == nil {
		_, err = f.judge(ctx, judge.Target{URL: u}, exchange.GuardedBy(guard, ""), time.Time{})
	}
	if err == nil {
		return true, feed.Done
	}
	f.sitemaps.onDenied.notSent(f.sitemaps.Report, u, err, false)
	o := outcomeOf(err)
	if o.forbidden {
		f.sitemaps.Report.TellUnsent(u, err, false, reporter.IDs{})
	}
	if o.isEnd(ctx) {
		return false, feed.Unfinished
	}
	return false, feed.Skipped
}

// Cleaned implements feed.Crawl.
func (f *feeder) Cleaned(u *url.URL) *url.URL { return f.sitemaps.Cleaned(u) }

// leadFrom returns the lead to a URL that the sitemaps of a site name.
func (f *feeder) leadFrom(site dialect.Authority) exchange.Lead {
	return exchange.Lead{Kind: report.RequestSitemap, Origin: exchange.Origin{Host: site.Host, Payer: site.Host}, Client: f.fetcher.Client}
}

// leaderOf returns the host that leads to a page. This is the site if it has the page or the
// sitemap that lists the page, and otherwise the host of the sitemap. So if a private site has its
// sitemap on a public host, that host cannot lead the crawler to other private hosts.
func leaderOf(site dialect.Authority, sitemap, page string) string {
	if hasHost(page, site.Host) || hasHost(sitemap, site.Host) {
		return site.Host
	}
	u, err := url.Parse(sitemap)
	if err != nil {
		return site.Host
	}
	return hostname.Of(u)
}

// hasHost reports whether loc is on host. It compares the text only, so it returns false if loc
// contains another spelling of host.
func hasHost(loc, host string) bool {
	_, rest, _ := strings.Cut(loc, "://")
	rest, ok := strings.CutPrefix(rest, host)
	return ok && (rest == "" || rest[0] == '/')
}

// judge returns an error if t must not be fetched. from is the origin of the request, and turn the time of
// exchange.Fetcher.Turn.
func (f *feeder) judge(ctx context.Context, t judge.Target, from exchange.Origin, turn time.Time) (judge.Verdict, error) {
	t.UserAgent = f.userAgent
	by := f.fetcher
	by.From = from
	by.Turn = turn
	by.ReadsTDM = true
	v, err := f.sitemaps.Verdict(ctx, time.Now(), t, by, nil)
	if err != nil {
		return judge.Verdict{}, err
	}
	return v, public(f.sitemaps.EnforceNow(&v, t.URL))
}

// Get implements feed.Crawl.
func (f *feeder) Get(ctx context.Context, r feed.Request) (*http.Response, time.Time, error) {
	u := r.URL
	if !weburl.IsWeb(u) {
		return nil, time.Time{}, fmt.Errorf("collyrobots: sitemap %s is not an http or https URL", u.Redacted())
	}
	from := f.leadFrom(r.Site)
	if r.By != nil && hostname.Of(u) != r.Site.Host {
		from.Host = hostname.Of(r.By)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	req.Header = r.Header
	req.Header.Set("User-Agent", f.userAgent)
	req.Header.Set("Accept-Encoding", "gzip") // otherwise net/http decompresses the body, and the compressed bytes have no limit
	check := func(by exchange.Origin, turn time.Time) (judge.Verdict, error) {
		return f.judge(ctx, judge.Target{URL: u, IsFile: true}, by, turn)
	}
	resp, began, err := f.sitemaps.SendOwn(req, r.Timeout, from, check)
	if private := (*PrivateNetworkError)(nil); errors.As(err, &private) {
		err = exchange.WithKind(err, feed.ErrNotForSite)
	}
	return resp, began, err
}

// Slots implements feed.Crawl.
func (f *feeder) Slots() *feed.Slots {
	if f.c == nil || !f.c.Async {
		return nil
	}
	return &f.slots
}

// Visit implements feed.Crawl. It passes a page to the Sink or to the collector.
func (f *feeder) Visit(site dialect.Authority, e sitemap.Entry, done func(feed.Result)) (taken bool) {
	if f.options.Sink != nil {
		if f.options.Sink(f.ctx, e) != nil {
			done(feed.Failed)
			return false
		}
		done(feed.Done)
		return true
	}
	f.open.Add(1)
	closePage := sync.OnceFunc(func() { f.open.Add(-1) })
	page := fed.Listed(leaderOf(site, e.Sitemap, e.Loc), func(r feed.Result) {
		done(r)
		closePage()
	})
	ctx := contextOf(e)
	ctx.Put(fed.Key, page)
	err := f.visit(e.Loc, ctx)
	o := outcomeOf(err)
	if err != nil && !page.IsClaimed() {
		page.End(o.ofVisit())
		return false
	}
	switch {
	case err != nil:
		page.End(o.ofPage(f.c.Context, 0))
	case f.c.Async:
	case f.c.Context.Err() != nil:
		page.End(feed.Unfinished)
	default:
		page.End(feed.Skipped) // no hook has ended the page, so a callback has aborted the request
	}
	return true
}

// visit is like colly.Collector.Visit but uses ctx for the request.
func (f *feeder) visit(loc string, ctx *colly.Context) error {
	if f.c.CheckHead {
		if err := f.c.Head(loc); err != nil {
			return err
		}
	}
	return f.c.Request(http.MethodGet, loc, nil, ctx, nil)
}

// Keys of values in the colly.Context of a fed request. Both values are strings. Requests that the
// callbacks of the page make with Request.Visit share its Context.
const (
	CtxSitemap = "collyrobots.sitemap" // the URL of the sitemap that lists the page
	CtxLastMod = "collyrobots.lastmod" // the lastmod of the page in RFC 3339, if it has one
)

// contextOf returns the Context of the request for e.
func contextOf(e sitemap.Entry) *colly.Context {
	ctx := colly.NewContext()
	ctx.Put(CtxSitemap, e.Sitemap)
	if !e.LastMod.IsZero() {
		ctx.Put(CtxLastMod, e.LastMod.Format(time.RFC3339))
	}
	return ctx
}

// A Feed says which pages of sitemaps are crawled, and how. The zero Feed crawls each page that is
// on the host of its sitemap and that its robots.txt allows. The colly.Context of such a page has
// the values CtxSitemap and CtxLastMod.
//
// A page that robots.txt denies never becomes a request, so OnDenied is not called for it. It is
// reported as an report.EventDenied, and counted in report.FeedStats.
//
// Sitemaps are read inside a hook of a request that is done, OnScraped or OnError. So
// Collector.Wait and Queue.Run return after the sitemaps are read. Callbacks of that hook that were
// registered after Attach run after the sitemaps are read. If DetectCharset does not find the
// character set of a page, Colly calls neither hook. Then the sitemaps are read at the end of
// [Collector.Visit], or ten seconds later if the collector is Async, and otherwise after the next
// page. Wait also waits for these ten seconds. If a Host header names a site at another address,
// the sitemaps of that site are not read.
//
// Sitemaps on other sites are read within limits: see docs/limits.md.
type Feed struct {
	// Window is the maximum number of sitemap pages in flight. If it is 0, the maximum is 64. If
	// the collector is not Async, one page is in flight.
	Window int

	// Since skips entries with an older lastmod. If it is the zero time, no entry is skipped.
	// Entries without a lastmod are never skipped.
	Since time.Time

	// Keep reports whether to feed a page. If nil, all pages are fed. Keep is called for pages in
	// Scope before robots.txt is applied, and not for duplicates. So a Keep that returns true and
	// calls Plugin.Check sees each page that robots.txt denies. For one site it is called from one
	// goroutine at a time. With Resume, each run calls it again for the pages that it has dropped.
	Keep func(sitemap.Entry) bool

	// Sink is called with each page instead of the collector's Visit. If nil, the collector visits
	// the page. It may add e.Loc to a queue. If Sink returns an error, the page counts as refused. ctx
	// ends with the context of the collector, or when the plugin is closed.
	Sink func(ctx context.Context, e sitemap.Entry) error

	// MaxURLs is the maximum number of pages that are fed, from all sites together. If it is 0,
	// there is no limit. MaxURLs does not limit how many pages a site may list, which Limits does,
	// or the links that callbacks follow. Colly's MaxRequests limits all pages of a crawl.
	MaxURLs int

	// Scope says which pages a sitemap may list. The empty Scope is ScopeHost.
	Scope Scope

	// WellKnown looks for /sitemap.xml and then for /sitemap_index.xml if the robots.txt of a site
	// names no sitemap.
	WellKnown bool

	// NewestFirst reads all sitemaps of a site to their end and then feeds the pages with the
	// newest lastmod. If a page is listed several times, its newest lastmod counts. Pages without a
	// lastmod come last. NewestFirst needs MaxURLs, which limits the memory for the pages of a
	// site.
	NewestFirst bool

	// Resume continues where the last run with the same Store stopped. Files that have not changed
	// since all their pages were done are left out, and of an interrupted file only the pages that
	// are not done are fed. docs/sitemaps.md says which pages are done, and which are tried again.
	//
	// If the process is killed, no page is lost, but the next run feeds some pages again: at most as
	// many as Window, or 10,000 more if Sink is fast. After a loss of power, this also holds if the
	// Store is durable, as store.OpenDir is.
	//
	// Resume needs the option Store or Frontier. Only one run at a time may use that Store. The
	// collector must not remember which pages an earlier run has visited. Otherwise it refuses pages
	// that were in flight when that run ended, and these count as done.
	Resume bool

	// Limits bounds the cost of a sitemap. Fields that are zero have defaults. Limits.Time is the
	// time for all requests for one file together.
	Limits sitemap.Limits
}

// A Scope says on which hosts the pages of a sitemap may be. They are compared with the hosts of
// the sitemap: the host that serves the sitemap and the host of the site whose robots.txt names it
// (sitemaps.org, "Sitemaps & Cross Submits"). Pages under http and https are on the same host.
type Scope string

// Each scope contains the one before it. The empty Scope is ScopeHost.
const (
	ScopeHost Scope = "host" // pages on the hosts of the sitemap
	ScopeWWW  Scope = "www"  // also on these hosts with or without "www."
	ScopeSite Scope = "site" // also on all hosts of the same registrable domain (publicsuffix.org)
	ScopeAny  Scope = "any"  // pages on all hosts
)

var scopes = map[Scope]feed.Scope{
	"":        feed.ScopeHost,
	ScopeHost: feed.ScopeHost,
	ScopeWWW:  feed.ScopeWWW,
	ScopeSite: feed.ScopeSite,
	ScopeAny:  feed.ScopeAny,
}

// faults returns a text for each field with an invalid value.
func (f *Feed) faults() (faults []string) {
	if f.Window < 0 {
		faults = append(faults, fmt.Sprintf("Window %d is negative", f.Window))
	}
	if f.MaxURLs < 0 {
		faults = append(faults, fmt.Sprintf("MaxURLs %d is negative", f.MaxURLs))
	}
	if _, ok := scopes[f.Scope]; !ok {
		faults = append(faults, fmt.Sprintf("%q is not a valid Scope", string(f.Scope)))
	}
	if f.NewestFirst && f.MaxURLs == 0 {
		faults = append(faults, "NewestFirst needs MaxURLs")
	}
	return faults
}

// feedStats returns the counts of f.
func feedStats(f *feed.Feed) report.FeedStats {
	return report.FeedStats{
		Files:          f.Count(feed.Files),
		FilesFailed:    f.Count(feed.FilesFailed),
		FilesCut:       f.Count(feed.FilesCut),
		FilesUnchanged: f.Count(feed.FilesUnchanged),
		Entries:        f.Count(feed.Entries),
		Resumed:        f.Count(feed.Resumed),
		Fed:            f.Count(feed.Fed),
		Old:            f.Count(feed.Old),
		Dropped:        f.Count(feed.Dropped),
		OutOfScope:     f.Count(feed.OutOfScope),
		Duplicate:      f.Count(feed.Duplicate),
		Denied:         f.Count(feed.Denied),
		Refused:        f.Count(feed.Refused),
		GivenUp:        f.Count(feed.GivenUp),
		Errors:         f.Count(feed.Errors),
	}
}

// notFed returns the first URLs that were not fed, by the JSON name of the count that they are in.
func notFed(f *feed.Feed) map[string][]string {
	var examples map[string][]string
	for name, what := range reasonsNotFed {
		if urls := f.Examples(what); len(urls) > 0 {
			if examples == nil {
				examples = make(map[string][]string)
			}
			examples[name] = urls
		}
	}
	return examples
}

var reasonsNotFed = map[string]feed.Outcome{
	"old": feed.Old, "dropped": feed.Dropped, "out_of_scope": feed.OutOfScope, "duplicate": feed.Duplicate, "denied": feed.Denied,
	"refused": feed.Refused, "given_up": feed.GivenUp, "errors": feed.Errors,
}

// Pages returns an iterator over the pages that the sitemaps of sites list. These are the pages
// that FollowSitemaps would feed to a collector: they are in scope, robots.txt allows them, and
// each is returned once. A site is given by the URL of any of its pages.
//
// The sitemaps that the robots.txt of a site names are read one after the other, when the loop
// needs them. The files that an index names are read after all files that were named before. So a
// site of any size needs little memory. Each loop over the iterator reads the sitemaps again.
//
// Pages does not use f.Window and f.Sink. With f.Resume, a page is done when the loop asks for the
// next one, unless ctx has ended or the plugin is closed at that time.
//
// An error comes with the zero Entry. It says that a sitemap, or the rest of it, could not be read.
// The loop may continue after it. If ctx ends, the last error is its cause. If the plugin is
// closed, the last error is ErrClosed. If f is invalid or a site is not an http or https URL, that
// is the only error.
//
// Pages uses the HTTP client and the user agent of the collector that was attached first. If no
// collector is attached, it uses the client of the option RobotsClient, or http.DefaultTransport,
// and a user agent that names this package. WithUserAgent sets another user agent.
func (p *Plugin) Pages(ctx context.Context, f Feed, sites ...string) iter.Seq2[sitemap.Entry, error] {
	return func(yield func(sitemap.Entry, error) bool) {
		s, urls, err := p.pages(f, sites)
		if err != nil {
			yield(sitemap.Entry{}, err)
			return
		}
		for page, err := range p.pull(ctx, s, urls) {
			if page == nil {
				if !yield(sitemap.Entry{}, err) {
					break
				}
				continue
			}
			if !yield(page.Entry, nil) {
				page.Done(feed.Unfinished)
				break
			}
			result := feed.Done
			if ctx.Err() != nil || p.closed.Load() {
				result = feed.Unfinished // the loop may have failed to process the page for this reason
			}
			page.Done(result)
		}
		s.flush()
	}
}

// pages checks the arguments of Pages. It returns the reader of the sitemaps and the URLs of sites.
func (p *Plugin) pages(f Feed, sites []string) (s *sitemaps, urls []*url.URL, err error) {
	if err := p.usable(); err != nil {
		return nil, nil, err
	}
	var faults []error
	for _, reason := range f.faults() {
		faults = append(faults, fault("Feed", "%s", reason))
	}
	if f.Resume && p.judge.Policies.Store == nil {
		faults = append(faults, fault("Feed", "Resume needs the option Store or Frontier"))
	}
	for _, site := range sites {
		u, err := url.Parse(site)
		if err != nil || !weburl.IsWeb(u) {
			faults = append(faults, fmt.Errorf("collyrobots: %q is not an http or https URL", redact.Text(site)))
			continue
		}
		urls = append(urls, u)
	}
	f.Sink = nil // the caller gets the pages
	return newSitemaps(p.core, f), urls, errors.Join(faults...)
}

// pull returns an iterator over the pages that the sitemaps of sites list. The caller must call
// Done of each page.
func (p *Plugin) pull(ctx context.Context, s *sitemaps, sites []*url.URL) iter.Seq2[*feed.Page, error] {
	return func(yield func(*feed.Page, error) bool) {
		ctx, release := p.judge.Policies.Until(ctx)
		defer release()
		ctx, userAgent, fetcher := p.own(ctx)
		crawl := &feeder{sitemaps: s, userAgent: userAgent, fetcher: fetcher}
		stopped := false
		hand := func(page *feed.Page, err error) bool {
			stopped = stopped || !yield(page, err)
			return !stopped
		}
		lost := func(err error) bool { return hand(nil, prefixedError{err}) }
		var last error
		for page, err := range s.feed.Pages(ctx, crawl, crawl.sites(ctx, sites, lost)) {
			last = err
			if err != nil && err != context.Cause(ctx) {
				err = prefixedError{err}
			}
			if !hand(page, err) {
				return
			}
		}
		ended := ctx.Err() != nil && last == context.Cause(ctx)
		if p.closed.Load() && !ended { // Close ends ctx a moment after it has set closed
			hand(nil, ErrClosed)
		}
	}
}

// sites returns an iterator over the sites with these URLs. It calls lost with an error for each
// site whose robots.txt cannot be read, and ends if lost returns false.
func (f *feeder) sites(ctx context.Context, urls []*url.URL, lost func(error) bool) iter.Seq[feed.Site] {
	return func(yield func(feed.Site) bool) {
		for _, u := range urls {
			v, err := f.sitemaps.Verdict(ctx, time.Now(), judge.Target{URL: u, UserAgent: f.userAgent}, f.fetcher, nil)
			switch {
			case err == nil:
				if !yield(feed.Site{Authority: v.Policy.Authority, Sitemaps: v.Policy.Sitemaps()}) {
					return
				}
			case ctx.Err() != nil || !lost(fmt.Errorf("cannot read the sitemaps of %s: %w", u.Redacted(), err)):
				return
			}
		}
	}
}
