package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// A plan is what the program has found out.
type plan struct {
	Agent       string        `json:"agent"`
	Dialect     string        `json:"dialect"`
	MinDelay    term.Seconds  `json:"min_delay"`
	Max         int           `json:"max_pages,omitempty"` // of a host; 0: all
	Since       string        `json:"since,omitempty"`
	Took        term.Seconds  `json:"took"`
	Interrupted bool          `json:"interrupted"`
	Hosts       []*host       `json:"hosts"` // in the order of the list
	Schedules   []schedule    `json:"schedules"`
	Decide      []string      `json:"decide"` // the hosts that take longest
	Advice      []string      `json:"advice"`
	Skipped     []skippedLine `json:"skipped,omitempty"` // lines that name no host
	Repeats     int           `json:"repeats"`           // lines that name a host once more
}

// plan looks at the sites and works out the plan.
func (j *job) plan(ctx context.Context, stderr io.Writer) (*plan, error) {
	l, err := newLooker(j)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	show := newProgress(stderr, len(j.sites))
	hosts := l.all(ctx, show)
	show.close()
	if err := l.close(); err != nil {
		return nil, err
	}
	p := &plan{
		Agent: j.agent, Dialect: j.dialect.String(), MinDelay: term.Seconds(j.minDelay), Max: j.max, Took: term.Seconds(time.Since(began).Round(time.Millisecond)),
		Interrupted: ctx.Err() != nil, Hosts: hosts, Schedules: j.schedules(hosts), Decide: []string{}, Skipped: j.skipped, Repeats: j.repeats,
	}
	if !j.since.IsZero() {
		p.Since = j.since.UTC().Format(time.RFC3339)
	}
	for _, h := range p.deciding() {
		p.Decide = append(p.Decide, h.Host)
	}
	p.Advice = p.advice()
	return p, nil
}

// looked returns how many hosts have answered.
func (p *plan) looked() (n int) {
	for _, h := range p.Hosts {
		if h.Error == "" {
			n++
		}
	}
	return n
}

// deciding returns the hosts that take at least half as long as the longest, that first, no more
// than five.
func (p *plan) deciding() (hosts []*host) {
	for _, h := range slices.SortedStableFunc(slices.Values(p.Hosts), longestFirst) {
		if h.Time > 0 && len(hosts) < 5 && (len(hosts) == 0 || h.Time >= hosts[0].Time/2) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// without returns how long the crawl of all other hosts takes, all side by side.
func (p *plan) without(hosts []*host) (longest time.Duration) {
	for _, h := range p.Hosts {
		if !slices.Contains(hosts, h) {
			longest = max(longest, time.Duration(h.Time))
		}
	}
	return longest
}

// advice is what would help besides what is in the schedules.
func (p *plan) advice() []string {
	advice := []string{}
	say := func(format string, args ...any) { advice = append(advice, fmt.Sprintf(format, args...)) }
	deciding := p.deciding()
	for _, h := range deciding {
		if h.Asked && h.Delay > term.Seconds(time.Second) {
			where := "robots.txt"
			if h.Line > 0 {
				where = fmt.Sprintf("line %d of its robots.txt", h.Line)
			}
			say("%s: ask the owner for less than the %s of %s: at 1s a page it takes %s instead of %s.", h.Host, term.Duration(time.Duration(h.Delay)), where,
				term.Duration(times(h.Pages, time.Second)), term.Duration(time.Duration(h.Time)))
		}
	}
	for _, h := range p.Hosts {
		if h.Asked && h.Unread != "" && h.Delay >= term.Seconds(10*time.Second) {
			say("%s: at the %s that its robots.txt asks for (line %d), every 1,000 pages take %s: ask the owner.", h.Host,
				term.Duration(time.Duration(h.Delay)), h.Line, term.Duration(times(1000, time.Duration(h.Delay))))
		}
	}
	if len(deciding) > 0 && deciding[0].Time > term.Seconds(8*time.Hour) {
		say("%s takes longer than a night: Feed.Resume with a Store goes on where the last run stopped.", deciding[0].Host)
	}
	closed, silent, unread := p.group((*host).isDenied), p.group(func(h *host) bool { return h.Error != "" && h.Error != interrupted }), p.group(func(h *host) bool { return h.Unread != "" && h.Unread != unfinished })
	if len(closed) > 0 {
		say("%s: robots.txt denies the start page, and no sitemap lists another: ask the owner, or leave it out.", some(closed))
	}
	if len(silent) > 0 {
		say("%s: no answer now: look again at another hour, or leave it out.", some(silent))
	}
	if len(unread) > 0 {
		say("%s: not all pages are counted: a longer -look finds more.", some(unread))
	}
	if bare := p.group(func(h *host) bool { return h.Error == "" && h.Listed == 0 && h.Unread == "" && !h.isDenied() }); len(bare) > 0 {
		say("%s: no sitemap lists pages, so how many there are shows only in the crawl; examples/crawl -max bounds it.", some(bare))
	}
	return advice
}

// group returns the names of the hosts of which something holds.
func (p *plan) group(holds func(*host) bool) (names []string) {
	for _, h := range p.Hosts {
		if holds(h) {
			names = append(names, h.Host)
		}
	}
	return names
}

// some names a few hosts.
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
