package collyrobots

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// Stats is what a Plugin has seen so far. In JSON its durations are texts such as "1.5s", and it
// reads back as it was written.
type Stats struct {
	Hosts     []HostStats   `json:"hosts"`     // sorted by name
	Forgotten HostStats     `json:"forgotten"` // the sum of hosts no longer kept: of very many, those not asked in a while
	Sitemaps  FeedStats     `json:"sitemaps"`
	Shadows   []ShadowStats `json:"shadows,omitempty"` // in the order in which Shadow names them

	// NotFed are the first URLs that sitemaps list and that were not fed, by the name of their
	// count in FeedStats as JSON: "out_of_scope".
	NotFed map[string][]string `json:"not_fed,omitempty"`
}

// HostStats is what happened with one host. http and https of a host are one; another port is
// another host.
type HostStats struct {
	Host      string `json:"host,omitempty"` // as in a URL, with the port unless it is the default one
	Requests  int    `json:"requests"`       // put on the wire: pages, redirect hops, robots.txt, sitemaps
	Throttled int    `json:"throttled"`      // times it asked for less: 429 or 503, each incident once
	Pages     int    `json:"pages"`          // responses that reached the collector, of any status, cached ones included
	Denied    int    `json:"denied"`         // requests not sent because of robots.txt
	Waiting   int    `json:"waiting"`        // pages that wait for their turn now

	CrawlDelay time.Duration `json:"-"`                   // what robots.txt asks for; of several delays the longest
	BackOff    time.Duration `json:"-"`                   // the delay that 429 and 503 have brought
	NotBefore  time.Time     `json:"not_before,omitzero"` // until when a Retry-After holds everything; zero: it does not
	NextStart  time.Time     `json:"next_start,omitzero"` // before when no request starts; zero: one may at once

	// Delay is kept between the starts of two requests: the longest of BackOff, MinDelay, and
	// CrawlDelay within MaxDelay. 0: none.
	Delay time.Duration `json:"-"`
	// MinGap is the shortest time between two requests on the wire since a delay has been in force;
	// 0: there were no two.
	MinGap time.Duration `json:"-"`
}

// Stats returns the counts so far. It may be called at any time; the hosts are read one after
// another.
func (p *Plugin) Stats() Stats {
	if p == nil || p.core == nil {
		return Stats{}
	}
	s := Stats{Hosts: []HostStats{}, Forgotten: HostStats(p.limiter.hosts.Forgotten()), Sitemaps: p.sitemaps.statistics(), NotFed: p.sitemaps.examples()}
	now := time.Now()
	for host := range p.limiter.hosts.All() {
		s.Hosts = append(s.Hosts, HostStats(host.Stats(now)))
	}
	slices.SortFunc(s.Hosts, func(a, b HostStats) int { return strings.Compare(a.Host, b.Host) })
	for _, shadow := range p.shadows {
		s.Shadows = append(s.Shadows, shadow.statistics())
	}
	return s
}

var _ = HostStats(pace.Stats{}) // one struct, published here

// plainHostStats is a HostStats as package json would write it.
type plainHostStats HostStats

type hostStatsJSON struct {
	*plainHostStats
	CrawlDelay jsonDuration `json:"crawl_delay,omitempty"`
	BackOff    jsonDuration `json:"back_off,omitempty"`
	Delay      jsonDuration `json:"delay,omitempty"`
	MinGap     jsonDuration `json:"min_gap,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s HostStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(hostStatsJSON{
		(*plainHostStats)(&s), jsonDuration(s.CrawlDelay), jsonDuration(s.BackOff), jsonDuration(s.Delay), jsonDuration(s.MinGap),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *HostStats) UnmarshalJSON(b []byte) error {
	j := hostStatsJSON{plainHostStats: (*plainHostStats)(s)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	s.CrawlDelay, s.BackOff = time.Duration(j.CrawlDelay), time.Duration(j.BackOff)
	s.Delay, s.MinGap = time.Duration(j.Delay), time.Duration(j.MinGap)
	return nil
}
