package view

import (
	"maps"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/internal/seconds"
	"github.com/collyrobots/collyrobots/report"
)

// A sampler shares results of StatsFunc among all open pages that ask the same question. The zero
// sampler is ready for use.
type sampler struct {
	// mu protects last. It is held while a sample is read, so that only one is read at a time.
	mu     sync.Mutex
	last   map[question]*sample // expired samples are removed when the next one is read
	growth growth
}

// A sample is a result of StatsFunc for one question. It is not changed after it is read.
type sample struct {
	stats report.Stats // without Hosts
	hosts picker
	at    time.Time
	until time.Time // when a new sample is needed
	known int       // the number of hosts
	busy  int       // the number of hosts with waiting requests
	left  *timeLeft // of the host with the longest time left; nil if no request is waiting

	growth    *float64 // of the waiting pages of the frontier
	remaining remaining
}

const (
	interval   = 500 * time.Millisecond // the minimum time between two messages of a stream
	maxSamples = 64                     // questions with a sample
	share      = 50                     // at most 1/50 of the time is used for each question, and 1/50 for each stream
)

// read returns a sample for a question. It calls StatsFunc only if the last sample is too old. With
// many hosts StatsFunc takes longer, so a sample is used for longer.
func (s *sampler) read(c report.Source, r *recorder, q question) *sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	maps.DeleteFunc(s.last, func(_ question, old *sample) bool { return !began.Before(old.until) })
	if last := s.last[q]; last != nil {
		return last
	}
	fresh := &sample{at: began, hosts: picker{question: q, now: began}}
	fresh.stats = c.StatsFunc(fresh.add)
	if f := fresh.stats.Frontier; f != nil {
		fresh.growth = s.growth.add(began, f.Waiting)
	}
	if fresh.left != nil {
		fresh.left.Half = seconds.Duration(fresh.remaining.until(0.5))
		fresh.left.Most = seconds.Duration(fresh.remaining.until(0.9))
	}
	fresh.until = time.Now().Add(max(interval/2, share*time.Since(began)))
	s.keep(q, fresh)
	return fresh
}

// keep stores a sample. s.mu must be held.
func (s *sampler) keep(q question, fresh *sample) {
	if s.last == nil {
		s.last = make(map[question]*sample)
	}
	for old := range s.last {
		if len(s.last) < maxSamples {
			break
		}
		delete(s.last, old)
	}
	s.last[q] = fresh
}

// add adds a host to the sample.
func (s *sample) add(host report.HostStats) {
	s.known++
	s.hosts.add(host)
	if waiting(&host) == 0 {
		return
	}
	s.busy++
	d := seconds.Duration(host.TimeLeft(s.at))
	s.remaining.add(host.NextStart.Sub(s.at), d.Std(), waiting(&host))
	if s.left != nil && (d < s.left.Duration || d == s.left.Duration && host.Host > s.left.Host) {
		return
	}
	s.left = &timeLeft{
		Duration: d,
		Host:     host.Host,
		Waiting:  max(waiting(&host), host.GroupWaiting),
		Delay:    seconds.Duration(host.Delay),
		Source:   host.Source,
		Line:     host.Line,
	}
}
