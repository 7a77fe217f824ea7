package view

import (
	"context"
	"errors"
	"strings"

	"github.com/collyrobots/collyrobots/report"
)

// maxHosts is the maximum number of hosts with counts of their own. The sums have all hosts.
const maxHosts = 1 << 20

// statuses counts the responses to requests of all kinds.
type statuses struct {
	OK         uint32 `json:"2xx,omitempty"`
	Redirect   uint32 `json:"3xx,omitempty"`
	Refused    uint32 `json:"4xx,omitempty"`       // without 429
	Throttled  uint32 `json:"throttled,omitempty"` // 429 and 503
	Failed     uint32 `json:"5xx,omitempty"`       // without 503
	NoResponse uint32 `json:"none,omitempty"`
}

// add counts a response. It does not count requests that ended because the crawl has ended.
func (s *statuses) add(e *report.Event) {
	switch {
	case e.Status == 429 || e.Status == 503:
		s.Throttled++
	case e.Status >= 500:
		s.Failed++
	case e.Status >= 400:
		s.Refused++
	case e.Status >= 300:
		s.Redirect++
	case e.Status > 0:
		s.OK++
	case e.Err != nil && !isEnd(e.Err):
		s.NoResponse++
	}
}

// isEnd reports whether err says that the crawl has ended.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, report.ErrClosed)
}

// counts has the statuses of all hosts, and of each host.
type counts struct {
	all    statuses
	byHost map[string]statuses
}

func (c *counts) answered(e *report.Event) {
	c.all.add(e)
	host, ok := c.byHost[e.Host]
	if !ok && len(c.byHost) >= maxHosts {
		return
	}
	host.add(e)
	name := e.Host
	if !ok {
		name = strings.Clone(name)
	}
	c.byHost[name] = host
}

// A series counts the starts of requests, and the failures, over the whole crawl. Its bins become
// longer as the crawl does, so that their number is bounded.
type series struct {
	began int64 // in seconds since 1970; 0 if there is no event yet
	width int64 // of a bin, in seconds
	bins  []bin
}

type bin struct{ starts, failures int }

// maxBins is the maximum number of bins. It is even.
const maxBins = 120

// at returns the bin of a time, in seconds since 1970. An earlier time than the first belongs to
// the first bin.
func (s *series) at(second int64) *bin {
	if s.began == 0 {
		s.began = second
		s.width = 1
	}
	for second-s.began >= s.width*maxBins {
		s.widen()
	}
	i := int(max(0, second-s.began) / s.width)
	for len(s.bins) <= i {
		s.bins = append(s.bins, bin{})
	}
	return &s.bins[i]
}

// widen doubles the width of the bins.
func (s *series) widen() {
	for i, b := range s.bins {
		if i%2 == 0 {
			s.bins[i/2] = b
			continue
		}
		s.bins[i/2].starts += b.starts
		s.bins[i/2].failures += b.failures
	}
	s.bins = s.bins[:(len(s.bins)+1)/2]
	s.width *= 2
}

// A seriesState is a series in a message.
type seriesState struct {
	From     int64 `json:"from"`  // in seconds since 1970
	Width    int64 `json:"width"` // of a bin, in seconds
	Starts   []int `json:"starts"`
	Failures []int `json:"failures"`
}

// state returns a copy of the series, or nil if it has no events.
func (s *series) state() *seriesState {
	if s.began == 0 {
		return nil
	}
	st := &seriesState{From: s.began, Width: s.width}
	for _, b := range s.bins {
		st.Starts = append(st.Starts, b.starts)
		st.Failures = append(st.Failures, b.failures)
	}
	return st
}
