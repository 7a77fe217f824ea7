package hostqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

const (
	mostIdle   = 100 * time.Millisecond // the longest time until a process with free places looks for hosts
	mostRenew  = 2 * time.Second        // the longest time between two renewals of leases
	longHold   = 10 * time.Second       // a host that must wait for longer is given back
	shortHold  = 500 * time.Millisecond // the same if other hosts wait for a place in the process
	longTurn   = 10 * time.Second       // how long a process keeps a host if other hosts wait for a place
	unsentWait = time.Second            // the pause of a host after a page that could not be sent
	lastWords  = 5 * time.Second        // how long Run tries to tell Redis about its pages when it ends
)

// A run is a call of Run.
type run struct {
	queue     *Queue
	collector *colly.Collector
	robots    *collyrobots.Plugin
	template  *colly.Request // copied for each request
	process   string         // identifies the process in Redis
	stop      context.CancelCauseFunc

	freed chan freed // the hosts that their goroutines have left

	// Only the goroutine of Run uses these fields.
	held    map[member]bool          // the hosts that this process crawls
	due     map[member]time.Duration // the hosts that were freed, and in how long they are due
	gone    []member                 // the hosts that were freed and leave the list
	share   int                      // how many hosts this process may crawl
	renewed time.Time                // when the leases were last renewed

	logged  atomic.Int64 // when a failure of Redis was last logged, in Unix time
	crowded atomic.Bool  // other hosts wait for a place in this process
	surplus atomic.Int32 // how many hosts to give back, so that other processes get their share
}

// A freed is a host that its goroutine has left.
type freed struct {
	member member
	way    way
	after  time.Duration // when the host is due again, after wayBack
}

// A way says what becomes of a host that was freed.
type way int

const (
	wayBack way = iota // it is due again
	wayGone            // all of its pages are done, so it leaves the list
	wayLost            // another process has it, so its place in the list is left alone
)

// Run crawls until all pages of the crawl are done, those of other processes included, and returns
// nil. The pages are fetched through c, which must be attached to robots and must not be Async. Run
// needs no Visit, Wait, LimitRule or AllowURLRevisit. The collector's storage of visited URLs is
// not used.
//
// When ctx or the context of the collector ends, Run takes no more pages, waits until the visits in
// progress have ended, gives its hosts back, and returns the cause. To end the visits early as
// well, pass the context to the collector with colly.StdlibContext. Pages that could not be sent
// for this reason wait again.
//
// While Redis does not answer, Run waits and logs an error from time to time. It returns ErrLost if
// the crawl is no longer in Redis, collyrobots.ErrClosed if robots is closed, and
// colly.ErrMaxRequests if the collector accepts no more requests.
func (q *Queue) Run(ctx context.Context, c *colly.Collector, robots *collyrobots.Plugin) error {
	switch {
	case c == nil:
		return errors.New(prefix + "the collector is nil")
	case robots == nil:
		return errors.New(prefix + "the plugin is nil")
	case c.Async:
		return errors.New(prefix + "the collector is Async, but Run needs a collector whose Visit returns after the callbacks")
	}
	template, err := c.UnmarshalRequest([]byte(`{"Method":"GET","URL":"http://template.invalid/"}`))
	if err != nil {
		return fmt.Errorf(prefix+"%w", err)
	}
	c.OnResponse(answered)
	c.OnError(func(resp *colly.Response, _ error) { answered(resp) })
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(c.Context, func() { stop(context.Cause(c.Context)) })()
	r := &run{
		queue:     q,
		collector: c,
		robots:    robots,
		template:  template,
		process:   rand.Text(),
		stop:      stop,
		held:      make(map[member]bool),
		due:       make(map[member]time.Duration),
		freed:     make(chan freed, q.hosts),
	}
	err = r.loop(ctx)
	r.finish()
	return err
}

