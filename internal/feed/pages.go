package feed

import (
	"context"
	"iter"
	"net/url"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A Site is a site and the sitemaps that its robots.txt names.
type Site struct {
	Authority dialect.Authority
	Sitemaps  []string
}

// A Page is a page that [Feed.Pages] has handed on.
type Page struct {
	sitemap.Entry
	Site   dialect.Authority // whose sitemap lists it
	ticket *ticket
}

// URL returns the page's URL. What crawlers visit and net/url refuses is escaped in it.
func (p *Page) URL() (*url.URL, error) {
	u := new(url.URL)
	return u, parseURL(p.Loc, u)
}

// Done tells what became of the page, from any goroutine. Only what is told first counts. With
// Resume, a page of which nothing is told is handed on again by the next run.
func (p *Page) Done(r Result) { p.ticket.finish(r) }

// Pages returns the pages that the sitemaps of sites list, which are asked for one after the other,
// as they are needed. The errors are those that cost a file, or what was left of it, with a nil
// Page; if ctx is done, its cause is the last. crawl is asked for everything but Visit and Slots:
// how many pages are in flight is the matter of whoever pulls. All that the walk has started ends
// when the loop does.
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

// pull walks the sites that are pending, and reports whether more is wanted.
func (f *Feed) pull(ctx context.Context, crawl Crawl, yield func(*Page, error) bool) (more bool) {
	more = true
	for more && f.enter(false) {
		a, ok := f.take(ctx, false)
		if !ok {
			break
		}
		w := newWalk(ctx, f, crawl, a.site)
		w.queue.atOnce = 1 // whoever pulls wants one page after the other, and nothing that is not asked for
		w.slots = func() *Slots { return nil }
		w.hand = func(e sitemap.Entry, t *ticket) bool {
			if more = yield(&Page{e, a.site, t}, nil); !more {
				w.stop.Store(true)
				t.finish(Unfinished) // unless it is done already
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
