package collyrobots

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Stats is what a Plugin has seen so far.
type Stats struct {
	Hosts    []HostStats // sorted by name
	Sitemaps FeedStats
}

// HostStats is what happened with one host. http and https of a host, and whatever else goes to its port, are one.
type HostStats struct {
	Host     string // as in a URL, with the port unless it is the default one
	Requests int    // put on the wire: pages, redirect hops, robots.txt, sitemaps
	Pages    int    // responses that reached the collector, of any status, cached ones included
	Denied   int    // requests not sent because of robots.txt
	// CrawlDelay is what robots.txt asks for (the larger of http and https), Delay what is kept between the starts of two requests.
	CrawlDelay, Delay time.Duration
	// MinGap is the smallest time between the starts of two requests since a delay has been in force. Zero: there were no two.
	MinGap time.Duration
}

// Stats returns the counts so far. It may be called at any time from any goroutine; the hosts are read one after another.
func (p *Plugin) Stats() Stats {
	hosts := p.pace.all()
	s := Stats{Hosts: make([]HostStats, len(hosts)), Sitemaps: p.feeder.statistics()}
	for i, t := range hosts {
		t.mu.Lock()
		s.Hosts[i] = t.stats
		s.Hosts[i].Delay = t.delay
		t.mu.Unlock()
	}
	slices.SortFunc(s.Hosts, func(a, b HostStats) int { return strings.Compare(a.Host, b.Host) })
	return s
}

// count changes the counts of a host.
func (t *turnstile) count(f func(*HostStats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.stats)
}

// all returns the turnstiles in no order.
func (p *pace) all() []*turnstile {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.hosts))
}
