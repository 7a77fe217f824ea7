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

// HostStats converts the Stats of package pace.
func HostStats(s pace.Stats) report.HostStats {
	return report.HostStats{
		Host:         s.Host,
		Group:        s.Group,
		SharedWith:   s.Others,
		GroupWaiting: s.GroupWaiting,
		Requests:     s.Requests,
		Throttled:    s.Throttled,
		Pages:        s.Pages,
		Denied:       s.Denied,
		Failed:       s.Failed,
		Refusals:     s.Refusals,
		Unchanged:    s.Unchanged,
		Waiting:      s.Waiting,
		CrawlDelay:   s.CrawlDelay,
		BackOff:      s.BackOff,
		NotBefore:    s.NotBefore,
		NextStart:    s.NextStart,
		Opens:        s.Opens,
		Closes:       s.Closes,
		Source:       report.DelaySource(s.Cause),
		Line:         s.Line,
		LastStatus:   s.Status,
		Waited:       s.Waited,
		ResponseTime: s.ResponseTime,
		Delay:        s.Delay,
		MinGap:       s.MinGap,
		GapOverDelay: s.GapOverDelay,
	}
}

// AddHost adds the counts and Waited of o to s. GapOverDelay becomes the smaller one of both.
func AddHost(s *report.HostStats, o report.HostStats) {
	s.Requests += o.Requests
	s.Throttled += o.Throttled
	s.Pages += o.Pages
	s.Denied += o.Denied
	s.Failed += o.Failed
	s.Refusals += o.Refusals
	s.PagesSent += o.PagesSent
	s.Unchanged += o.Unchanged
	s.Waiting += o.Waiting
	s.OnDisk += o.OnDisk
	s.Waited += o.Waited
	if s.GapOverDelay == 0 || o.GapOverDelay != 0 && o.GapOverDelay < s.GapOverDelay {
		s.GapOverDelay = o.GapOverDelay
	}
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
	case s.Marks&LeftByBudget != 0:
		return report.EndingBudget
	case onDisk > 0 && closed:
		return report.EndingClosed
	case onDisk > 0:
		return report.EndingCanceled
	}
	return report.EndingDone
}
