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

// A SitemapQueue is a storage for colly/queue that ends with the pages of sitemaps: the queue gets
// the requests of another storage first, and when that is empty, one page at a time, what Pages
// yields. It may be used from many goroutines.
type SitemapQueue struct {
	queue.Storage // the other one, which keeps what is added
	sitemaps      *sitemaps
	mu            sync.Mutex // for next
	next          func() (sitemap.Entry, error, bool)
	stop          func()
	empty         atomic.Bool
}

// errNoMore is what colly/queue expects of an empty storage.
var errNoMore = errors.New("collyrobots: no more pages in the sitemaps")

// SitemapQueue returns a storage that hands on what Pages yields; files that cannot be read are
// logged and counted. The errors tell of a plugin without a collector, no other storage, a bad Feed
// or a bad URL. Close it when the queue has run.
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

// GetRequest returns the next request. It waits while a sitemap is fetched.
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

// Stats returns what was read so far.
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
