package reporter

import (
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/report"
)

// CountEnding counts a host by its Ending. It ignores a host that has not ended.
func CountEnding(s *report.Stats, e report.Ending) {
	if e == "" {
		return
	}
	if s.Ended == nil {
		s.Ended = make(map[report.Ending]int)
	}
	s.Ended[e]++
}

// RateStats returns the waits for the total rate at now, or nil if there is none.
func RateStats(now time.Time, hosts *pace.Hosts) *report.RateStats {
	waits, ok := hosts.RateWaits(now)
	if !ok {
		return nil
	}
	return &report.RateStats{Waiting: waits.Waiting, Waited: waits.Waited}
}

// AddHost adds the counts of o to s.
func AddHost(s *report.HostStats, o report.HostStats) {
	s.HostCounts.Add(o.HostCounts)
	s.PagesSent += o.PagesSent
	s.Waiting += o.Waiting
	s.OnDisk += o.OnDisk
}

// MarkEnded records that a page of a host was not sent or not finished because the Plugin was closed
// or, if closed is false, because the context of the page has ended.
func MarkEnded(host *pace.Host, closed bool) {
	if closed {
		host.Mark(LeftByClose)
		return
	}
	host.Mark(LeftByCancel)
}

// UnsentCounts counts the pages that waited for their host when the crawl ended.
type UnsentCounts struct{ canceled, closed atomic.Int64 }

// Add counts a page that is not sent because the Plugin was closed or, if closed is false, because
// the context of the page has ended.
func (c *UnsentCounts) Add(closed bool) {
	if closed {
		c.closed.Add(1)
		return
	}
	c.canceled.Add(1)
}

// Statistics returns the counts for Stats.NotSent, or nil if all of them are 0.
func (c *UnsentCounts) Statistics() map[report.Ending]int {
	counts := make(map[report.Ending]int)
	if n := c.closed.Load(); n > 0 {
		counts[report.EndingClosed] = int(n)
	}
	if n := c.canceled.Load(); n > 0 {
		counts[report.EndingCanceled] = int(n)
	}
	if len(counts) == 0 {
		return nil
	}
	return counts
}

// EndingOf returns the Ending of a host. onDisk is the number of its pages that wait in a urlstore.Store.
// paused reports whether these pages are not handed out, because the crawl has ended. A host that
// has reached a limit ended because of the limit: its pages on disk wait for a later run.
func EndingOf(s pace.Stats, onDisk int, closed, paused bool) report.Ending {
	switch {
	case s.Busy, s.Requests+s.Pages+s.Denied == 0:
		return ""
	case s.Marks&LeftByClose != 0:
		return report.EndingClosed
	case s.Marks&LeftByCancel != 0:
		return report.EndingCanceled
	case onDisk > 0 && !closed && !paused:
		return ""
	case s.Marks&LeftByRefusals != 0:
		return report.EndingRefused
	case s.Marks&LeftByThrottle != 0:
		return report.EndingThrottled
	case s.Marks&LeftByBudget != 0:
		return report.EndingBudget
	case onDisk > 0 && closed:
		return report.EndingClosed
	case onDisk > 0:
		return report.EndingCanceled
	}
	return report.EndingDone
}
