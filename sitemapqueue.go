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

	"github.com/collyrobots/collyrobots/internal/fed"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/report"
)

// A SitemapQueue is a queue.Storage for colly/queue that adds the pages of sitemaps to an inner
// storage. The queue first gets the requests in the inner storage. When that is empty, it gets the
// pages that Pages returns, one at a time. With Resume, a page is done when its request is done, as
// with FollowSitemaps; the requests in the inner storage are not recorded for Resume.
//
// Plugin.SitemapQueue returns a SitemapQueue. All methods may be called from any goroutine.
type SitemapQueue struct {
	inner    queue.Storage // has the requests that the queue adds
	sitemaps *sitemaps
	pages    *fed.Pages
	ctx      context.Context // canceled by Close
	cancel   context.CancelFunc
	empty    atomic.Bool // there are no more pages

	// mu protects the fields below it. GetRequest holds it while it reads sitemaps for the next page.
	mu     sync.Mutex
	next   func() (*feed.Page, error, bool)
	stop   func()
	ran    bool        // the queue has got all pages
	last   *fed.Page   // the page that the queue got last
	handed []*fed.Page // the pages before last that no request has claimed
}

// errNoMore is returned to colly/queue, which expects an error if the storage is empty.
var errNoMore = errors.New("collyrobots: no more pages in the sitemaps")

// SitemapQueue returns a storage that has the requests in inner and the pages that Pages returns.
// Sitemaps that cannot be read are logged and counted. SitemapQueue returns an error if no
// collector is attached, if inner is nil, or if f or sites are invalid. Close the SitemapQueue
// after the queue has run.
func (p *Plugin) SitemapQueue(inner queue.Storage, f Feed, sites ...string) (*SitemapQueue, error) {
	s, urls, err := p.pages(f, sites)
	if err != nil {
		return nil, err
	}
	h := p.first()
	if h == nil {
		return nil, errors.New("collyrobots: SitemapQueue: no collector is attached; call Attach first")
	}
	if typednil.Is(inner) {
		return nil, errors.New("collyrobots: SitemapQueue: the inner storage is nil; pass a queue.InMemoryQueueStorage")
	}
	q := &SitemapQueue{inner: inner, sitemaps: s, pages: &p.fed}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.next, q.stop = iter.Pull2(func(yield func(*feed.Page, error) bool) {
		ctx, cancel := context.WithCancel(h.c.Context) // the Context at the time of the first page
		defer cancel()
		defer context.AfterFunc(q.ctx, cancel)()
		p.pull(ctx, s, urls)(yield)
		q.ran = ctx.Err() == nil && !p.closed.Load()
	})
	return q, nil
}

// Init initializes the inner storage.
func (q *SitemapQueue) Init() error { return q.inner.Init() }

// AddRequest adds a request to the inner storage.
func (q *SitemapQueue) AddRequest(r []byte) error { return q.inner.AddRequest(r) }

// GetRequest returns the next request in the encoding of colly/queue. If it has to read a sitemap
// first, it waits until the sitemap is read. If there are no more requests, it returns an error.
func (q *SitemapQueue) GetRequest() ([]byte, error) {
	n, err := q.inner.QueueSize()
	if err != nil || n > 0 {
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
		q.last = fed.Listed(leaderOf(page.Site, page.Sitemap, page.Loc), page.Done)
		ctx := contextOf(page.Entry)
		ctx.Put(fed.Key, q.pages.Name(q.last))
		return (&colly.Request{URL: u, Method: http.MethodGet, Ctx: ctx}).Marshal()
	}
}

// sent is called when the queue gets the next page, so a thread of the queue now has the page
// before it. Either the request of that page comes soon, or the collector has refused it, which
// Colly does not report. q.mu is held.
func (q *SitemapQueue) sent() {
	if q.last == nil {
		return
	}
	q.last.AwaitClaim()
	q.handed = append(q.handed, q.last)
	q.last = nil
	for len(q.handed) > 0 && (q.handed[0].IsClaimed() || q.handed[0].IsOver()) {
		q.handed = q.handed[1:]
	}
}

// QueueSize returns the number of requests in the inner storage, plus one if there may be more
// pages in the sitemaps.
func (q *SitemapQueue) QueueSize() (int, error) {
	n, err := q.inner.QueueSize()
	if !q.empty.Load() {
		n++
	}
	return n, err
}

// Stats returns the counts of the sitemaps of this queue so far. Plugin.Stats does not include
// them.
func (q *SitemapQueue) Stats() report.FeedStats { return q.sitemaps.statistics() }

// Close ends the reading of sitemaps. A GetRequest that waits for a sitemap returns at once. Close
// does not change the inner storage.
func (q *SitemapQueue) Close() error {
	q.cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	unclaimed := feed.Unfinished
	if q.ran {
		unclaimed = feed.Skipped // the collector has refused the pages that no request has claimed
	}
	q.stop()
	q.empty.Store(true)
	if q.last != nil {
		q.handed = append(q.handed, q.last)
	}
	for _, p := range q.handed {
		if !p.IsClaimed() {
			p.End(unclaimed)
		}
	}
	q.handed = nil
	q.last = nil
	q.sitemaps.flush()
	return nil
}
