package collyrobots

import (
	"slices"
	"strings"
	"time"
)

// Stats is what a Plugin has seen so far.
type Stats struct {
	Hosts     []HostStats // sorted by name
	Forgotten HostStats   // the sum of hosts no longer listed: of very many, those not asked in a while
	Sitemaps  FeedStats
	Shadows   []ShadowStats // in the order in which Shadow names them
}

// HostStats is what happened with one host. http and https of a host are one; another port is another host.
type HostStats struct {
	Host      string // as in a URL, with the port unless it is the default one
	Requests  int    // put on the wire: pages, redirect hops, robots.txt, sitemaps
	Pages     int    // responses that reached the collector, of any status, cached ones included
	Denied    int    // requests not sent because of robots.txt
	Throttled int    // times it asked for less: 429 or 503, each incident once

	CrawlDelay time.Duration // what robots.txt asks for, the larger of http and https
	BackOff    time.Duration // what 429 and 503 have added, as far as not yet forgiven
	NotBefore  time.Time     // until when the last Retry-After holds everything
	Delay      time.Duration // kept between the starts of two requests: the largest of the two and MinDelay, MaxDelay heeded
	// MinGap is the smallest time between the starts of two requests since a delay has been in force. Zero: there were no two.
	MinGap time.Duration
}

// add sums what can be summed.
func (s *HostStats) add(o HostStats) {
	s.Requests += o.Requests
	s.Pages += o.Pages
	s.Denied += o.Denied
	s.Throttled += o.Throttled
}

// Stats returns the counts so far. It may be called at any time from any goroutine; the hosts are read one after another.
func (p *Plugin) Stats() Stats {
	s := p.pace.statistics()
	s.Sitemaps, s.Shadows = p.feeder.statistics(), p.readers.statistics()
	return s
}

func (p *pace) statistics() Stats {
	p.mu.Lock()
	s := Stats{Hosts: make([]HostStats, 0, len(p.hosts)), Forgotten: p.forgotten}
	hosts := make([]*turnstile, 0, len(p.hosts))
	for _, t := range p.hosts {
		hosts = append(hosts, t)
	}
	p.mu.Unlock()
	for _, t := range hosts {
		s.Hosts = append(s.Hosts, t.statistics())
	}
	slices.SortFunc(s.Hosts, func(a, b HostStats) int { return strings.Compare(a.Host, b.Host) })
	return s
}

// statistics returns the counts of a host, and the parts of its delay as they are now.
func (t *turnstile) statistics() HostStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.settle(now)
	s := t.stats
	s.Delay, s.BackOff, s.NotBefore = t.delay, t.backOff.at(now), t.notBefore
	return s
}

// count changes the counts of a host.
func (t *turnstile) count(f func(*HostStats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.stats)
}
