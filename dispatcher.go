package collyrobots

import (
	"context"
	"errors"
	"io"

	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A dispatcher submits the pages of a urlstore.Store to their collectors when their turn comes. It runs
// from the first page that a collector requests until no page is left, and Collector.Wait waits for
// it.
type dispatcher struct {
	*frontier
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}    // closed when it has ended
	held map[*hooks]*hold // the collectors whose Wait waits; guarded by frontier.mu
}

// A hold makes Collector.Wait wait.
type hold struct {
	release func()
	forget  func() bool // ends the watch of the collector's Context
}

// end ends the hold.
func (d *hold) end() {
	d.forget()
	d.release()
}

// startDispatcher starts the first dispatcher. It is called in Visit when a persistent storage of Colly
// reports that the URL was visited in an earlier run.
func (f *frontier) startDispatcher() {
	if f.begun.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dispatcher != nil || f.stopped || f.broken {
		return
	}
	f.start()
	if len(f.dispatcher.held) == 0 {
		f.dispatcher.stop() // the Context of each collector has ended
	}
}

// wake makes sure that a dispatcher runs and that Wait of a collector waits for it. It is called in
// a hook of a request.
func (f *frontier) wake(h *hooks) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recorded++
	if f.stopped || f.broken || h.c.Context.Err() != nil {
		return
	}
	if f.dispatcher == nil {
		f.start()
	}
	f.dispatcher.hold(h)
}

// start starts a dispatcher. It holds all collectors, because pages of an earlier run may wait for
// each of them. If an earlier dispatcher has ended because no page was left, it holds none: Wait of
// a collector may be about to return, and a WaitGroup panics if it is used again before that. f.mu
// is held.
func (f *frontier) start() {
	f.begun.Store(true)
	d := &dispatcher{frontier: f, done: make(chan struct{}), held: make(map[*hooks]*hold)}
	d.ctx, d.stop = context.WithCancel(context.Background())
	if !f.drained {
		d.holdAll()
	}
	f.drained = false
	f.dispatcher = d
	go d.run()
}

// holdAll makes Wait of each collector wait whose Context has not ended. f.mu is held.
func (d *dispatcher) holdAll() {
	for _, w := range d.collectors {
		if h := w.Value(); h != nil && h.c.Context.Err() == nil {
			d.hold(h)
		}
	}
}

// hold makes Wait of a collector wait until the dispatcher or the collector's Context ends. f.mu is
// held.
func (d *dispatcher) hold(h *hooks) {
	if d.held[h] != nil {
		return
	}
	d.held[h] = &hold{
		release: h.handle.Hold(),
		forget:  context.AfterFunc(h.c.Context, func() { d.drop(h) }),
	}
}

// drop ends the hold of a collector whose Context has ended. After the last one the dispatcher
// ends.
func (d *dispatcher) drop(h *hooks) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held[h]
	if held == nil {
		return
	}
	delete(d.held, h)
	held.end()
	if len(d.held) == 0 {
		d.stop()
	}
}

// run submits pages until no page is left, or the dispatcher is stopped.
func (d *dispatcher) run() {
	defer close(d.done)
	defer d.stop()
	for {
		seen := d.wakes()
		p, err := d.store.Next(d.ctx)
		err = typednil.Error(err)
		switch {
		case err == nil:
			d.submit(p)
		case errors.Is(err, io.EOF):
			if d.leave(seen) {
				return
			}
		default:
			d.abandon(err)
			return
		}
	}
}

// wakes returns how often wake was called.
func (f *frontier) wakes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.recorded
}

// leave ends the dispatcher after Next has found no page, unless wake was called more than seen
// times, so that there may be new pages. It reports whether it has ended the dispatcher.
func (d *dispatcher) leave(seen int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.recorded != seen {
		return false
	}
	d.drained = true
	d.leaveLocked()
	return true
}

// leaveLocked ends the dispatcher. d.mu is held.
func (d *dispatcher) leaveLocked() {
	d.dispatcher = nil
	for _, held := range d.held {
		held.end()
	}
	d.held = nil
}

// abandon ends the dispatcher after an error of Next. If the dispatcher was not stopped, the
// urlstore.Store has failed, and no more pages are passed to it, because they would never come back.
func (d *dispatcher) abandon(err error) {
	stopped := d.ctx.Err() != nil
	if !stopped {
		d.fail(nil, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = d.broken || !stopped
	d.leaveLocked()
}

// submit gives a page to its collector. A page that the collector cannot take waits for the next
// run.
func (d *dispatcher) submit(p *urlstore.Page) {
	h := d.collector(p.Collector)
	switch {
	case d.ctx.Err() != nil:
		d.passResult(p, urlstore.Returned)
	case h == nil:
		d.frontier.judge.Report.Warn("a page waits for a collector that is not attached: attach the collectors in the same order in each run", "url", redact.Text(p.URL), "count", p.Collector+1)
		d.passResult(p, urlstore.Postponed)
	case !h.c.Async, h.c.Context.Err() != nil:
		d.passResult(p, urlstore.Postponed)
	default:
		d.request(h, p)
	}
}

// request makes a collector request a page.
func (d *dispatcher) request(h *hooks, p *urlstore.Page) {
	r, err := h.recording.requestOf(p)
	if err != nil {
		d.passResult(p, urlstore.Failed)
		return
	}
	page := d.handOut(p, &storedPage{frontier: d.frontier, page: p})
	err = h.recording.submit(r, page)
	if err != nil && !page.IsClaimed() {
		o := outcomeOf(err)
		page.EndNow(o.ofSubmission())
	}
}
