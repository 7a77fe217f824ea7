package view

import (
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A frontierState describes the pages in the urlstore.Store of the option Frontier.
type frontierState struct {
	urlstore.Stats
	Growth *float64 `json:"growth,omitempty"` // growth of Waiting in pages per minute; nil if it is not known yet
}

// frontierOf returns the state of a urlstore.Store, or nil if there is none or if it has only handed out
// pages. Pages do not wait in such a store.
func frontierOf(s *urlstore.Stats, growth *float64) *frontierState {
	if s == nil || s.Waiting+s.Done+s.Denied+s.Failed+s.OverBudget+s.Unrecorded == 0 {
		return nil
	}
	return &frontierState{Stats: *s, Growth: growth}
}

// waiting returns the number of pages of a host that wait, in the process and in the urlstore.Store.
func waiting(host *report.HostStats) int { return host.Waiting + host.OnDisk }

// Waiting returns the number of pages of the host that wait.
func (h hostState) Waiting() int { return waiting(&h.Stats) }

// growthSpan is the time over which the growth is measured.
const growthSpan = time.Minute

// A growth measures how a number grows. The zero growth has no measurements.
type growth struct {
	// mu protects marks.
	mu    sync.Mutex
	marks []mark // of the last growthSpan, and one that is older
}

// A mark is a measured number.
type mark struct {
	at time.Time
	n  int
}

// add records the number at a time, and returns by how much it has grown per minute. The result is
// nil if the measurements cover less than two seconds.
func (g *growth) add(now time.Time, n int) *float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if last := len(g.marks) - 1; last < 0 || now.Sub(g.marks[last].at) >= time.Second {
		g.marks = append(g.marks, mark{at: now, n: n})
	}
	for len(g.marks) > 1 && now.Sub(g.marks[1].at) >= growthSpan {
		g.marks = g.marks[1:]
	}
	first := g.marks[0]
	passed := now.Sub(first.at)
	if passed < 2*time.Second {
		return nil
	}
	perMinute := float64(n-first.n) / passed.Minutes()
	return &perMinute
}
