package plan

import (
	"fmt"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

// A group has the hosts that share one pace, as with the option PaceBy.
type group struct {
	hosts []*host
	pages int
	delay term.Seconds // the longest of its hosts
	by    *host        // a host with this delay
}

// group finds the groups of the hosts that were checked, and computes their times again, because the
// longest delay of a group applies to all of its hosts.
func (c *checker) group(hosts []*host) {
	names := make(map[string]string)
	for _, s := range c.robots.Stats().Hosts {
		names[s.Host] = s.Group
	}
	groups := make(map[string]*group)
	for _, h := range hosts {
		name := names[h.hostOfURL()]
		if name == "" || h.Error != "" {
			continue
		}
		if groups[name] == nil {
			groups[name] = new(group)
		}
		groups[name].add(h)
	}
	for name, g := range groups {
		if len(g.hosts) > 1 {
			g.apply(name, c.job)
		}
	}
}

// hostOfURL returns the host as in HostStats, or "" if the check has failed.
func (h *host) hostOfURL() string {
	u, err := url.Parse(h.URL)
	if err != nil {
		return ""
	}
	a, _ := dialect.AuthorityOf(u)
	return a.Host
}

func (g *group) add(h *host) {
	g.hosts = append(g.hosts, h)
	g.pages += h.Pages
	if g.by == nil || h.Delay > g.delay {
		g.delay = h.Delay
		g.by = h
	}
}

// apply sets the group of its hosts, and their times.
func (g *group) apply(name string, j *job) {
	together := term.Duration(j.lasts(j.timeFor(g.pages, time.Duration(g.delay))))
	for _, h := range g.hosts {
		h.Group = name
		h.shares = fmt.Sprintf("shares its pace with %s (%s): %s together", term.Number(len(g.hosts)-1, "other host"), name, together)
		if h.Delay < g.delay {
			h.Delay = g.delay
			h.Asked = g.by.Asked
			h.Line = g.by.Line
			h.slowest = g.by.Host
		}
		h.setTime(j)
	}
}
