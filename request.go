package collyrobots

import (
	"context"
	"hash/maphash"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// A request is what is known of one exchange from the moment when a hook or the transport first
// sees it until it is over: its place with its host, and what it was judged by.
//
// Colly's hooks and the transport share one thing, the request's URL: the same pointer. So requests
// are found by it. At any time a request is held by one goroutine, or lies idle between two hooks.
type request struct {
	exchange
	shard      *requestShard
	url        *url.URL
	judged     url.URL // what url pointed to when it was judged: a callback may change that
	hostHeader string  // the user's, if it is not the URL's host
	userAgent  string  // it was judged by: a callback may change that, too
	policy     *policy.Policy
	reader     *reader // of policy; nil if robots.txt is ignored
	settings   *hostSettings
	fetcher    pageFetcher // for the hook that holds it
	early      bool        // its place is given back when the headers are there: callbacks may visit the host
	asked      http.Header // of the page, when robots.txt was asked for without an answer
	refusal    error       // why the transport is not to send it; nil if it may be sent
	uncached   bool        // its headers keep Colly from serving it from CacheDir
	retries    int         // how often it may be asked for again if the answer is 429 or 503
	fed        *fedPage    // nil: no sitemap listed it
	after      func()      // is called when the exchange has ended; may be nil
	name       *string     // the collector's UserAgent; nil if it does not count or is not known
	reread     bool        // robots.txt was read again when its turn had come
	sending    sending     // of the transport, once that has it

	held       atomic.Bool // by a hook or the transport; who sets it has the rest
	since      time.Time   // when it was let go
	prev, next *request    // in the ring of its shard; guarded by that
}

// A sending is what a request is judged by when it is sent once more.
type sending struct {
	seam *backend.Seam
	req  *http.Request
	by   interface {
		judgeSending(ctx context.Context, q *request) error
	}
}

// idleLimit is how long a request lies between two hooks before it is given up: a later callback
// has aborted it, which Colly does not report.
const idleLimit = 10 * time.Second

// requests are those under way.
type requests struct {
	seed   maphash.Seed
	shards [64]requestShard
}

type requestShard struct {
	mu    sync.Mutex
	byURL map[*url.URL]*request
	ring  request // the head of the ring of all; what is looked at first comes next
}

func newRequests() *requests {
	rs := &requests{seed: maphash.MakeSeed()}
	for i := range rs.shards {
		s := &rs.shards[i]
		s.byURL = make(map[*url.URL]*request)
		s.ring.prev, s.ring.next = &s.ring, &s.ring
	}
	return rs
}

var spareRequests = sync.Pool{New: func() any { return new(request) }}

func (rs *requests) shard(u *url.URL) *requestShard {
	return &rs.shards[maphash.Comparable(rs.seed, u)%uint64(len(rs.shards))]
}

// open returns a new request with this URL, held by the caller. One that lay there is given up.
func (rs *requests) open(u *url.URL, now time.Time) *request {
	q := spareRequests.Get().(*request)
	s := rs.shard(u)
	q.shard, q.url = s, u
	q.held.Store(true)
	s.mu.Lock()
	before, old := s.byURL[u], s.oldest(now)
	s.byURL[u] = q
	s.push(q)
	if before != old && before.hold() {
		before.unlink()
	} else {
		before = nil
	}
	s.mu.Unlock()
	before.giveUp()
	old.giveUp()
	return q
}

// oldest takes the request out that is looked at next, if it has been idle for too long, and
// returns it, held. s.mu is held.
func (s *requestShard) oldest(now time.Time) *request {
	q := s.ring.next
	if q == &s.ring {
		return nil
	}
	if !q.hold() { // it is no concern of ours for a while
		q.unlink()
		s.push(q)
		return nil
	}
	if now.Sub(q.since) < idleLimit {
		q.held.Store(false)
		return nil
	}
	s.forget(q)
	return q
}

// forget takes q out of the shard. s.mu is held.
func (s *requestShard) forget(q *request) {
	if s.byURL[q.url] == q {
		delete(s.byURL, q.url)
	}
	q.unlink()
}

func (s *requestShard) push(q *request) {
	q.prev, q.next = s.ring.prev, &s.ring
	q.prev.next, q.next.prev = q, q
}

// take returns the idle request with this URL, held by the caller from now on, or nil.
func (rs *requests) take(u *url.URL) *request {
	s := rs.shard(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.byURL[u]; q.hold() {
		return q
	}
	return nil
}

// knows reports whether there is a request with this URL.
func (rs *requests) knows(u *url.URL) bool {
	s := rs.shard(u)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byURL[u] != nil
}

// hold reports whether the caller holds q from now on: nobody else does, and there is one.
func (q *request) hold() bool { return q != nil && q.held.CompareAndSwap(false, true) }

// letGo leaves q to the next hook.
func (q *request) letGo(now time.Time) {
	q.since, q.fetcher = now, pageFetcher{} // it would keep the collector alive
	q.held.Store(false)
}

// close ends q, which the caller holds and must not use any more.
func (q *request) close() {
	s := q.shard
	s.mu.Lock()
	s.forget(q)
	s.mu.Unlock()
	q.giveUp()
}

// empty reports whether no request is under way.
func (rs *requests) empty() bool {
	for i := range rs.shards {
		s := &rs.shards[i]
		s.mu.Lock()
		n := len(s.byURL)
		s.mu.Unlock()
		if n > 0 {
			return false
		}
	}
	return true
}

func (q *request) unlink() {
	q.prev.next, q.next.prev = q.next, q.prev
	q.prev, q.next = nil, nil
}

// giveUp gives back what q, which may be nil, has of its host, and q itself.
func (q *request) giveUp() {
	if q == nil {
		return
	}
	q.giveBack()
	*q = request{}
	spareRequests.Put(q)
}

// set notes what q was judged by, and where.
func (q *request) set(v verdict) {
	q.judged, q.hostHeader, q.userAgent = *q.url, v.hostHeader, v.userAgent
	q.host, q.policy, q.reader, q.settings = v.host, v.policy, v.reader, v.settings
	v.obeyedBy(&q.ticket)
}

// refuse makes the transport refuse q with err, unless a later callback changes the URL. So the page
// fails as one that cannot be fetched: OnError is called, and a Visit of a synchronous collector
// returns the error.
func (q *request) refuse(err error) {
	q.ticket.End()
	q.refusal = err
	q.judged = *q.url
}

// newest returns the policy that decides about q at now: the one that q was judged by, a newer one,
// or nil if robots.txt has to be read again first. It returns nil once for each time that q is sent:
// to read the file takes a turn, and the file may be too old again when q has its own.
func (q *request) newest(ctx context.Context, now time.Time) *policy.Policy {
	if q.settings.ignoreRobots || q.policy.Fresh(now) {
		return q.policy
	}
	known := q.reader.known(ctx, now, q.policy.Authority, q.host)
	if known == nil && q.reread {
		return q.policy
	}
	q.reread = known == nil
	return known
}

// takeTurn waits until q may start, as pace.Host.Start does. If robots.txt was read again meanwhile,
// or has to be, judgeAgain judges q. It is called at now and returns the time when it is done.
func (q *request) takeTurn(ctx context.Context, now time.Time, direct bool, judgeAgain func() error) (time.Time, error) {
	for {
		if !q.startNow(ctx, now, direct) {
			err := q.host.Start(ctx, &q.ticket, direct)
			now = time.Now()
			if err != nil {
				return now, err
			}
		}
		newest := q.newest(ctx, now)
		if newest == q.policy || newest == nil && q.policy.MayServe(now) {
			return now, nil
		}
		if newest == nil {
			q.giveBack() // to read the file takes a place on the wire
		}
		err := judgeAgain()
		if err != nil || newest != nil {
			return now, err
		}
		now = time.Now()
	}
}

// startNow reports whether q starts at now, without a wait.
func (q *request) startNow(ctx context.Context, now time.Time, direct bool) bool {
	if ctx.Err() != nil {
		return false
	}
	_, ok := q.host.StartNow(now, &q.ticket, direct)
	return ok
}

// unchanged reports whether q's URL still is what was judged.
func (q *request) unchanged() bool { return *q.url == q.judged }

// askedAs reports whether robots.txt was asked for with this header of the page.
func (q *request) askedAs(header http.Header) bool {
	return maps.EqualFunc(q.asked, header, slices.Equal[[]string])
}

// isFor reports whether q is for what req asks for.
func (q *request) isFor(req *http.Request) bool {
	return q.unchanged() && q.hostHeader == hostHeaderOf(req.Host, req.URL, req.Header)
}

// Answered implements backend.Trip. Nobody reads the body of a redirect, but the user's redirect
// handler may well visit the same host before it is closed.
func (q *request) Answered(resp *http.Response) (again bool, report func()) {
	if q.policy.Failing() {
		q.policy.SiteAnswered()
	}
	redirect, pages := isRedirect(resp.StatusCode), 1
	if redirect {
		pages = 0
	}
	report = q.answer(resp, pages)
	if throttled(resp) {
		if q.retries > 0 && backend.Repeatable(resp.Request) && !q.host.BusyFor(throttledPatience) {
			q.retries--
			q.trace.again(q.host, nil)
			q.ticket.End() // report may take any time
			return true, report
		}
		q.host.Count(1, 0)
	}
	if redirect || q.early {
		q.ticket.End()
	}
	if redirect && (q.early || q.fed != nil || q.after != nil || q.name != nil || q.trace.events.Active()) {
		next := context.WithValue(resp.Request.Context(), (*hop)(nil), &hop{q.early, q.fed, q.after, q.name, q.trace.collector, q.trace.request})
		q.fed, q.after = nil, nil
		resp.Request = resp.Request.WithContext(next)
	}
	return false, report
}

// throttledPatience bounds how long a page that was answered 429 or 503 waits for its next try: it
// holds a LimitRule slot meanwhile.
const throttledPatience = 5 * time.Minute

// A hop is what a redirect hands on to the request that follows it. The nil one is the key under
// which the redirect's context has a pointer to it.
type hop struct {
	early bool
	fed   *fedPage
	after func()
	name  *string

	collector, request uint32 // Colly's numbers
}

// follow takes over what the redirect that led to q has handed on.
func (q *request) follow(redirect *http.Response) {
	if redirect == nil || redirect.Request == nil {
		return
	}
	if from, ok := redirect.Request.Context().Value((*hop)(nil)).(*hop); ok {
		q.early, q.fed, q.after, q.name = from.early, from.fed, from.after, from.name
		q.trace.collector, q.trace.request = from.collector, from.request
	}
}

// Again implements backend.Trip. The request waits for its turn once more, for long perhaps, so it is
// judged by what robots.txt says after that.
func (q *request) Again(ctx context.Context) error {
	q.reread = false
	return q.again(func() error {
		_, err := q.takeTurn(ctx, time.Now(), true, func() error { return q.sending.by.judgeSending(ctx, q) })
		if err == nil {
			q.handOver()
		}
		return err
	})
}

// Ended implements backend.Trip.
func (q *request) Ended(bytes int64, err error) {
	fed, after := q.fed, q.after
	q.trace.ended(q.host, &q.ticket, q.sent.Load(), bytes, err)
	q.close()
	fed.awaitHook()
	if after != nil {
		after()
	}
}
