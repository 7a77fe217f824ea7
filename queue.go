package collyrobots

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots/internal/feed"
)

// A SitemapQueue is a queue.Storage for colly/queue that adds the pages of sitemaps to another
// storage. The queue first gets the requests of the other storage and, when that is empty, the pages
// that Pages returns, one at a time. With Resume a page is done when its request is, as with
// FollowSitemaps. The requests in the other storage are not recorded for Resume. All methods may be
// called from any goroutine. Get one from Plugin.SitemapQueue.
type SitemapQueue struct {
	inner    queue.Storage // keeps the requests that the queue adds
	sitemaps *sitemaps
	fed      *fedPages
	ctx      context.Context // until Close
	cancel   context.CancelFunc
	mu       sync.Mutex // for next, last, handed and ran
	next     func() (*feed.Page, error, bool)
	stop     func()
	ran      bool       // the queue has got all pages
	last     *fedPage   // which the queue got, and may still have
	handed   []*fedPage // those before it that no request has come for
	empty    atomic.Bool
}

// errNoMore is what colly/queue expects of an empty storage.
var errNoMore = errors.New("collyrobots: no more pages in the sitemaps")

// SitemapQueue returns a storage of the requests in inner and of what Pages returns; sitemaps that
// cannot be read are logged and counted. It fails if no collector is attached, inner is nil, or f
// or a site is what Pages refuses. Close it when the queue has run.
func (p *Plugin) SitemapQueue(inner queue.Storage, f Feed, sites ...string) (*SitemapQueue, error) {
	s, urls, err := p.pages(f, sites)
	if err != nil {
		return nil, err
	}
	h := p.first()
	if h == nil || inner == nil {
		return nil, errors.New("collyrobots: SitemapQueue: attach a collector first, and name a storage")
	}
	q := &SitemapQueue{inner: inner, sitemaps: s, fed: &p.fed}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.next, q.stop = iter.Pull2(func(yield func(*feed.Page, error) bool) {
		ctx, cancel := context.WithCancel(h.c.Context) // as it is when the queue begins to ask
		defer cancel()
		defer context.AfterFunc(q.ctx, cancel)()
		p.pull(ctx, s, urls)(yield)
		q.ran = ctx.Err() == nil && !p.closed.Load()
	})
	return q, nil
}

// Init initializes the other storage.
func (q *SitemapQueue) Init() error { return q.inner.Init() }

// AddRequest adds a request to the other storage.
func (q *SitemapQueue) AddRequest(r []byte) error { return q.inner.AddRequest(r) }

// GetRequest returns the next request, as colly/queue wants it. It waits while a sitemap is
// fetched, and returns an error when there are no more.
func (q *SitemapQueue) GetRequest() ([]byte, error) {
	if n, err := q.inner.QueueSize(); err != nil || n > 0 {
		return q.inner.GetRequest()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent()
	for {
		page, err, ok := q.next()
		if !ok {
			q.empty.Store(true)
			return nil, errNoMore
		}
		if err != nil {
			continue // the feed has logged it
		}
		u, err := page.URL()
		if err != nil {
			page.Done(feed.Done)
			continue
		}
		fed := newFedPage(leaderOf(page.Site, page.Sitemap, page.Loc), page.Done)
		q.last = fed
		ctx := contextOf(page.Entry)
		ctx.Put(ctxPage, q.fed.name(fed))
		return (&colly.Request{URL: u, Method: http.MethodGet, Ctx: ctx}).Marshal()
	}
}

// sent notes that a thread of the queue has the last page, since the queue asks for the next one.
// Its request comes now, or the collector refuses it, of which it tells nobody. q.mu is held.
func (q *SitemapQueue) sent() {
	if q.last == nil {
		return
	}
	q.last.awaitClaim()
	q.handed, q.last = append(q.handed, q.last), nil
	for len(q.handed) > 0 && (q.handed[0].claimed() || q.handed[0].over()) {
		q.handed = q.handed[1:]
	}
}

// QueueSize counts what the other storage holds, and one more while there may be pages in the
// sitemaps.
func (q *SitemapQueue) QueueSize() (int, error) {
	n, err := q.inner.QueueSize()
	if !q.empty.Load() {
		n++
	}
	return n, err
}

// Stats returns the counts of this queue's sitemaps so far. Those of Plugin.Stats are without them.
func (q *SitemapQueue) Stats() FeedStats { return q.sitemaps.statistics() }

// Close ends the reading of sitemaps, and leaves the other storage as it is. A GetRequest that
// waits ends at once.
func (q *SitemapQueue) Close() error {
	q.cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	unclaimed := feed.Unfinished
	if q.ran { // the collector has refused them
		unclaimed = feed.Skipped
	}
	q.stop()
	q.empty.Store(true)
	if q.last != nil {
		q.handed = append(q.handed, q.last)
	}
	for _, p := range q.handed {
		if !p.claimed() {
			p.end(unclaimed)
		}
	}
	q.handed, q.last = nil, nil
	q.sitemaps.flush()
	return nil
}
