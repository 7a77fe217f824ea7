package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// sitemaps feed what the sitemaps of a crawl's sites list. All methods of a nil pointer do nothing.
type sitemaps struct {
	*judge
	feed  *feed.Feed
	slots feed.Slots // of the pages of all collectors that are Async
	user  Feed
}

func newSitemaps(j *judge, f Feed, kept store.Store, log *slog.Logger) *sitemaps {
	s := &sitemaps{judge: j, user: f}
	s.feed = feed.New(feed.Options{
		Window: f.Window, MaxURLs: f.MaxURLs, Since: f.Since, Keep: f.Keep, Scope: feed.Scope(f.Scope),
		WellKnown: f.WellKnown, NewestFirst: f.NewestFirst, Resume: f.Resume, Limits: f.Limits, Store: kept, Log: log,
		Read: s.tellRead,
	})
	return s
}

// tellRead tells listeners of a sitemap.
func (s *sitemaps) tellRead(sitemap string, entries int, err error) {
	if !s.report.events.Active() {
		return
	}
	e := Event{Kind: EventSitemap, Time: time.Now(), URL: sitemap, Count: entries, Err: redact.Error(err)}
	if u, err := url.Parse(sitemap); err == nil {
		e.Host = hostOf(u)
	}
	s.report.events.Send(e)
}

// offer notes a site that the crawl came to: its sitemaps are read when a request is done. Those of
// a site that was asked for at another address than its own are not: what they list is at its own.
func (s *sitemaps) offer(pol *policy.Policy) {
	if s != nil && (pol.RobotsStatus == policy.Rules || pol.RobotsStatus == policy.NoRobots) && !policy.IsVirtual(pol.Authority) {
		s.feed.Offer(pol.Authority, pol.Sitemaps())
	}
}

// pending reports whether there are sitemaps to be read.
func (s *sitemaps) pending() bool { return s != nil && s.feed.Pending() }

// run reads the sitemaps that are pending, on the goroutine of a request that is done.
func (s *sitemaps) run(c *colly.Collector, f fetcher) {
	if !s.pending() {
		return
	}
	ctx, release := s.policies.until(c.Context)
	defer release()
	s.feed.Run(ctx, &feeder{s, c, c.UserAgent, f})
}

// statistics returns what was counted.
func (s *sitemaps) statistics() FeedStats {
	if s == nil {
		return FeedStats{}
	}
	return feedStats(s.feed)
}

// flush writes down what Resume needs to know, since nothing more will come.
func (s *sitemaps) flush() {
	if s != nil {
		s.feed.Flush()
	}
}

// examples returns the first URLs that were not fed.
func (s *sitemaps) examples() map[string][]string {
	if s == nil {
		return nil
	}
	return notFed(s.feed)
}

// A feeder feeds one collector: it is a feed.Crawl.
type feeder struct {
	*sitemaps
	c         *colly.Collector // nil: there is none, and nothing is visited
	userAgent string
	fetcher   fetcher
}

// Allowed implements feed.Crawl.
func (f *feeder) Allowed(ctx context.Context, site dialect.Authority, sitemap string, u *url.URL) (bool, feed.Result) {
	by := f.led(site)
	by.host, by.payer = leaderOf(site, sitemap, u.String()), "" // which pages are fed, Feed.Scope says
	guard, err := f.limiter.ask(by, hostOf(u), u)
	if f.shard.owns(hostOf(u), u) != nil {
		return true, feed.Done // it is judged where its host is kept
	}
	if err == nil {
		_, err = f.judge(ctx, u, guardedBy(guard, ""))
	}
	if err == nil {
		return true, feed.Done
	}
	f.report.notSent(u, err, false)
	if isForbidden(err) {
		f.tellKept(u, err, nil)
	}
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) && f.user.Denied != nil {
		f.user.Denied(denied.Decision)
	}
	if hasEnded(ctx, err) {
		return false, feed.Unfinished
	}
	return false, feed.Skipped
}

// led says that a site led to something.
func (f *feeder) led(site dialect.Authority) lead {
	return lead{kind: RequestSitemap, origin: origin{host: site.Host, payer: site.Host}, user: f.fetcher}
}

// leaderOf returns the host that leads to a page: the site, if the page is its own, or else the host
// of the sitemap that lists the page. A private site whose sitemap is on a public host does not let
// that host lead to other private hosts.
func leaderOf(site dialect.Authority, sitemap, page string) string {
	if hasHost(page, site.Host) || hasHost(sitemap, site.Host) {
		return site.Host
	}
	u, err := url.Parse(sitemap)
	if err != nil {
		return site.Host
	}
	return hostOf(u)
}

// hasHost reports whether loc is plainly on host.
func hasHost(loc, host string) bool {
	_, rest, _ := strings.Cut(loc, "://")
	rest, ok := strings.CutPrefix(rest, host)
	return ok && (rest == "" || rest[0] == '/')
}

// guardedBy returns the origin of a request with a guard, which may be nil.
func guardedBy(guard *PrivateNetworkError, payer string) origin {
	if guard == nil {
		return origin{payer: payer}
	}
	return origin{host: guard.From, payer: payer}
}

