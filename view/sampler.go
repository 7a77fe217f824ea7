package view

import (
	"sync"
	"time"
	"weak"

	"github.com/collyrobots/collyrobots"
)

// A sampler reads Stats once for all who look.
type sampler struct {
	mu   sync.Mutex
	last weak.Pointer[sample] // of very many hosts it is large: it is not kept when nobody looks
}

// A sample is what Stats said at a time. It is not changed.
type sample struct {
	stats collyrobots.Stats
	at    time.Time
	until time.Time // how long it is good enough
	left  *left
	busy  int
}

const (
	interval = 500 * time.Millisecond // between two messages of a stream
	share    = 50                     // of its time, one in so many is spent on reading Stats, and as much on a stream
)

// read returns a sample that is fresh, or as fresh as the crawl can afford: of many hosts it takes
// a while.
func (s *sampler) read(p *collyrobots.Plugin) *sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if last := s.last.Value(); last != nil && began.Before(last.until) {
		return last
	}
	fresh := &sample{stats: p.Stats(), at: began}
	fresh.sum()
	fresh.until = time.Now().Add(max(interval/2, share*time.Since(began)))
	s.keep(fresh)
	return fresh
}

// keep keeps a sample for as long as somebody uses it. s.mu is held.
func (s *sampler) keep(fresh *sample) { s.last = weak.Make(fresh) }

// sum finds the host that decides how long what waits will take.
func (s *sample) sum() {
	longest := time.Duration(-1)
	for i := range s.stats.Hosts {
		host := &s.stats.Hosts[i]
		if host.Waiting == 0 {
			continue
		}
		s.busy++
		if d := host.Left(s.at); d > longest {
			longest = d
			s.left = &left{duration(d), host.Host, host.Waiting, duration(host.Delay), host.Source, host.Line}
		}
	}
}
