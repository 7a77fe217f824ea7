package collyrobots

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/report"
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
func markDenied(host *pace.Host, why report.Reason) {
	switch why {
	case report.ReasonBudget:
		host.Mark(leftByBudget)
	case report.ReasonRefused:
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
func (c *unsentCounts) statistics() map[report.Ending]int {
	counts := make(map[report.Ending]int)
	if n := c.closed.Load(); n > 0 {
		counts[report.EndingClosed] = int(n)
	}
	if n := c.cancelled.Load(); n > 0 {
		counts[report.EndingCancelled] = int(n)
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

// endingOf returns the Ending of a host. onDisk is the number of its pages that wait in a urlstore.Store.
// paused reports whether these pages are not handed out, because the crawl has ended. A host that
// has reached a limit ended because of the limit: its pages on disk wait for a later run.
func endingOf(s pace.Stats, onDisk int, closed, paused bool) report.Ending {
	switch {
	case s.Busy, s.Requests+s.Pages+s.Denied == 0:
		return ""
	case s.Marks&leftByClose != 0:
		return report.EndingClosed
	case s.Marks&leftByCancel != 0:
		return report.EndingCancelled
	case onDisk > 0 && !closed && !paused:
		return ""
	case s.Marks&leftByRefusals != 0:
		return report.EndingRefused
	case s.Marks&leftByBudget != 0:
		return report.EndingBudget
	case onDisk > 0 && closed:
		return report.EndingClosed
	case onDisk > 0:
		return report.EndingCancelled
	}
	return report.EndingDone
}
