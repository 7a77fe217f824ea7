package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// A schedule has the times that a crawl takes with a change to the plan.
type schedule struct {
	What   string  `json:"what"` // the change
	Totals []total `json:"totals"`
}

// A total is the time that a crawl takes if SideBySide hosts are crawled in parallel. When one of
// them is done, the next one in the order of the list begins.
type total struct {
	SideBySide int          `json:"side_by_side"`
	Time       term.Seconds `json:"time"`
}

// schedules returns the schedule of the plan, and then the schedules of changes that make the crawl
// shorter.
func (j *job) schedules(hosts []*host) []schedule {
	asPlanned := func(h *host) work { return work{h.Pages, time.Duration(h.Delay)} }
	plan := j.scheduleOf("as planned", hosts, asPlanned)
	all := []schedule{plan}
	addIfShorter := func(s schedule) { // by at least 5 %
		for i, t := range s.Totals {
			if t.Time < plan.Totals[i].Time/20*19 {
				all = append(all, s)
				return
			}
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(hosts), longestFirst)
	addIfShorter(j.scheduleOf("longest hosts first", sorted, asPlanned))
	addIfShorter(j.scheduleOf("only pages changed in the last 7 days (Feed.Since)", hosts, func(h *host) work {
		return h.workOn(h.allowed-h.Old, j.max)
	}))
	if len(sorted) > 0 {
		most := 100
		for most*20 <= sorted[0].Pages {
			most *= 10
		}
		addIfShorter(j.scheduleOf(fmt.Sprintf("at most %s pages per host (MaxPagesPerHost)", term.Count(most)), hosts, func(h *host) work {
			return h.workOn(h.allowed, most)
		}))
	}
	shorter := max(time.Second, j.pace.Delay)
	addIfShorter(j.scheduleOf(fmt.Sprintf("delays of at most %v (ask the owners)", shorter), hosts, func(h *host) work {
		return work{h.Pages, min(time.Duration(h.Delay), shorter)}
	}))
	return all
}

// A work is what a host has to do in a schedule.
type work struct {
	pages int
	delay time.Duration
}

// workOn returns the work for the given number of pages of a host, but at most for most pages. If most
// is 0, it means no limit.
func (h *host) workOn(pages, most int) work {
	if most > 0 {
		pages = min(pages, most)
	}
	return work{min(pages, h.Pages), time.Duration(h.Delay)}
}

func longestFirst(a, b *host) int { return cmp.Compare(b.Time, a.Time) }

// scheduleOf returns the schedule of hosts if workOf returns the work of a host. The pages of all hosts
// together take at least as long as -max-rate allows.
func (j *job) scheduleOf(what string, hosts []*host, workOf func(*host) work) schedule {
	s := schedule{What: what}
	pages := 0
	var times []time.Duration // for each host without a group, and for each group
	groups := make(map[string]int)
	for _, h := range hosts {
		w := workOf(h)
		t := j.timeFor(w.pages, w.delay)
		pages += max(w.pages, 0)
		i, known := groups[h.Group]
		switch {
		case t <= 0:
		case known:
			times[i] = plus(times[i], t)
		default:
			if h.Group != "" {
				groups[h.Group] = len(times)
			}
			times = append(times, t)
		}
	}
	for _, n := range widths(len(hosts)) {
		busy := max(makespan(times, n), j.leastTime(pages))
		s.Totals = append(s.Totals, total{SideBySide: n, Time: term.Seconds(j.lasts(busy))})
	}
	return s
}

// leastTime returns the time for pages of all hosts together with -max-rate, or 0 without it.
func (j *job) leastTime(pages int) time.Duration {
	if j.pace.MaxRate == 0 {
		return 0
	}
	seconds := float64(pages) / j.pace.MaxRate
	return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/2))
}

// widths returns the numbers of hosts in parallel that a schedule has totals for. The last one is
// the number of all hosts.
func widths(hosts int) (widths []int) {
	for _, n := range []int{1, 2, 5, 10, 20} {
		if n < hosts {
			widths = append(widths, n)
		}
	}
	return append(widths, hosts)
}

// makespan returns the time that n workers take for the tasks. A worker that is done begins the
// next task in their order.
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
