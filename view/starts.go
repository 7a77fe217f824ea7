package view

import (
	"strconv"
	"time"

	"github.com/collyrobots/collyrobots"
)

const (
	maxCharts = 512                    // the hosts with the latest requests
	maxDots   = 600                    // for each host
	dotWidth  = 250 * time.Millisecond // starts within this time are one dot, unless a longer delay is in force
)

// starts holds the dots of the chart for each host.
type starts struct {
	hosts   recent[string, *hostStarts]
	changes uint64 // how often a dot was added or changed
	rate    rate
}

// hostStarts holds the latest dots of one host, oldest first.
type hostStarts struct {
	dots []dot
}

// A dot is the start of a request, or of several requests in quick succession.
type dot struct {
	at      time.Time
	delay   time.Duration           // the delay in force at that time; 0 if there was none
	kind    collyrobots.RequestKind // Event.RequestKind of the first request
	outcome outcome                 // the worst one of the requests
	count   int
	change  uint64 // the value of starts.changes after the last change of this dot
}

// An outcome is the result of a request. Higher values are worse.
type outcome int

const (
	underWay  outcome = iota
	answered          // a status below 400
	refused           // another status of 400 or more
	failed            // a status of 500 or more, or no response
	throttled         // 429 or 503
)

// dots are encoded as arrays instead of objects, because there are many.
type dots []dot

// MarshalJSON implements json.Marshaler.
func (ds dots) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 2+40*len(ds))
	for i, d := range ds {
		b = append(b, "[,"[min(i, 1)], '[')
		b = append(strconv.AppendInt(b, d.at.UnixMilli(), 10), ',')
		b = append(strconv.AppendFloat(b, d.delay.Seconds(), 'f', 3, 64), ',', '"')
		b = append(append(b, d.kind...), '"', ',')
		b = append(strconv.AppendInt(b, int64(d.outcome), 10), ',')
		b = append(strconv.AppendInt(b, int64(d.count), 10), ']')
	}
	if len(ds) == 0 {
		b = append(b, '[')
	}
	return append(b, ']'), nil
}

func (s *starts) started(e collyrobots.Event) {
	h, _ := s.hosts.touch(e.Host, func() *hostStarts { return &hostStarts{} })
	s.changes++
	s.rate.count(e.Time)
	if n := len(h.dots); n > 0 {
		if last := &h.dots[n-1]; e.Delay < dotWidth && e.Time.Sub(last.at) < dotWidth && last.kind == e.RequestKind {
			last.count, last.change = last.count+1, s.changes
			return
		}
	}
	if len(h.dots) == maxDots {
		h.dots = h.dots[:copy(h.dots, h.dots[maxDots/4:])]
	}
	h.dots = append(h.dots, dot{at: e.Time, delay: e.Delay, kind: e.RequestKind, outcome: underWay, count: 1, change: s.changes})
}

func (s *starts) answered(e collyrobots.Event) {
	h, ok := s.hosts.get(e.Host)
	if !ok {
		return
	}
	result := outcomeOf(e)
	began := e.Time.Add(-e.Took + dotWidth)
	for i := len(h.dots) - 1; i >= max(0, len(h.dots)-16); i-- {
		if d := &h.dots[i]; d.kind == e.RequestKind && !d.at.After(began) {
			if d.outcome < result {
				s.changes++
				d.outcome, d.change = result, s.changes
			}
			return
		}
	}
}

func outcomeOf(e collyrobots.Event) outcome {
	switch {
	case e.Status == 429 || e.Status == 503:
		return throttled
	case e.Status >= 500, e.Status == 0 && e.Err != nil:
		return failed
	case e.Status >= 400:
		return refused
	}
	return answered
}

// since returns copies of the dots of a host that were added or changed after change. If change is
// 0, it returns all of them.
func (s *starts) since(host string, change uint64) (changed dots) {
	h, ok := s.hosts.get(host)
	if !ok {
		return nil
	}
	for _, d := range h.dots {
		if d.change > change {
			changed = append(changed, d)
		}
	}
	return changed
}

// A rate counts the events in each of the last seconds.
type rate [16]struct {
	second int64
	n      int
}

const rateSeconds = 10

func (r *rate) count(at time.Time) {
	second := at.Unix()
	slot := &r[second%int64(len(r))]
	if slot.second != second {
		slot.second, slot.n = second, 0
	}
	slot.n++
}

// perSecond returns the average number of events per second in the last ten full seconds.
func (r *rate) perSecond(now time.Time) float64 {
	sum, until := 0, now.Unix()
	for _, slot := range r {
		if slot.second < until && slot.second >= until-rateSeconds {
			sum += slot.n
		}
	}
	return float64(sum) / rateSeconds
}
