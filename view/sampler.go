package view

import (
	"sync"
	"time"
	"weak"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/seconds"
)

// A sampler shares one result of Stats among all open pages.
type sampler struct {
	mu   sync.Mutex
	last weak.Pointer[sample] // weak, because with many hosts it is large; dropped when no page is open
}

// A sample is a result of Stats. It is not changed after sum.
type sample struct {
	stats collyrobots.Stats
	at    time.Time
	until time.Time // when a new sample is needed
	left  *timeLeft
	busy  int
}

const (
	interval = 500 * time.Millisecond // the minimum time between two messages of a stream
	share    = 50                     // at most 1/50 of the time is used for Stats, and 1/50 for each stream
)

// read returns a sample. It calls Stats only if the last sample is too old. With many hosts Stats
// takes longer, so a sample is used for longer.
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

// keep stores a sample. The pointer is weak, so the sample is freed when no page uses it. s.mu must
// be held.
func (s *sampler) keep(fresh *sample) { s.last = weak.Make(fresh) }

// sum finds the host with the longest time left, and counts the hosts with waiting requests.
func (s *sample) sum() {
	longest := time.Duration(-1)
	for i := range s.stats.Hosts {
		host := &s.stats.Hosts[i]
		if host.Waiting == 0 {
			continue
		}
		s.busy++
		if d := host.TimeLeft(s.at); d > longest {
			longest = d
			s.left = &timeLeft{
				Duration: seconds.Duration(d),
				Host:     host.Host,
				Waiting:  host.Waiting,
				Delay:    seconds.Duration(host.Delay),
				Source:   host.Source,
				Line:     host.Line,
			}
		}
	}
}
