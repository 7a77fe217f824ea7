package collyrobots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/fed"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// Queue returns a storage for colly/queue that keeps its requests in f. The queue gets each page
// when its turn has come, and ends when no page waits and none is under way. A later run continues
// with the pages that are left.
//
//	storage, err := robots.Queue(f)
//	q, err := queue.New(8, storage)
//	q.AddURL("https://example.com/")
//	q.Run(c)
//
// A page is done when its callbacks have run, and a page that has failed is tried again, as with
// the option Frontier. Without that option, Colly refuses to visit a page again in the same run, so
// a later run tries it. Requests with other methods than GET are kept as well. Two requests are the
// same page if their method, URL and body are equal. AddRequest returns an error if f fails, and a
// *ShardError for a URL of another shard.
//
// Use the queue for collectors that are not asynchronous. Pages that they visit without the queue
// are not recorded. Queue returns an error if the plugin is zero or f is nil. The storage may be
// used by one queue at a time. Without the option Frontier, the option Store(f.Records()) keeps the
// pace of the hosts in f.
func (p *Plugin) Queue(f urlstore.Store) (queue.Storage, error) {
	err := p.usable()
	if err != nil {
		return nil, err
	}
	if typednil.Is(f) {
		return nil, errors.New("collyrobots: Queue: the urlstore.Store is nil")
	}
	p.fed.Use()
	p.judge.Wire.AddStore(f)
	return &urlQueue{plugin: p, store: f, open: make(map[*fed.Page]bool)}, nil
}

// A urlQueue is the result of Plugin.Queue.
//
// Queue.AddRequest of colly/queue calls AddRequest here, and then sends a signal. colly/queue does
// not receive the signal while it waits in GetRequest, so a callback that adds a request would
// block. Therefore GetRequest then returns without a request, and QueueSize returns 0 once, which
// makes colly/queue wait for the signal.
type urlQueue struct {
	plugin *Plugin
	store  urlstore.Store

	// mu protects the fields below it.
	mu       sync.Mutex
	open     map[*fed.Page]bool // pages that the queue has got and that have not ended
	last     *fed.Page          // the page that GetRequest has returned last; nil if there is none
	cancel   func()             // ends the Next that runs; nil if none does
	timer    *time.Timer        // calls lookUp while Next runs
	signals  int                // the number of requests whose signal colly/queue may not have received
	yield    bool               // QueueSize must return 0 once
	finished bool               // the store was empty
	failed   bool               // the store has failed, or the crawl was ended
}

// errNoTurn is returned to colly/queue, which tries again.
var errNoTurn = errors.New("collyrobots: no page of the queue has its turn")

// patientTurn is how long GetRequest waits before it returns for a callback that may wait for it.
const patientTurn = time.Second

// Init implements queue.Storage.
func (q *urlQueue) Init() error { return nil }

