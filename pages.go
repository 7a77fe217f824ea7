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

// Pages returns the pages that the sitemaps of sites list, as FollowSitemaps would feed them to a
// collector: in scope, allowed, each once. A site is given by the URL of any page of it. The
// sitemaps that its robots.txt names are read as the loop goes on, one after the other, those that
// an index names after those named before, so a site of any size takes little memory. Window and
// Sink of f are not used. With Resume a page is done when the loop asks for the next one, unless
// ctx has ended or the plugin is closed by then. Each loop over the result reads anew.
//
// An error comes with the zero Entry. It costs a file, or what was left of it, and the loop may go
// on. If ctx ends, its cause is the last error, and after Close it is ErrClosed; a bad Feed or a
// site that is not an http or https URL is the only one. Pages uses the first attached collector's
// client and user agent, or those of its own.
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
			if ctx.Err() != nil || p.closed.Load() { // whatever the loop did with it may have failed for that
				result = feed.Unfinished
			}
			page.Done(result)
		}
		s.flush()
	}
}

// pages checks what is asked for, and returns who reads it.
func (p *Plugin) pages(f Feed, sites []string) (s *sitemaps, urls []*url.URL, err error) {
	if err := p.usable(); err != nil {
		return nil, nil, err
	}
	var faults []error
	for _, reason := range f.faults() {
		faults = append(faults, fault("Feed", "%s", reason))
	}
	if f.Resume && p.policies.userStore() == nil {
		faults = append(faults, fault("Feed", "Resume needs the option Store"))
	}
	for _, site := range sites {
		u, err := url.Parse(site)
		if err != nil || !hasRobots(u) {
			faults = append(faults, fmt.Errorf("collyrobots: %q is not an http or https URL", redact.Text(site)))
			continue
		}
		urls = append(urls, u)
	}
	return newSitemaps(p.judge, f, p.policies.userStore(), p.report.log), urls, errors.Join(faults...)
}

// pull reads the sitemaps of sites. Whoever pulls says what became of each page.
func (p *Plugin) pull(ctx context.Context, s *sitemaps, sites []*url.URL) iter.Seq2[*feed.Page, error] {
	return func(yield func(*feed.Page, error) bool) {
		ctx, release := p.policies.until(ctx)
		defer release()
		ctx, userAgent, f := p.own(ctx)
		crawl := &feeder{sitemaps: s, userAgent: userAgent, fetcher: f}
		stopped := false
		hand := func(page *feed.Page, err error) bool {
			stopped = stopped || !yield(page, err)
			return !stopped
		}
		named := func(yield func(feed.Site) bool) {
			for _, u := range sites {
				v, err := p.decide(ctx, time.Now(), u, userAgent, f)
				if err != nil {
					if ctx.Err() != nil || !hand(nil, fmt.Errorf("collyrobots: the sitemaps of %s are not read: %w", u.Redacted(), err)) {
						return
					}
					continue
				}
				if !yield(feed.Site{Authority: v.policy.Authority, Sitemaps: v.policy.Sitemaps()}) {
					return
				}
			}
		}
		told := false
		for page, err := range s.feed.Pages(ctx, crawl, named) {
			told = page == nil && ctx.Err() != nil && err == context.Cause(ctx)
			if !hand(page, err) {
				return
			}
		}
		if p.closed.Load() && !told { // of which ctx hears a moment later
			hand(nil, ErrClosed)
		}
	}
}
