package view

import (
	"strconv"
	"time"

	"github.com/collyrobots/collyrobots/internal/seconds"
	"github.com/collyrobots/collyrobots/report"
)

const (
	maxHistory = 32 << 20 // bytes of the histories of all hosts, about

	// The cost of a history in bytes, about.
	hostCost    = 400
	dotCost     = 72
	requestCost = 160

	maxRequests = 12          // for each host
	shownTime   = time.Minute // how long a history is kept after its host was shown

	maxDots  = 600                    // for each host
	dotWidth = 250 * time.Millisecond // starts within this time are one dot, unless a longer delay is in force
)

// starts holds the histories of hosts: the dots of the chart, and the last requests. If they need
// too much memory, it drops those of the hosts with the oldest requests, but not those of hosts that
// a page shows. Slow hosts have few dots, so that there is room for the histories of many of them.
type starts struct {
	hosts   recent[string, *hostStarts]
	bytes   int    // the cost of all histories
	changes uint64 // how often a dot was added or changed
	rate    rate
}

// hostStarts is the history of one host.
type hostStarts struct {
	dots     []dot     // the latest ones, oldest first
	requests []request // the latest ones that have ended, oldest first
	text     int       // bytes of the texts in requests
	gaps     gaps
	shown    time.Time // when a page has shown the host
}

// cost returns about how many bytes the history needs.
func (h *hostStarts) cost() int {
	return hostCost + dotCost*cap(h.dots) + requestCost*cap(h.requests) + h.text
}

// A request is a request that has ended.
type request struct {
	Time   time.Time          `json:"time"` // when it started
	URL    string             `json:"url"`
	Kind   report.RequestKind `json:"kind"`
	Status int                `json:"status,omitempty"` // 0 if there was no response
	Took   seconds.Duration   `json:"took"`
	Error  string             `json:"error,omitempty"`
}

// gapBounds are the upper bounds of gaps as multiples of the delay. Gaps above the last bound have
// a bucket of their own.
var gapBounds = [...]float64{1, 1.1, 1.5, 2, 4, 8}

// gaps counts the gaps between the starts of requests by their length. Gaps without a delay do not
// count.
type gaps [len(gapBounds) + 1]uint32

func (g *gaps) add(gap, delay time.Duration) {
	if gap <= 0 || delay <= 0 {
		return
	}
	i := 0
	for i < len(gapBounds) && gap.Seconds() >= gapBounds[i]*delay.Seconds() {
		i++
	}
	g[i]++
}

// show records that a page shows a host. The history of the host is kept from now on.
func (s *starts) show(host string, now time.Time) {
	s.touch(host).shown = now
	s.makeRoom(now)
}

// touch returns the history of a host and makes it the latest one.
func (s *starts) touch(host string) *hostStarts {
	h, made := s.hosts.touch(host, func() *hostStarts { return &hostStarts{} })
	if made {
		s.bytes += h.cost()
	}
	return h
}

// makeRoom drops histories until the others need at most maxHistory. It drops those of shown hosts
// only if there are no others.
func (s *starts) makeRoom(now time.Time) {
	for spared := 0; s.bytes > maxHistory && s.hosts.order.Len() > 1; {
		oldest := s.hosts.order.Back()
		h := oldest.Value.(*entry[string, *hostStarts]).value
		if now.Sub(h.shown) < shownTime && spared < s.hosts.order.Len() {
			s.hosts.order.MoveToFront(oldest)
			spared++
			continue
		}
		s.bytes -= s.hosts.forget().cost()
	}
}

// A dot is the start of a request, or of several requests in quick succession.
type dot struct {
	at      time.Time
	delay   time.Duration      // the delay in force at that time; 0 if there was none
	kind    report.RequestKind // Event.RequestKind of the first request
	outcome outcome            // the worst one of the requests
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

func (s *starts) started(e *report.Event) {
	h := s.touch(e.Host)
	before := h.cost()
	h.started(e, s)
	s.bytes += h.cost() - before
	s.makeRoom(e.Time)
}

// started adds a start to the history.
func (h *hostStarts) started(e *report.Event, s *starts) {
	h.gaps.add(e.Gap, e.Delay)
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

func (s *starts) answered(e *report.Event) {
	h, ok := s.hosts.get(e.Host)
	if !ok {
		return
	}
	before := h.cost()
	h.ended(e)
	s.bytes += h.cost() - before
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

// maxRequestText is the maximum number of bytes of a URL or an error in a request.
const maxRequestText = 300

// ended adds a request that has ended.
func (h *hostStarts) ended(e *report.Event) {
	r := request{Time: e.Time.Add(-e.Took), URL: clipTo(e.URL, maxRequestText), Kind: e.RequestKind, Status: e.Status, Took: seconds.Duration(e.Took)}
	if e.Err != nil {
		r.Error = clipTo(e.Err.Error(), maxRequestText)
	}
	if len(h.requests) == maxRequests {
		h.text -= len(h.requests[0].URL) + len(h.requests[0].Error)
		h.requests = h.requests[:copy(h.requests, h.requests[1:])]
	}
	h.requests = append(h.requests, r)
	h.text += len(r.URL) + len(r.Error)
}

func outcomeOf(e *report.Event) outcome {
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
	if slot.second > second {
		return // the start of a request that was reported late
	}
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
