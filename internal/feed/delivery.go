package feed

import (
	"sync/atomic"

	"github.com/collyrobots/collyrobots/internal/feed/resume"
)

// A delivery is a page that was handed on and that holds a slot or a ticket until it has a result.
type delivery struct {
	feed   *Feed
	stop   *atomic.Bool   // is set if the result is Unfinished
	share  *share         // the share whose slot the page holds; nil if it holds none
	ticket *resume.Ticket // nil without Resume
	state  atomic.Int32
}

// The states of a delivery. A delivery only moves to later states.
const (
	isOpen int32 = iota
	isSilent
	isSettled
)

// finish records the result of the page. Only the first result counts, except that Done also counts
// after Silent and Unsent.
func (d *delivery) finish(r Result) {
	if r == Silent || r == Unsent {
		if d.state.CompareAndSwap(isOpen, isSilent) {
			d.settle(r)
		}
		return
	}
	before := d.state.Swap(isSettled)
	if before != isSettled && r == Unfinished {
		d.stop.Store(true)
	}
	switch {
	case before == isOpen:
		d.settle(r)
	case before == isSilent && r == Done && d.ticket != nil:
		d.ticket.Correct()
	}
}

// settle records the result of the page, and then gives back its slot. The page keeps the slot
// while the result is written to the store, so that few results are lost in a crash.
func (d *delivery) settle(r Result) {
	if d.ticket != nil && d.ticket.Settle(r.recorded()) {
		d.feed.count(GivenUp)
	}
	if d.share != nil {
		d.share.leave()
	}
}
