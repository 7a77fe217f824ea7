package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// A schedule is how long a crawl takes if something is done about it.
type schedule struct {
	What   string  `json:"what"`
	Totals []total `json:"totals"`
}

// A total is how long a crawl takes if so many hosts are crawled side by side, one after the other
// in the order of the list, each at its own pace.
type total struct {
	SideBySide int          `json:"side_by_side"`
	Time       term.Seconds `json:"time"`
}

// schedules works out how long the crawl of hosts takes, as it is planned first, and then what
// would help.
func (j *job) schedules(hosts []*host) []schedule {
	asPlanned := func(h *host) time.Duration { return time.Duration(h.Time) }
	plan := scheduleOf("as planned", hosts, asPlanned)
	all := []schedule{plan}
	helps := func(s schedule) {
		for i, t := range s.Totals {
			if t.Time < plan.Totals[i].Time/20*19 {
				all = append(all, s)
				return
			}
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(hosts), longestFirst)
	helps(scheduleOf("the longest hosts first", sorted, asPlanned))
	if j.since.IsZero() {
		helps(scheduleOf("only what changed in the last 7 days (Feed.Since)", hosts, func(h *host) time.Duration {
			return j.timeOf(h, h.allowed-h.Recent.Dated+h.Recent.Week, j.max)
		}))
	}
	if len(sorted) > 0 {
		most := 100
		for most*20 <= sorted[0].Pages {
			most *= 10
		}
		helps(scheduleOf(fmt.Sprintf("at most %s pages of a host (Feed.MaxURLs)", term.Count(most)), hosts, func(h *host) time.Duration {
			return j.timeOf(h, h.allowed-h.Old, most)
		}))
	}
	shorter := max(time.Second, j.minDelay)
	helps(scheduleOf(fmt.Sprintf("%v a page where robots.txt asks for more (ask the owners)", shorter), hosts, func(h *host) time.Duration {
		return times(h.Pages, min(time.Duration(h.Delay), shorter))
	}))
	return all
}

// timeOf returns how long so many pages of a host take, but no more than most; 0: all.
func (j *job) timeOf(h *host, pages, most int) time.Duration {
	if most > 0 {
		pages = min(pages, most)
	}
	return times(min(pages, h.Pages), time.Duration(h.Delay))
}

func longestFirst(a, b *host) int { return cmp.Compare(b.Time, a.Time) }

// scheduleOf returns how long hosts take, of which each takes as long as told.
func scheduleOf(what string, hosts []*host, takes func(*host) time.Duration) schedule {
	s := schedule{What: what}
	var each []time.Duration
	for _, h := range hosts {
		if t := takes(h); t > 0 {
			each = append(each, t)
		}
	}
	for _, n := range widths(len(hosts)) {
		s.Totals = append(s.Totals, total{n, term.Seconds(makespan(each, n))})
	}
	return s
}

// widths are the numbers of hosts side by side that are worked out, the last one being all.
func widths(hosts int) (widths []int) {
	for _, n := range []int{1, 2, 5, 10, 20} {
		if n < hosts {
			widths = append(widths, n)
		}
	}
	return append(widths, hosts)
}

// makespan returns when the last of some tasks ends, if n are done side by side and each is begun,
// in their order, when one before it has ended.
func makespan(tasks []time.Duration, n int) time.Duration {
	if len(tasks) == 0 {
		return 0
	}
	if n >= len(tasks) {
		return slices.Max(tasks)
	}
	ends := make([]time.Duration, n)
	for _, t := range tasks {
		first := 0
		for i := range ends {
			if ends[i] < ends[first] {
				first = i
			}
		}
		ends[first] = plus(ends[first], t)
	}
	return slices.Max(ends)
}
