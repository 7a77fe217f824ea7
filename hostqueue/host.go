package hostqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

const (
	longHold   = 10 * time.Second       // a host that must wait for longer is given back
	shortHold  = 500 * time.Millisecond // the same if other hosts wait for a place in the process
	longTurn   = 10 * time.Second       // how long a process keeps a host if other hosts wait for a place
	unsentWait = time.Second            // the pause of a host after a page that could not be sent
)

// crawl crawls the pages of a host until it is time to give the host back.
func (r *run) crawl(ctx context.Context, m member, h *hold) {
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
		f.way, f.after = r.pages(ctx, host, holder, h)
	}
}

// pages crawls the pages of a host for a holder. It returns what becomes of the host.
func (r *run) pages(ctx context.Context, host, holder string, h *hold) (way way, after time.Duration) {
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
		e, wait = r.visit(ctx, host, s.page, h)
		if wait > 0 {
			ready = time.Now().Add(wait)
		}
	}
}

// keeps reports whether the process keeps a host. wait is the time until the next request of the
// host may start, and crawled is how long the process has crawled it.
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
func (r *run) visit(ctx context.Context, host, text string, h *hold) (ending, time.Duration) {
	p, err := parsePage(host, text)
	if err != nil {
		r.logFailure("read a page", host, err)
		return ending{page: text, outcome: outcomeFailed, text: failureText(page{url: text}, 0, err)}, 0
	}
	v := &visit{run: r, ctx: ctx, page: p, hold: h}
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

// persist calls f, which sends commands to Redis, until it returns nil. When ctx has ended, persist
// continues for endLimit, so that the pages that were fetched are recorded, and then returns the
// error of f.
func (r *run) persist(ctx context.Context, action, host string, f func(context.Context) error) error {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(endLimit, cancel) })()
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
