package feed

import (
	"slices"
	"sync/atomic"
)

// A ticket is a page that was handed on and whose result is not known yet.
type ticket struct {
	feed  *Feed
	ended *atomic.Bool // set when the crawl has ended
	share *share       // the share from which it holds a slot; nil if it holds none
	hash  uint64
	// listed has the places of the page; the keeper guards it. It is empty if no checkpoint needs
	// the result.
	listed []place
	state  atomic.Int32
}

// The states of a ticket. A ticket only moves to later states.
const (
	isOpen int32 = iota
	isSilent
	isSettled
)

// A place is the place of a page in a file.
type place struct {
	checkpoint *checkpoint
	mark       mark
}

// newTicket returns a ticket for a page. It first waits for a slot if the crawl has slots. The
// error is the error of the context.
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

// window returns how many pages may be in flight. With Resume, a part of the window is reserved for
// pages that are done but not recorded.
func (f *Feed) window() int {
	if f.Resume {
		return f.Window - f.keeper.every + 1
	}
	return f.Window
}

// isLoose reports whether the ticket is the common ticket of all pages that hold nothing.
func (t *ticket) isLoose() bool { return t.feed == nil }

// finish records the result of the page. Only the first result counts, except that Done also counts
// after Silent and Unsent.
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

// assumed returns the result of a page for which no result came.
func assumed(r Result) Result {
	if r == Silent {
		return Failed
	}
	return Skipped
}

// settle records the result of the page and gives back what it holds.
func (t *ticket) settle(r Result) {
	if t.feed.Resume && t.feed.keeper.settle(t, r) {
		t.feed.count(GivenUp)
	}
	if t.share != nil {
		t.share.leave()
	}
}

// has reports whether the page is known to be at that place. The caller must hold the mutex of the
// keeper.
func (t *ticket) has(c *checkpoint, m mark) bool { return slices.Contains(t.listed, place{c, m}) }