// loop takes hosts until the crawl has ended.
func (r *run) loop(ctx context.Context) error {
	for {
		wait, err := r.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errEnd):
			return nil
		case errors.Is(err, ErrLost):
			return err
		case err != nil:
			r.logFailure("take hosts", "", err)
			wait = time.Second
		}
		timer := time.NewTimer(wait)
		select {
		case f := <-r.freed:
			r.note(f)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// errEnd says that all pages of the crawl are done.
var errEnd = errors.New("the crawl has ended")

// turn gives back the hosts that were freed, renews the leases of the others, and takes hosts. It
// returns the time until the next turn.
func (r *run) turn(ctx context.Context) (wait time.Duration, err error) {
	err = r.settle(ctx)
	if err != nil {
		return 0, err
	}
	t, err := r.queue.take(ctx, r.process, r.places())
	switch {
	case err != nil:
		return 0, err
	case t.listed == 0:
		return 0, errEnd
	}
	for _, m := range t.hosts {
		r.held[m] = true
		go r.crawl(ctx, m)
	}
	r.share = (t.listed + t.processes - 1) / t.processes
	r.crowded.Store(len(r.held) >= r.queue.hosts && t.wait == 0)
	r.surplus.Store(int32(len(r.held) - r.share - r.share/10))
	switch {
	case len(r.held) >= r.queue.hosts:
		return r.renewal(), nil
	case r.places() > 0:
		return min(t.wait, mostIdle), nil
	}
	return mostIdle, nil
}

// places returns how many hosts the process may take.
func (r *run) places() int { return max(0, min(r.queue.hosts, r.share)-len(r.held)) }

// renewal returns the time between two renewals of the leases.
func (r *run) renewal() time.Duration { return min(r.queue.lease/3, mostRenew) }

// settle tells Redis about the hosts that were freed. It also renews the leases of the others if it
// is time.
func (r *run) settle(ctx context.Context) error {
	for len(r.freed) > 0 {
		r.note(<-r.freed)
	}
	err := r.queue.remove(ctx, r.gone)
	if err != nil {
		return err
	}
	r.gone = nil
	err = r.queue.move(ctx, r.due)
	if err != nil {
		return err
	}
	clear(r.due)
	now := time.Now()
	if now.Sub(r.renewed) < r.renewal() {
		return nil
	}
	leases := make(map[member]time.Duration, len(r.held))
	for m := range r.held {
		leases[m] = r.queue.lease
	}
	err = r.queue.move(ctx, leases)
	if err == nil {
		r.renewed = now
	}
	return err
}

// note records that a host was freed, until settle tells Redis.
func (r *run) note(f freed) {
	delete(r.held, f.member)
	switch f.way {
	case wayBack:
		r.due[f.member] = f.after
	case wayGone:
		r.gone = append(r.gone, f.member)
	}
}

// finish waits until all hosts are freed and gives them back.
func (r *run) finish() {
	ctx := context.Background()
	for len(r.held) > 0 {
		timer := time.NewTimer(r.renewal())
		select {
		case f := <-r.freed:
			r.note(f)
		case <-timer.C:
			err := r.settle(ctx)
			if err != nil {
				r.logFailure("renew leases", "", err)
			}
		}
		timer.Stop()
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	err := r.settle(ctx)
	if err == nil {
		err = r.queue.client.ZRem(ctx, r.queue.keys.processes(), r.process).Err()
	}
	if err != nil {
		r.logFailure("give hosts back", "", err)
	}
}

// crawl crawls the pages of a host until it is time to give the host back.
func (r *run) crawl(ctx context.Context, m member) {
	f := freed{member: m, way: wayLost}
	defer func() { r.freed <- f }()
	host, turn := m.split()
	holder := rand.Text()
	began := false
	err := r.persist(ctx, "begin with a host", host, func(ctx context.Context) (err error) {
		began, err = r.queue.begin(ctx, host, turn, holder)
		return err
	})
	switch {
	case err != nil:
		f.way = wayBack
	case !began:
		f.way = wayGone
	default:
		f.way, f.after = r.pages(ctx, host, holder)
	}
}

// pages crawls the pages of a host for a holder. It returns what becomes of the host.
func (r *run) pages(ctx context.Context, host, holder string) (way way, after time.Duration) {
	since := time.Now()
	var ready time.Time // when the host may get its next request
	var e ending
	for {
		take := ctx.Err() == nil && e.outcome != outcomeBack && r.keeps(time.Until(ready), time.Since(since))
		var s step
		err := r.persist(ctx, "record the end of a page", host, func(ctx context.Context) (err error) {
			s, err = r.queue.next(ctx, host, holder, e, take)
			return err
		})
		if err != nil {
			return wayBack, 0
		}
		switch s.word {
		case stepLost:
			return wayLost, 0
		case stepEmpty:
			return wayGone, 0
		case stepPause:
			return wayBack, max(s.wait, time.Until(ready))
		case stepKept:
			return wayBack, max(0, time.Until(ready))
		}
		var wait time.Duration
		e, wait = r.visit(ctx, host, s.page)
		if wait > 0 {
			ready = time.Now().Add(wait)
		}
	}
}

// keeps reports whether the process keeps a host whose next request must wait, and which it has
// crawled for some time.
func (r *run) keeps(wait, crawled time.Duration) bool {
	if r.surplus.Load() > 0 && r.surplus.Add(-1) >= 0 {
		return false
	}
	if r.crowded.Load() {
		return wait < shortHold && crawled < longTurn
	}
	return wait < longHold
}

// visit visits a page and records its links. It returns how the page has ended, and the time until
// the host may get its next request, or 0 if the visit has not changed that.
func (r *run) visit(ctx context.Context, host, text string) (ending, time.Duration) {
	p, err := parsePage(host, text)
	if err != nil {
		r.logFailure("read a page", host, err)
		return ending{page: text, outcome: outcomeFailed, text: failureText(page{url: text}, 0, err)}, 0
	}
	v := &visit{run: r, ctx: ctx, page: p}
	err = v.fetch()
	e := v.ending(err)
	if v.end() != nil {
		e = ending{page: text, outcome: outcomeBack}
	}
	if errors.Is(err, collyrobots.ErrClosed) || errors.Is(err, colly.ErrMaxRequests) {
		r.stop(err)
	}
	return e, v.wait(ctx, err)
}

// logFailure logs a failure of Redis, at most once in ten seconds.
func (r *run) logFailure(action, host string, err error) {
	now := time.Now().Unix()
	last := r.logged.Load()
	if now-last < 10 || !r.logged.CompareAndSwap(last, now) {
		return
	}
	r.queue.log.Error("exchange with Redis failed", "action", action, "host", host, "error", err)
}

// persist calls f until it returns nil. f exchanges something with Redis. When ctx has ended,
// persist tries for some more time, so that Redis gets to know what was done. Then it returns the
// error of f.
func (r *run) persist(ctx context.Context, action, host string, f func(context.Context) error) error {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })()
	pause := 50 * time.Millisecond
	for {
		err := f(last)
		if err == nil || last.Err() != nil {
			return err
		}
		r.logFailure(action, host, err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-last.Done():
			timer.Stop()
			return err
		}
		pause = min(2*pause, 2*time.Second)
	}
}