// judge returns an error if u, which from led to, may not be fetched.
func (f *feeder) judge(ctx context.Context, u *url.URL, from origin) (verdict, error) {
	by := ledFetcher{fetcher: f.fetcher, by: from}
	v, err := f.decide(ctx, time.Now(), u, f.userAgent, by)
	if err != nil {
		return verdict{}, err
	}
	err = f.refuse(v, u, nil, func(error) {})
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
		f.countDenied(v.host, denied, nil)
	}
	return v, err
}

// Get implements feed.Crawl.
func (f *feeder) Get(ctx context.Context, site dialect.Authority, by, u *url.URL, header http.Header, timeout time.Duration) (*http.Response, time.Time, error) {
	if !hasRobots(u) {
		return nil, time.Time{}, fmt.Errorf("collyrobots: sitemap %s is not an http or https URL", u.Redacted())
	}
	from := f.led(site)
	if by != nil && hostOf(u) != site.Host {
		from.host = hostOf(by)
	}
	guard, err := f.limiter.ask(from, hostOf(u), u)
	if err != nil {
		f.tellKept(u, err, nil)
		return nil, time.Time{}, err
	}
	x := new(exchange)
	x.permit = f.permit(ctx, u, guardedBy(guard, site.Host), x)
	err = x.permit.judge()
	if err != nil {
		return nil, time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	req.Header = header
	req.Header.Set("User-Agent", f.userAgent)
	req.Header.Set("Accept-Encoding", "gzip") // otherwise net/http decompresses without a limit of compressed bytes
	resp, began, err := f.limiter.exchange(x, f.fetcher.seam(), req, timeout, from)
	if isForbidden(err) { // the connection has shown where the server is: there is no use in another try
		began = time.Time{}
	}
	return resp, began, err
}

// permit returns what decides about the request x for u, which from led to.
func (f *feeder) permit(ctx context.Context, u *url.URL, from origin, x *exchange) *permit {
	var last verdict
	current := func() bool {
		return last.reader == nil || last.reader.known(ctx, time.Now(), last.policy.Authority, last.host) != nil
	}
	judge := func() error {
		v, err := f.judge(ctx, u, from)
		if err == nil {
			v.obeyedBy(&x.ticket)
			last = v
		}
		return err
	}
	return &permit{current: current, judge: judge}
}

// Slots implements feed.Crawl.
func (f *feeder) Slots() *feed.Slots {
	if f.c == nil || !f.c.Async {
		return nil
	}
	return &f.slots
}

// Visit implements feed.Crawl: it gives a page to the Sink or the collector.
func (f *feeder) Visit(site dialect.Authority, e sitemap.Entry, done func(feed.Result)) (taken bool) {
	if f.user.Sink != nil {
		if f.user.Sink(e.Loc) != nil {
			done(feed.Failed)
			return false
		}
		done(feed.Done)
		return true
	}
	page := newFedPage(leaderOf(site, e.Sitemap, e.Loc), done)
	ctx := contextOf(e)
	ctx.Put(ctxPage, page)
	err := f.visit(e.Loc, ctx)
	if err != nil && !page.claimed() {
		page.end(refusalOf(err))
		return false
	}
	switch {
	case err != nil:
		page.end(resultOf(f.c.Context, 0, err))
	case f.c.Async:
	case hasEnded(f.c.Context, nil):
		page.end(feed.Unfinished)
	default:
		page.end(feed.Skipped) // unless a hook has ended it: a callback has aborted it
	}
	return true
}

// visit is the collector's Visit with a context.
func (f *feeder) visit(loc string, ctx *colly.Context) error {
	if f.c.CheckHead {
		if err := f.c.Head(loc); err != nil {
			return err
		}
	}
	return f.c.Request(http.MethodGet, loc, nil, ctx, nil)
}

// Keys of a fed request's colly.Context. Requests made by its callbacks through Request.Visit share
// that context.
const (
	CtxSitemap = "collyrobots.sitemap" // string: the URL of the file that lists the page
	CtxLastMod = "collyrobots.lastmod" // string: its lastmod in RFC 3339, where known
)

// contextOf returns what a fed request is told of its sitemap.
func contextOf(e sitemap.Entry) *colly.Context {
	ctx := colly.NewContext()
	ctx.Put(CtxSitemap, e.Sitemap)
	if !e.LastMod.IsZero() {
		ctx.Put(CtxLastMod, e.LastMod.Format(time.RFC3339))
	}
	return ctx
}

// refusalOf returns the result of a page that the collector has refused with an error, without a
// request.
func refusalOf(err error) feed.Result {
	visited := (*colly.AlreadyVisitedError)(nil)
	switch {
	case errors.Is(err, colly.ErrMaxRequests):
		return feed.Unfinished
	case errors.As(err, &visited):
		return feed.Done
	}
	return feed.Skipped
}

// hasEnded reports whether a request has an error because the crawl has ended.
func hasEnded(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, ErrClosed)
}

// resultOf returns the result of a page that ended with a status, 0 if there was none, and an error.
// The error may be nil whatever the status is, with Colly's ParseHTTPErrorResponse.
func resultOf(ctx context.Context, status int, err error) feed.Result {
	if err == nil && status < 400 { // as most pages do
		return feed.Done
	}
	denied := (*DisallowedError)(nil)
	switch {
	case hasEnded(ctx, err):
		return feed.Unfinished
	case errors.As(err, &denied) && !denied.redirect:
		return feed.Skipped
	case status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return feed.Failed // which says nothing of the page
	case status >= 400 && status < 500:
		return feed.Done // the page is not there
	}
	return feed.Failed
}
