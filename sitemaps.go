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
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// sitemaps feeds the pages that the sitemaps of the crawled sites list. All methods of a nil
// pointer do nothing.
type sitemaps struct {
	*judge
	feed    *feed.Feed
	slots   feed.Slots // for the pages of all collectors that are Async
	options Feed
}

func newSitemaps(j *judge, f Feed, records store.Store, log *slog.Logger) *sitemaps {
	s := &sitemaps{judge: j, options: f}
	unwritten := 0
	if f.Sink != nil {
		unwritten = sinkUnwritten
	}
	s.feed = feed.New(feed.Options{
		Window:      f.Window,
		MaxURLs:     f.MaxURLs,
		Since:       f.Since,
		Keep:        f.Keep,
		Scope:       feed.Scope(f.Scope),
		WellKnown:   f.WellKnown,
		NewestFirst: f.NewestFirst,
		Resume:      f.Resume,
		Unwritten:   unwritten,
		Limits:      f.Limits,
		Store:       records,
		Log:         log,
		Read:        j.report.tellSitemap,
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
func (s *sitemaps) run(c *colly.Collector, by client) {
	if !s.pending() {
		return
	}
	ctx, release := s.policies.until(c.Context)
	defer release()
	s.feed.Run(ctx, &feeder{sitemaps: s, c: c, userAgent: c.UserAgent, fetcher: fetcher{limiter: s.limiter, client: by}})
}

// statistics returns the counts so far.
func (s *sitemaps) statistics() report.FeedStats {
	if s == nil {
		return report.FeedStats{}
	}
	return feedStats(s.feed)
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
	c         *colly.Collector // nil if the program takes the pages itself
	userAgent string
	fetcher   fetcher
}

// Allowed implements feed.Crawl.
func (f *feeder) Allowed(ctx context.Context, site dialect.Authority, sitemap string, u *url.URL) (bool, feed.Result) {
	host := hostOf(u)
	if f.shard.owns(host, u) != nil {
		return true, feed.Done // the process that crawls the host judges the page
	}
	from := f.leadFrom(site)
	from.host = leaderOf(site, sitemap, u.String())
	from.payer = "" // Feed.Scope limits the pages on other sites
	guard, err := f.limiter.allow(from, host, u)
	if err == nil {
		_, err = f.judge(ctx, target{url: u}, guardedBy(guard, ""))
	}
	if err == nil {
		return true, feed.Done
	}
	f.report.notSent(u, err, false)
	if isForbidden(err) {
		f.report.tellUnsent(u, err, numbers{})
	}
	if hasEnded(ctx, err) {
		return false, feed.Unfinished
	}
	return false, feed.Skipped
}

// Cleaned implements feed.Crawl.
func (f *feeder) Cleaned(u *url.URL) *url.URL { return f.cleaned(u) }

// leadFrom returns the lead to a URL that the sitemaps of a site name.
func (f *feeder) leadFrom(site dialect.Authority) lead {
	return lead{kind: report.RequestSitemap, origin: origin{host: site.Host, payer: site.Host}, client: f.fetcher.client}
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
	return hostOf(u)
}

// hasHost reports whether loc is on host. It compares the text only, so it returns false if loc
// contains another spelling of host.
func hasHost(loc, host string) bool {
	_, rest, _ := strings.Cut(loc, "://")
	rest, ok := strings.CutPrefix(rest, host)
	return ok && (rest == "" || rest[0] == '/')
}

// judge returns an error if t must not be fetched. from is the origin of the request.
func (f *feeder) judge(ctx context.Context, t target, from origin) (verdict, error) {
	t.userAgent = f.userAgent
	by := f.fetcher
	by.from = from
	by.readsTDM = true
	v, err := f.decide(ctx, time.Now(), t, by)
	if err != nil {
		return verdict{}, err
	}
	f.restrict(time.Now(), &v, exempt{budget: t.isFile})
	_, err = f.enforce(&v, t.url, numbers{})
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
		f.countDenied(v.host, denied, numbers{})
	}
	return v, err
}

// Get implements feed.Crawl.
func (f *feeder) Get(ctx context.Context, r feed.Request) (*http.Response, time.Time, error) {
	u := r.URL
	if !isWeb(u) {
		return nil, time.Time{}, fmt.Errorf("collyrobots: sitemap %s is not an http or https URL", u.Redacted())
	}
	from := f.leadFrom(r.Site)
	if r.By != nil && hostOf(u) != r.Site.Host {
		from.host = hostOf(r.By)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	req.Header = r.Header
	req.Header.Set("User-Agent", f.userAgent)
	req.Header.Set("Accept-Encoding", "gzip") // otherwise net/http decompresses the body, and the compressed bytes have no limit
	check := func(by origin) (verdict, error) { return f.judge(ctx, target{url: u, isFile: true}, by) }
	return f.sendOwn(req, r.Timeout, from, check)
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
		if f.options.Sink(e.Loc) != nil {
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
		page.end(feed.Skipped) // no hook has ended the page, so a callback has aborted the request
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

// refusalOf returns the result of a page if the collector has returned err without making a
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

// hasEnded reports whether the crawl has ended, which is then the reason for err.
func hasEnded(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, ErrClosed)
}

// resultOf returns the result of a page that has ended with this status, or 0 if there was no
// response, and this error. With Colly's option ParseHTTPErrorResponse, err is nil for every
// status.
func resultOf(ctx context.Context, status int, err error) feed.Result {
	if err == nil && status < 400 { // the usual case
		return feed.Done
	}
	denied := (*DisallowedError)(nil)
	switch {
	case hasEnded(ctx, err):
		return feed.Unfinished
	case errors.As(err, &denied) && !denied.redirect:
		return feed.Skipped
	case status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return feed.Failed // the status is not a property of the page
	case status >= 400 && status < 500:
		return feed.Done // the page does not exist or is not public
	}
	return feed.Failed
}
