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
	mostIdle  = 100 * time.Millisecond // the longest time until a process with free places looks for hosts
	mostRenew = 2 * time.Second        // the longest time between two renewals of leases
	endLimit  = 5 * time.Second        // how long Run tries to write its state to Redis when it ends
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
	held    map[member]*hold         // the hosts that this process crawls
	due     map[member]time.Duration // the hosts that were freed, and in how long they are due
	gone    []member                 // the hosts that were freed and leave the list
	share   int                      // how many hosts this process may crawl
	renewed time.Time                // when the leases were last renewed

	logged  atomic.Int64 // when a failure of Redis was last logged, in Unix time
	crowded atomic.Bool  // other hosts wait for a place in this process
	surplus atomic.Int32 // the number of hosts to give back, so that other processes get their share
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

// Run crawls until all pages of the crawl are done, including those of other processes, and returns
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
	c.OnRequestHeaders(checkLease) // after that of the plugin, which waits
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
		held:      make(map[member]*hold),
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
	until := time.Now().Add(r.queue.lease)
	t, err := r.queue.take(ctx, r.process, r.places())
	switch {
	case err != nil:
		return 0, err
	case t.listed == 0:
		return 0, errEnd
	}
	for _, m := range t.hosts {
		if r.held[m] != nil {
			continue // its lease has ended, and no other process has taken it; settle renews the new one
		}
		h := newHold(until)
		r.held[m] = h
		go r.crawl(ctx, m, h)
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

// settle writes to Redis which hosts were freed. It also renews the leases of the others, unless
// that was done recently.
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
	if err != nil {
		return err
	}
	r.renewed = now
	for _, h := range r.held {
		h.renew(now.Add(r.queue.lease))
	}
	return nil
}

// note records that a host was freed, until settle writes this to Redis.
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
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	err := r.settle(ctx)
	if err == nil {
		err = r.queue.client.ZRem(ctx, r.queue.keys.processes(), r.process).Err()
	}
	if err != nil {
		r.logFailure("give hosts back", "", err)
	}
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
