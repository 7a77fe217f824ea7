package collyrobots

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A SitemapQueue is a storage for colly/queue that ends with the pages of sitemaps: the queue gets the requests of another
// storage first, and when that is empty, one page at a time, what the sitemaps list. So a site of any size takes the room of one
// page. It may be used from many goroutines.
type SitemapQueue struct {
	queue.Storage // the other one, which keeps what is added
	feeder        *feeder
	mu            sync.Mutex // for next
	next          func() (sitemap.Entry, bool)
	stop          func()
	empty         atomic.Bool
}

// errNoMore is what colly/queue expects of an empty storage.
var errNoMore = errors.New("collyrobots: no more pages in the sitemaps")

// SitemapQueue returns a storage that reads the sitemaps which the robots.txt files of sites name, as FollowSitemaps would: f's
// Window and Sink do not matter. sites are URLs of any page. The errors tell of a plugin without a collector, a bad Feed or a bad URL. Close
// it when the queue has run.
func (p *Plugin) SitemapQueue(inner queue.Storage, f Feed, sites ...string) (*SitemapQueue, error) {
	l := p.anyLink()
	if l.c == nil || inner == nil {
		return nil, errors.New("collyrobots: SitemapQueue: attach a collector first, and name a storage")
	}
	if f.Resume {
		return nil, errors.New("collyrobots: SitemapQueue: Resume is not for queues, which keep their own place")
	}
	if fault := f.fault(); fault != "" {
		return nil, errors.New("collyrobots: SitemapQueue: " + fault)
	}
	urls := make([]*url.URL, len(sites))
	for i, site := range sites {
		u, err := url.Parse(site)
		if err != nil || !governed(u) {
			return nil, fmt.Errorf("collyrobots: SitemapQueue: %q is not an http or https URL", site)
		}
		urls[i] = u
	}
	q := &SitemapQueue{Storage: inner, feeder: newFeeder(p, f)}
	q.next, q.stop = iter.Pull(func(yield func(sitemap.Entry) bool) { q.read(l, urls, yield) })
	return q, nil
}

// read yields the pages of the sites' sitemaps.
func (q *SitemapQueue) read(l *link, sites []*url.URL, yield func(sitemap.Entry) bool) {
	q.feeder.pulled = yield
	for _, u := range sites {
		v, err := l.plugin.judge(l.c.Context, u, l.userAgent(), l.do)
		if err != nil {
			l.plugin.config.log.Warn("sitemaps of a site are not read", "url", u.Redacted(), "error", err)
			continue
		}
		q.feeder.offer(v.policy)
		q.feeder.run(l)
		if q.feeder.closed {
			return
		}
	}
}

// GetRequest returns the next request. It waits while a sitemap is fetched.
func (q *SitemapQueue) GetRequest() ([]byte, error) {
	if n, err := q.Storage.QueueSize(); err != nil || n > 0 {
		return q.Storage.GetRequest()
	}
	q.mu.Lock()
	e, ok := q.next()
	q.mu.Unlock()
	if !ok {
		q.empty.Store(true)
		return nil, errNoMore
	}
	u, err := url.Parse(e.Loc)
	if err != nil {
		return nil, err
	}
	return (&colly.Request{URL: u, Method: http.MethodGet, Ctx: contextOf(e)}).Marshal()
}

// QueueSize counts what the other storage holds, and one more while there may be pages in the sitemaps.
func (q *SitemapQueue) QueueSize() (int, error) {
	n, err := q.Storage.QueueSize()
	if !q.empty.Load() {
		n++
	}
	return n, err
}

// Stats returns what was read so far.
func (q *SitemapQueue) Stats() FeedStats { return q.feeder.statistics() }

// Close ends the reading of sitemaps, and leaves the other storage as it is.
func (q *SitemapQueue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop()
	q.empty.Store(true)
	return nil
}
