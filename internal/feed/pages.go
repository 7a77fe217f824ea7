package feed

import (
	"context"
	"iter"
	"net/url"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A Site is a site with the sitemaps that its robots.txt names.
type Site struct {
	Authority dialect.Authority
	Sitemaps  []string
}

// A Page is a page from [Feed.Pages].
type Page struct {
	sitemap.Entry
	Site dialect.Authority // the site whose sitemap lists the page
	done func(Result)
}

// URL returns the URL of the page. Bytes that crawlers accept but net/url refuses are escaped.
func (p *Page) URL() (*url.URL, error) {
	u := new(url.URL)
	return u, parseURL(p.Loc, u)
}

// Done reports the result of the page. It may be called from any goroutine. Only the first call
// counts. With Resume, the next run hands on again every page without a result.
func (p *Page) Done(r Result) { p.done(r) }

// Pages returns an iterator over the pages that the sitemaps of sites list. It requests the
// sitemaps one after the other, when the loop needs them. An error comes with a nil Page and says
// that a file, or the rest of it, is lost. If ctx ends, the last error is its cause. Pages uses all
// methods of crawl except Visit and Slots, because the caller limits the pages in flight itself.
// When the loop ends, everything that the walk has started ends as well.
func (f *Feed) Pages(ctx context.Context, crawl Crawl, sites iter.Seq[Site]) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		for s := range sites {
			if f.full() || ctx.Err() != nil {
				break
			}
			f.Offer(s.Authority, s.Sitemaps)
			if !f.pull(ctx, crawl, yield) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
		}
	}
}

// pull walks the pending sites and reports whether the loop wants more pages.
func (f *Feed) pull(ctx context.Context, crawl Crawl, yield func(*Page, error) bool) (more bool) {
	more = true
	for more && f.enter(false) {
		a, ok := f.take(ctx, false)
		if !ok {
			break
		}
		w := newWalk(ctx, f, crawl, a.site)
		// The loop takes one page after the other, so no file is requested before it is needed.
		w.queue.atOnce = 1
		w.slots = func() *Slots { return nil }
		w.hand = func(e sitemap.Entry, done func(Result)) bool {
			more = yield(&Page{Entry: e, Site: a.site, done: done}, nil)
			if !more {
				w.stop.Store(true)
				done(Unfinished) // has no effect if the loop has called Done
			}
			return true
		}
		w.lost = func(err error) {
			if more && !yield(nil, err) {
				more = false
				w.stop.Store(true)
			}
		}
		f.walk(w, a)
		f.leave(false)
	}
	return more
}
