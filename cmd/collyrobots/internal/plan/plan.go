package plan

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// A plan is the output of the program.
type plan struct {
	Agent       string       `json:"agent"`
	Dialect     string       `json:"dialect"`
	MinDelay    term.Seconds `json:"min_delay"`
	Jitter      float64      `json:"jitter,omitempty"`
	MaxRate     float64      `json:"max_rate,omitempty"`           // in requests per second; 0 means no limit
	Max         int          `json:"max_pages_per_host,omitempty"` // the maximum number of pages per host; 0 means all
	Hours       string       `json:"hours,omitempty"`              // the hours of -hours with their time zone
	Took        term.Seconds `json:"took"`                         // the time for the checks
	Interrupted bool         `json:"interrupted"`
	Hosts       []*host      `json:"hosts"` // in the order of the list
	Schedules   []schedule   `json:"schedules"`
	Unknown     int          `json:"unknown"` // the hosts with pages that are not known; if there are some, all times are lower bounds
	Decide      []string     `json:"decide"`  // the hosts that take longest
	Advice      []string     `json:"advice"`

	job *job
}

// plan checks the sites and makes the plan.
func (j *job) plan(ctx context.Context, stderr io.Writer) (*plan, error) {
	c, err := newChecker(j)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	show := newProgress(stderr, len(j.sites))
	hosts := c.all(ctx, show)
	show.close()
	c.group(hosts)
	if err := c.close(); err != nil {
		return nil, err
	}
	p := &plan{
		Agent:       j.agent,
		Dialect:     j.pace.Dialect.String(),
		MinDelay:    term.Seconds(j.pace.Delay),
		Jitter:      j.pace.Jitter,
		MaxRate:     j.pace.MaxRate,
		Max:         j.max,
		Hours:       j.hours.String(),
		job:         j,
		Took:        term.Seconds(time.Since(began).Round(time.Millisecond)),
		Interrupted: ctx.Err() != nil,
		Hosts:       hosts,
		Schedules:   j.schedules(hosts),
		Unknown:     countUnknown(hosts),
		Decide:      []string{},
	}
	for _, h := range p.deciding() {
		p.Decide = append(p.Decide, h.Host)
	}
	p.Advice = p.advice()
	return p, nil
}

// answered returns the number of hosts that have answered.
func (p *plan) answered() (n int) {
	for _, h := range p.Hosts {
		if h.Error == "" {
			n++
		}
	}
	return n
}

// countUnknown returns the number of hosts with pages that are not known.
func countUnknown(hosts []*host) (n int) {
	for _, h := range hosts {
		if h.isUnknown() {
			n++
		}
	}
	return n
}

// deciding returns at most five hosts: the one that takes longest, and those that take at least
// half of its time.
func (p *plan) deciding() (hosts []*host) {
	for _, h := range slices.SortedStableFunc(slices.Values(p.Hosts), longestFirst) {
		if h.Time > 0 && len(hosts) < 5 && (len(hosts) == 0 || h.Time >= hosts[0].Time/2) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// without returns how long the crawl of all hosts except the given ones takes in parallel.
func (p *plan) without(hosts []*host) (longest time.Duration) {
	for _, h := range p.Hosts {
		if !slices.Contains(hosts, h) {
			longest = max(longest, time.Duration(h.Time))
		}
	}
	return longest
}

// advice returns suggestions that are not in the schedules. It never returns nil, so that the JSON
// is a list.
func (p *plan) advice() []string {
	advice := append([]string{}, p.delayAdvice()...)
	return append(advice, p.hostAdvice()...)
}

// delayAdvice returns suggestions for hosts that take long.
func (p *plan) delayAdvice() (advice []string) {
	deciding := p.deciding()
	for _, h := range deciding {
		if h.Asked && h.Delay > term.Seconds(time.Second) {
			advice = append(advice, fmt.Sprintf("%s: ask the owner for a shorter delay than %s (%s): with 1s per page it takes %s instead of %s.",
				h.Host, duration(h.Delay), h.delaySource(), term.Duration(p.job.lasts(p.job.timeFor(h.Pages, time.Second))), duration(h.Time)))
		}
	}
	for _, h := range p.Hosts {
		if h.Asked && h.Unread != "" && h.Delay >= term.Seconds(10*time.Second) {
			advice = append(advice, fmt.Sprintf("%s: with its delay of %s (%s), 1,000 pages take %s; ask the owner for a shorter delay.",
				h.Host, duration(h.Delay), h.delaySource(), term.Duration(p.job.lasts(p.job.timeFor(1000, time.Duration(h.Delay))))))
		}
	}
	if len(deciding) > 0 && deciding[0].Time > term.Seconds(8*time.Hour) {
		advice = append(advice, deciding[0].Host+" takes longer than 8 hours: use Feed.Resume and a Store to continue after an interruption.")
	}
	return advice
}

// hostAdvice returns suggestions for hosts whose pages are denied or not known.
func (p *plan) hostAdvice() (advice []string) {
	add := func(text string, concerns func(*host) bool) {
		var names []string
		for _, h := range p.Hosts {
			if concerns(h) {
				names = append(names, h.Host)
			}
		}
		if len(names) > 0 {
			advice = append(advice, some(names)+": "+text)
		}
	}
	add("robots.txt denies the start page, and no sitemap lists an allowed page; ask the owner, or leave the host out.",
		(*host).isDenied)
	add("no response; try again later, or leave the host out.",
		func(h *host) bool { return h.Error != "" && h.Error != interrupted })
	add("not all pages were counted; use a longer -look to count more.",
		func(h *host) bool { return h.Unread != "" && h.Unread != unfinished })
	add("no sitemap lists pages, so their number is not known before the crawl; collyrobots crawl -max limits it.",
		func(h *host) bool { return h.Error == "" && !h.isCounted() && h.Unread == "" && !h.isDenied() })
	return advice
}

// duration formats a duration of the plan.
func duration(d term.Seconds) string { return term.Duration(time.Duration(d)) }

// some returns the names of a few hosts, and the number of the others.
func some(names []string) string {
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n == 2:
		return names[0] + " and " + names[1]
	default:
		return fmt.Sprintf("%s and %s more hosts", names[0], term.Count(n-1))
	}
}
