package feed

import (
	"slices"
	"sync/atomic"
)

// A ticket is a page that was handed on, until it is known what became of it.
type ticket struct {
	feed   *Feed
	ended  *atomic.Bool // set if the crawl has ended
	share  *share       // of which it holds a slot; nil: none
	hash   uint64
	listed []place // in which files; of the keeper. None: no checkpoint has to know of it
	state  atomic.Int32
}

// The states of a ticket, each of which only leads to those below it.
const (
	isOpen int32 = iota
	isSilent
	isSettled
)

// A place is that of a page in a file.
type place struct {
	checkpoint *checkpoint
	mark       mark
}

// newTicket returns a ticket for a page, when there is a slot for it. The error is that of the
// context.
func (w *walk) newTicket(p *page) (*ticket, error) {
	slots := w.slots()
	if slots == nil && p.check == nil {
		return w.loose, nil
	}
	t := p.ticket
	if t == nil {
		t = &ticket{feed: w.Feed, ended: w.stop, hash: p.hash}
	}
	if slots != nil {
		if w.share == nil || w.share.slots != slots {
			w.share = &share{slots: slots}
		}
		if err := w.share.enter(w.ctx, w.window()); err != nil {
			return nil, err
		}
		t.share = w.share
	}
	return t, nil
}

// window is how many pages may be in flight. With Resume, some of the window is for pages that are
// done but not written down.
func (f *Feed) window() int {
	if f.Resume {
		return f.Window - f.keeper.every + 1
	}
	return f.Window
}

// isLoose reports whether the ticket is that of all pages which hold nothing.
func (t *ticket) isLoose() bool { return t.feed == nil }

// finish notes the result of the page. The first one counts, but Done also counts after Silent and
// Unsent.
func (t *ticket) finish(r Result) {
	if t.isLoose() {
		if r == Unfinished {
			t.ended.Store(true)
		}
		return
	}
	if r == Silent || r == Unsent {
		if t.state.CompareAndSwap(isOpen, isSilent) {
			t.settle(assumed(r))
		}
		return
	}
	before := t.state.Swap(isSettled)
	if before != isSettled && r == Unfinished {
		t.ended.Store(true)
	}
	switch {
	case before == isOpen:
		t.settle(r)
	case before == isSilent && r == Done && t.feed.Resume:
		t.feed.keeper.correct(t)
	}
}

// assumed returns the result of a page of which nothing is heard.
func assumed(r Result) Result {
	if r == Silent {
		return Failed
	}
	return Skipped
}

// settle writes down what became of the page, and gives back what it holds.
func (t *ticket) settle(r Result) {
	if t.feed.Resume && t.feed.keeper.settle(t, r) {
		t.feed.count(GivenUp)
	}
	if t.share != nil {
		t.share.leave()
	}
}

// has reports whether the page is known to be at that place. The keeper's mutex is held.
func (t *ticket) has(c *checkpoint, m mark) bool { return slices.Contains(t.listed, place{c, m}) }
