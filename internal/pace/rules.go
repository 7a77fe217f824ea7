package pace

import (
	"math/rand/v2"
	"time"
)

// Rules are the settings for a host. The host cannot change them by its robots.txt or its responses.
// They must not change after they are returned to the registry. With the zero Rules, every request
// starts at once until robots.txt or a 429 response says otherwise.
type Rules struct {
	MinDelay      time.Duration // shortest delay between two starts
	MaxCrawlDelay time.Duration // longer crawl delays are reduced to this; 0 means no limit
	// MaxInFlightPerHost is the largest number of requests in flight. If 0, one request may be in
	// flight while a crawl delay or MinDelay is in force, and otherwise any number.
	MaxInFlightPerHost int
	FromEnd            bool // the delay counts from the end of a response; one request in flight
	Free               bool // a dry run: every request starts at once and is only counted
	Shares             bool // the host may share the pace of other hosts, see Host.Join

	// MaxBackOff is the longest delay that 429 and 503 responses cause. It does not shorten a
	// Retry-After. If 0, it is five minutes. If negative, there is no back-off, even after a
	// Retry-After has passed.
	MaxBackOff time.Duration

	// Jitter makes each gap between two starts longer than the delay by a random share of it, which is
	// between 0 and Jitter. It is at most 1. If 0, the gaps are as long as the delay.
	Jitter float64

	// Hours says when requests other than those for robots.txt may start, and with which delay. If
	// nil, they may start at any time.
	Hours Schedule
	// Adaptive makes the delay at least Adaptive times the response time of the host, see
	// adaptiveDelay. If 0, the response time does not matter.
	Adaptive float64

	numbers interface{ Float64() float64 } // random numbers in [0, 1), for tests; if nil, those of math/rand
}

// random returns a random number in [0, 1).
func (r *Rules) random() float64 {
	if r.numbers != nil {
		return r.numbers.Float64()
	}
	return rand.Float64()
}

// withThoseOf returns the rules of a group that had the rules r, after a host with the rules o has
// joined it. Each field gets the value that keeps the requests further apart. Group.addMember sets
// the hours of the group.
func (r *Rules) withThoseOf(o *Rules) *Rules {
	both := *r
	both.MinDelay = max(r.MinDelay, o.MinDelay)
	both.FromEnd = r.FromEnd || o.FromEnd
	both.Adaptive = max(r.Adaptive, o.Adaptive)
	both.Jitter = max(r.Jitter, o.Jitter)
	both.MaxCrawlDelay = max(r.MaxCrawlDelay, o.MaxCrawlDelay)
	if r.MaxCrawlDelay == 0 || o.MaxCrawlDelay == 0 {
		both.MaxCrawlDelay = 0
	}
	both.MaxInFlightPerHost = max(r.MaxInFlightPerHost, o.MaxInFlightPerHost)
	if r.MaxInFlightPerHost > 0 && o.MaxInFlightPerHost > 0 {
		both.MaxInFlightPerHost = min(r.MaxInFlightPerHost, o.MaxInFlightPerHost)
	}
	if o.mostBackOff() > r.mostBackOff() {
		both.MaxBackOff = o.MaxBackOff
	}
	return &both
}