// AddRequest implements queue.Storage.
func (q *urlQueue) AddRequest(encoded []byte) error {
	p, signals, err := q.pageOf(encoded)
	if err != nil {
		return err
	}
	_, err = q.store.Add(p)
	if err != nil {
		return fmt.Errorf("collyrobots: %s cannot be recorded: %w", redact.Text(p.URL), err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finished = false
	if !signals {
		return nil
	}
	q.signals++
	if q.cancel != nil && q.mayYield() {
		q.cancel()
	}
	return nil
}

// pageOf returns the page of a request in the encoding of colly/queue. signals reports whether
// Queue.AddRequest was probably called and not Queue.AddURL, which sends no signal: Colly has given
// the request a number.
func (q *urlQueue) pageOf(encoded []byte) (p *urlstore.Page, signals bool, err error) {
	var r struct {
		URL, Method string
		Depth       int
		ID          uint32
		Body        []byte
	}
	err = json.Unmarshal(encoded, &r)
	if err != nil {
		return nil, false, fmt.Errorf("collyrobots: cannot decode a request: %w", err)
	}
	u, err := weburl.Parse(r.URL)
	if err != nil {
		return nil, false, fmt.Errorf("collyrobots: %w", redact.ParseError(err))
	}
	p = &urlstore.Page{URL: r.URL, Host: hostname.Of(u), Depth: r.Depth}
	if r.Method != http.MethodGet || len(r.Body) > 0 {
		sum := sha256.Sum256(r.Body)
		p.Key = r.Method + " " + r.URL + " " + hex.EncodeToString(sum[:])
	}
	err = q.plugin.judge.Shard.Owns(p.Host, u)
	if err != nil {
		return nil, false, err
	}
	p.Request, err = withPage(encoded, "")
	return p, r.ID != 0, err
}

// withPage returns an encoded request with the name of a page in its Context, or without one.
func withPage(encoded []byte, name string) ([]byte, error) {
	var r map[string]any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	err := decoder.Decode(&r)
	if err != nil {
		return nil, fmt.Errorf("collyrobots: cannot decode a request: %w", err)
	}
	ctx, _ := r["Ctx"].(map[string]any)
	if ctx == nil {
		ctx = make(map[string]any)
	}
	delete(ctx, fed.Key)
	delete(ctx, CtxWaited)
	if name != "" {
		ctx[fed.Key] = name
	}
	r["Ctx"] = ctx
	return json.Marshal(r)
}

// GetRequest implements queue.Storage. It waits until the turn of a page has come.
func (q *urlQueue) GetRequest() ([]byte, error) {
	p, err := q.next()
	if err != nil {
		return nil, err
	}
	encoded := p.Request
	if encoded == nil {
		encoded, err = requestOf(p)
		if err != nil {
			return nil, err
		}
	}
	page := q.attempt(p)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[page] = true
	q.last = page
	return withPage(encoded, q.plugin.fed.Name(page))
}

// next returns the next page of the store.
func (q *urlQueue) next() (*urlstore.Page, error) {
	crawl, release := q.plugin.judge.Policies.Until(q.context())
	defer release()
	ctx, cancel := context.WithCancel(crawl)
	defer cancel()
	q.begin(cancel)
	p, err := q.store.Next(ctx)
	if err == nil && crawl.Err() != nil {
		err = errors.Join(context.Cause(crawl), q.store.End(p, urlstore.Returned))
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		q.plugin.judge.Report.Log.Error("the urlstore.Store of a queue has failed, the queue ends", "error", err)
	}
	if !q.end(err) {
		err = errNoTurn
	}
	return p, err
}

// context returns the Context of the first collector.
func (q *urlQueue) context() context.Context {
	if h := q.plugin.first(); h != nil {
		return h.c.Context
	}
	return context.Background()
}

// begin is called before Next. A thread of the queue now has the last page. Its request comes soon,
// unless the collector has refused it, which Colly does not report.
func (q *urlQueue) begin(cancel func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last != nil {
		q.last.AwaitClaim()
		q.last = nil
	}
	q.cancel = cancel
	q.timer = time.AfterFunc(patientTurn, q.lookUp)
}

// lookUp cancels a Next that has run for patientTurn if a callback may be waiting for it, or if no
// page waits in the store.
func (q *urlQueue) lookUp() {
	idle := q.store.Stats().Waiting == 0
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancel == nil {
		return
	}
	if (q.signals > 0 || idle) && q.mayYield() {
		q.cancel()
		return
	}
	q.timer = time.AfterFunc(patientTurn, q.lookUp)
}

// mayYield sets yield, unless no callback can be waiting, and reports whether it did. A callback
// waits only while its page is under way in a thread of the queue. q.mu is held.
func (q *urlQueue) mayYield() bool {
	if h := q.plugin.first(); h == nil || h.c.Async {
		return false
	}
	for page := range q.open {
		if page.IsClaimed() && !page.IsOver() {
			q.yield = true
			q.signals = max(q.signals-1, 0)
			return true
		}
	}
	q.signals = 0
	return false
}

// end is called after Next with its error. It returns false if Next was canceled only because a
// callback may be waiting, so that the queue continues.
func (q *urlQueue) end(err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancel = nil
	q.timer.Stop()
	switch {
	case err == nil && q.yield:
		q.signals++ // the callback may still wait
		q.yield = false
	case err == nil:
	case q.yield:
		return false
	case errors.Is(err, io.EOF):
		q.finished = true
	default:
		q.failed = true
	}
	return true
}

// attempt returns an attempt to fetch a page.
func (q *urlQueue) attempt(p *urlstore.Page) *fed.Page {
	l := &queueListener{queue: q, stop: q.exempt(p)}
	f := q.plugin.frontier
	if f == nil || f.store != q.store {
		l.Listener = storeListener{store: q.store, page: p}
		return fed.Queued(p.From, l)
	}
	l.Listener = &storedPage{frontier: f, page: p}
	return f.handOut(p, l)
}

// A queueListener tells the queue of a page that it is over.
type queueListener struct {
	fed.Listener
	queue *urlQueue
	stop  func() // ends the exemption of the page
}

// Ended implements fed.Listener.
func (l *queueListener) Ended(attempt *fed.Page, r feed.Result) {
	l.stop()
	l.Listener.Ended(attempt, r)
	l.queue.forget(attempt)
}

// Lapsed implements fed.Listener.
func (l *queueListener) Lapsed(attempt *fed.Page, r feed.Result) {
	l.stop()
	l.Listener.Lapsed(attempt, r)
	l.queue.forget(attempt)
}

// A storeListener passes the result of a page to its urlstore.Store.
type storeListener struct {
	store urlstore.Store
	page  *urlstore.Page
}

// Ended implements fed.Listener.
func (l storeListener) Ended(_ *fed.Page, r feed.Result) { l.store.End(l.page, pageResultOf(r)) }

// Lapsed implements fed.Listener.
func (l storeListener) Lapsed(_ *fed.Page, r feed.Result) { l.store.End(l.page, pageResultOf(r)) }

// forget removes a page that has ended.
func (q *urlQueue) forget(page *fed.Page) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, page)
}

// exempt makes the collector accept a page that it may have visited before it failed, until stop is
// called.
func (q *urlQueue) exempt(p *urlstore.Page) (stop func()) {
	h := q.plugin.first()
	if h == nil || h.frontier == nil {
		return func() {}
	}
	return sync.OnceFunc(h.visits.Exempt(arrivals.HashOfURL(p.URL)))
}

// QueueSize implements queue.Storage. It returns 0 if the queue has ended. It never returns an
// error, because colly/queue would then not end its threads.
func (q *urlQueue) QueueSize() (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.yield || q.finished || q.failed {
		q.yield = false
		return 0, nil
	}
	s := q.store.Stats()
	return s.Waiting + s.Out, nil
}

// requestOf encodes a request of a page that has none.
func requestOf(p *urlstore.Page) ([]byte, error) {
	u, err := weburl.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	return (&colly.Request{URL: u, Method: http.MethodGet, Depth: max(p.Depth, 1)}).Marshal()
}
