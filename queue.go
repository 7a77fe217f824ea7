package collyrobots

import (
	"errors"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A SitemapQueue is a storage for colly/queue that adds the pages of sitemaps to another storage:
// the queue first gets the requests of that one and, when it is empty, what Pages returns, a page
// at a time. All methods may be called from any goroutine. Get one from Plugin.SitemapQueue.
type SitemapQueue struct {
	queue.Storage // the other storage, which keeps what is added
	sitemaps      *sitemaps
	mu            sync.Mutex // for next
	next          func() (sitemap.Entry, error, bool)
	stop          func()
	empty         atomic.Bool
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
	q := &SitemapQueue{Storage: inner, sitemaps: s}
	q.next, q.stop = iter.Pull2(func(yield func(sitemap.Entry, error) bool) {
		p.pull(h.c.Context, s, urls)(yield) // the context when the queue begins to ask
	})
	return q, nil
}

// GetRequest returns the next request, as colly/queue wants it. It waits while a sitemap is
// fetched, and returns an error when there are no more.
func (q *SitemapQueue) GetRequest() ([]byte, error) {
	if n, err := q.Storage.QueueSize(); err != nil || n > 0 {
		return q.Storage.GetRequest()
	}
	for {
		e, err, ok := q.pull()
		if !ok {
			q.empty.Store(true)
			return nil, errNoMore
		}
		if err != nil {
			continue // the feed has logged it
		}
		u, err := url.Parse(e.Loc)
		if err != nil {
			return nil, redact.ParseError(err)
		}
		return (&colly.Request{URL: u, Method: http.MethodGet, Ctx: contextOf(e)}).Marshal()
	}
}

func (q *SitemapQueue) pull() (sitemap.Entry, error, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next()
}

// QueueSize counts what the other storage holds, and one more while there may be pages in the
// sitemaps.
func (q *SitemapQueue) QueueSize() (int, error) {
	n, err := q.Storage.QueueSize()
	if !q.empty.Load() {
		n++
	}
	return n, err
}

// Stats returns the counts of this queue's sitemaps so far. Those of Plugin.Stats are without them.
func (q *SitemapQueue) Stats() FeedStats { return q.sitemaps.statistics() }

// Close ends the reading of sitemaps, and leaves the other storage as it is.
func (q *SitemapQueue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop()
	q.sitemaps.flush()
	q.empty.Store(true)
	return nil
}
