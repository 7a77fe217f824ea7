package pace

import (
	"math"
	"time"
)

// Under Rules.Adaptive, the delay of a host is at least a multiple of its smoothed response time,
// which is the time from the moment when a request reaches the wire to the header of its response.
// The body does not count, because its time depends on the size of the page and on the own network.
//
// With a factor f, at most 1/f requests, rounded up, are in flight, unless
// Rules.MaxInFlightPerHost is set. By Little's law, a host with a steady response time never has
// more requests in flight. The limit has an effect when the host becomes slow: the next requests
// then wait for a response. It also bounds the oscillation between many requests with slow
// responses and few requests with fast responses.
const (
	// rise is the weight of a response that took longer than the smoothed time. After a rise from
	// 100 ms to 800 ms, the smoothed time exceeds 700 ms with the third response.
	rise = 0.5
	// fall is the weight of a faster response. It is less than rise, so that the delay follows the
	// slow responses if fast and slow ones alternate. After a fall from 800 ms to 100 ms, the
	// smoothed time is below 200 ms with the seventh response.
	fall = 0.25
	// maxRise limits the effect of one response: it counts as at most maxRise times the smoothed
	// time, or leastOutlier if that is longer. So a single response that took a minute does not
	// stop the crawl.
	maxRise      = 4
	leastOutlier = time.Second
)

// adaptiveInFlight returns how many requests may be in flight under a factor.
func adaptiveInFlight(factor float64) int {
	return int(min(math.Ceil(1/factor), math.MaxInt32))
}

// adaptiveDelay returns the delay that the response time of the host causes. It is at most the
// longest back-off, or usualBackOff if the back-off is turned off.
func (l *limiter) adaptiveDelay() time.Duration {
	if l.rules.Adaptive == 0 || l.paced == nil {
		return 0
	}
	longest := l.mostBackOff()
	if longest == 0 {
		longest = usualBackOff
	}
	delay := l.rules.Adaptive * float64(l.paced.responseTime)
	return time.Duration(min(delay, float64(longest)))
}

// measure records that the request of t got a response at now, or has ended without one. Only the
// first call for a request counts. If success is true, the response may lower the smoothed response
// time. Errors and redirects must not lower it, because they are often fast although the host is
// slow. The response to robots.txt never lowers it, because most servers send a static file.
// measure reports whether the delay may have changed.
func (l *limiter) measure(now instant, t *Ticket, success bool) bool {
	if l.rules.Adaptive == 0 || t.state != onWire || t.measured {
		return false
	}
	t.measured = true
	p := l.ensurePaced()
	smoothed := p.responseTime
	took := min(now.since(t.at), max(maxRise*smoothed, leastOutlier))
	switch {
	case smoothed == 0:
		p.responseTime = took
	case took > smoothed:
		p.responseTime += time.Duration(rise * float64(took-smoothed))
	case success && !t.renews:
		p.responseTime -= time.Duration(fall * float64(smoothed-took))
	}
	return p.responseTime != smoothed
}

// succeeded reports whether a response with this status has the content that was requested, or says
// that it has not changed.
func succeeded(status int) bool { return status/100 == 2 || status == 304 }
