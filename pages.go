package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

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
// collector is attached, it uses the client of the option HTTPClient, or http.DefaultTransport, and
// a user agent that names this package.
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
	if f.Resume && p.policies.store == nil {
		faults = append(faults, fault("Feed", "Resume needs the option Store"))
	}
	for _, site := range sites {
		u, err := url.Parse(site)
		if err != nil || !isWeb(u) {
			faults = append(faults, fmt.Errorf("collyrobots: %q is not an http or https URL", redact.Text(site)))
			continue
		}
		urls = append(urls, u)
	}
	f.Sink = nil // the caller gets the pages
	return newSitemaps(p.judge, f, p.policies.store, p.report.log), urls, errors.Join(faults...)
}

// pull returns an iterator over the pages that the sitemaps of sites list. The caller must call
// Done of each page.
func (p *Plugin) pull(ctx context.Context, s *sitemaps, sites []*url.URL) iter.Seq2[*feed.Page, error] {
	return func(yield func(*feed.Page, error) bool) {
		ctx, release := p.policies.until(ctx)
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
			v, err := f.decide(ctx, time.Now(), target{url: u, userAgent: f.userAgent}, f.fetcher)
			switch {
			case err == nil:
				if !yield(feed.Site{Authority: v.policy.Authority, Sitemaps: v.policy.Sitemaps()}) {
					return
				}
			case ctx.Err() != nil || !lost(fmt.Errorf("cannot read the sitemaps of %s: %w", u.Redacted(), err)):
				return
			}
		}
	}
}
