package judge

import (
	"sync"
	"sync/atomic"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// A decisions counts the decisions by their reasons.
type decisions struct {
	known  map[report.Reason]*atomic.Int64 // by each Reason that newDecisions names; not changed after it
	others sync.Map                        // *atomic.Int64 by each other Reason
}

func newDecisions() *decisions {
	d := &decisions{known: make(map[report.Reason]*atomic.Int64)}
	for _, r := range report.Reasons() {
		d.known[r] = new(atomic.Int64)
	}
	return d
}

// add counts a decision.
func (d *decisions) add(r report.Reason) {
	count := d.known[r]
	if count == nil {
		other, _ := d.others.LoadOrStore(r, new(atomic.Int64))
		count = other.(*atomic.Int64)
	}
	count.Add(1)
}

// counts returns the counts that are not zero.
func (d *decisions) counts() map[report.Reason]int {
	counts := make(map[report.Reason]int)
	for r, count := range d.known {
		if n := count.Load(); n > 0 {
			counts[r] = int(n)
		}
	}
	for r, count := range d.others.Range {
		counts[r.(report.Reason)] = int(count.(*atomic.Int64).Load())
	}
	return counts
}

// markDenied records that a page of a host was denied for a reason.
func markDenied(host *pace.Host, why report.Reason) {
	switch why {
	case report.ReasonBudget:
		host.Mark(reporter.LeftByBudget)
	case report.ReasonRefused:
		host.Mark(reporter.LeftByRefusals)
	}
}
