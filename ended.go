package collyrobots

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// An Ending says why a host gets no more requests. It is a stable short code. It is "" if the host
// still has pages that wait or are in flight, or has had none.
type Ending string

// If several of these apply to a host, its Ending is the last one in this list.
const (
	// EndingDone means that all pages that the program has requested so far are done, or are denied
	// for a reason other than MaxPages and StopRefused. The plugin cannot know whether the program
	// will request more pages.
	EndingDone Ending = "done"
	// EndingBudget means that pages were not sent because of MaxPages.
	EndingBudget Ending = "budget"
	// EndingRefused means that pages were not sent because of StopRefused. Pages of the host may
	// have been sent since then.
	EndingRefused Ending = "refused"
	// EndingCancelled means that the context of a page ended before the page was done. It also means
	// that pages of a host without EndingBudget and EndingRefused were left in a URLStore.
	EndingCancelled Ending = "cancelled"
	// EndingClosed means that pages were not sent because of Plugin.Close. The pages that were left
	// in a URLStore count only for a host without EndingBudget and EndingRefused.
	EndingClosed Ending = "closed"
)

// Bits of pace.Host.Mark that say why pages of a host were not sent.
const (
	leftByBudget = 1 << (iota + 8)
	leftByRefusals
	leftByCancel
	leftByClose
)

// closedAt returns the time of the first Close, or zero before it.
func (p *Plugin) closedAt() time.Time {
	if at := p.ended.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// markDenied records that a page of a host was denied for a reason.
func markDenied(host *pace.Host, why Reason) {
	switch why {
	case ReasonBudget:
		host.Mark(leftByBudget)
	case ReasonRefused:
		host.Mark(leftByRefusals)
	}
}

// markEnded records that a page of a host was not sent or not finished because of err: the Plugin
// was closed, or the context of the page has ended.
func markEnded(host *pace.Host, err error) {
	if errors.Is(err, ErrClosed) {
		host.Mark(leftByClose)
		return
	}
	host.Mark(leftByCancel)
}

// unsentCounts counts the pages that waited for their host when the crawl ended.
type unsentCounts struct{ cancelled, closed atomic.Int64 }

// add counts a page that is not sent because of err.
func (c *unsentCounts) add(err error) {
	if errors.Is(err, ErrClosed) {
		c.closed.Add(1)
		return
	}
	c.cancelled.Add(1)
}

// statistics returns the counts for Stats.NotSent, or nil if all of them are 0.
func (c *unsentCounts) statistics() map[Ending]int {
	counts := make(map[Ending]int)
	if n := c.closed.Load(); n > 0 {
		counts[EndingClosed] = int(n)
	}
	if n := c.cancelled.Load(); n > 0 {
		counts[EndingCancelled] = int(n)
	}
	if len(counts) == 0 {
		return nil
	}
	return counts
}

// isCancelled reports whether the context of q has ended. If the request is that of an http.Client,
// an expired deadline does not count: it is often the timeout of the client, and does not affect
// other requests.
func (q *request) isCancelled() bool {
	if q.ctx == nil || q.ctx.Err() == nil {
		return false
	}
	return q.entry != nil || q.ctx.Err() == context.Canceled
}

// endingOf returns the Ending of a host. onDisk is the number of its pages that wait in a URLStore.
// paused reports whether these pages are not handed out, because the crawl has ended. A host that
// has reached a limit ended because of the limit: its pages on disk wait for a later run.
func endingOf(s pace.Stats, onDisk int, closed, paused bool) Ending {
	switch {
	case s.Busy, s.Requests+s.Pages+s.Denied == 0:
		return ""
	case s.Marks&leftByClose != 0:
		return EndingClosed
	case s.Marks&leftByCancel != 0:
		return EndingCancelled
	case onDisk > 0 && !closed && !paused:
		return ""
	case s.Marks&leftByRefusals != 0:
		return EndingRefused
	case s.Marks&leftByBudget != 0:
		return EndingBudget
	case onDisk > 0 && closed:
		return EndingClosed
	case onDisk > 0:
		return EndingCancelled
	}
	return EndingDone
}
