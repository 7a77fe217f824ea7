package pace

import (
	"math"
	"time"
)

// An estimator finds the rate at which a host accepts requests. A host that has never complained
// has no estimator. A complaint is a response that asks for fewer requests.
//
// After a complaint, the next rate is slightly below the rate that the host has accepted since the
// complaint before. One request, the probe, goes first. When the host accepts it, the other
// requests follow at the new rate. The rate is held for ten seconds, then grows by 2 % per second
// up to the estimated limit of the host, and beyond that limit slowly at first, then faster as long
// as no complaint comes. As long as too little is known, the estimator searches for the rate
// instead: it cuts the rate to a quarter after each complaint and then raises it again to the rate
// that has failed. If the host refuses the probe itself, the rate is also cut to a quarter each
// time.
//
// A rate grows only with evidence: each second of growth counts only if a request was started for
// it.
//
// The constants were chosen in a simulation of a server that accepts 0.5, 5 or 50 requests per
// second and answers 429 to the rest. TestRateOfServerIsFound repeats it with and without
// Retry-After, with 1 and 20 workers and with latencies of up to 300 ms. It requires that at least
// 85 % of the rate is used and that at most 2 % of the requests are refused (5 % at a rate of 0.5).
// In the worst cases, 86 % of the rate is used, and 3.3 %, 1.1 % and 0.1 % of the requests are
// refused at 0.5, 5 and 50 requests per second. The comment on each constant says what another
// value gives in the worst case.
type estimator struct {
	base     float64 // requests per second directly after the complaint; 0 means no limit
	goal     float64 // the rate grows at the usual speed up to this number of requests per second
	accepted float64 // requests per second that the host once accepted; 0 if unknown
	proven   instant // when the host first accepted a request after the complaint; 0 if it has not yet
	first    instant // when the first request after the complaint started
	starts   int32   // the number of requests since the complaint, including the first
	incident uint32  // the number of complaints; a response to a request of an earlier incident is ignored
	odd      int32   // the weight of recent 503 responses without Retry-After, see unavailable
}

// These constants say how a rate grows. The schedule resembles the cubic curve of the adaptive
// retry mode of cloud SDKs: hold, grow toward the rate that failed, then probe beyond it.
// TestRateGrowsByEvidence fixes the resulting curve.
const (
	// holdFor is how many seconds a rate is held that is slightly below the goal. With 0, 4.5 % of
	// the requests are refused at 0.5 per second. With 20, only 85 % of the rate is used.
	holdFor = 10.0
	// growth is the growth per second after that, until the rate reaches the goal. It has little
	// effect: at 5 requests per second, 0.7 % are refused with 0.01, and 1.2 % with 0.04.
	growth = 0.02
	// beyond is the growth per second squared above the goal. With ten times the value, 4.5 % of
	// the requests are refused at 0.5 per second. With a tenth of it, a host that accepts more
	// again gets e times the rate only after 316 seconds instead of 100.
	beyond = 0.0001
	// unlimited is the rate, in requests per second, at which the limit is dropped. The simulation
	// does not reach it. A delay of a millisecond is shorter than the latency of any host.
	unlimited = 1000.0
)

// These constants say how a rate is searched for while too little is known. "each complaint is one
// incident" in TestEstimator fixes the first steps, and TestRateOfServerIsFound the time that
// the search takes: ten seconds at 5 and 50 requests per second, thirty at 0.5.
const (
	// searchFor is how many seconds a rate takes to grow to its goal if the goal is at least
	// farTooLow times the rate. With 4, 7 % of the requests are refused at 0.5 per second. With 16,
	// only 90 % of that rate is used instead of 95 %.
	searchFor = 8.0
	// farTooLow may be anything from 1.25 to 2. With 1.1, 3.9 % of the requests are refused at 0.5
	// per second. With 4, only 67 % of that rate is used.
	farTooLow = 1.25
	// cut is the factor applied to a rate that has failed while nothing better is known. With 0.5,
	// only 84 % of the rate is used at 5 requests per second. With 0.125, only 90 % is used at 0.5.
	cut = 0.25
	// firstLow and firstHigh bound the rate, in requests per second, that the first complaint is
	// assumed to refer to. They bound the estimate of limiter.sending. firstLow has no effect in
	// the simulation. With it, the first delay is never longer than a second (1 / (firstLow *
	// cut)).
	firstLow = 4.0
	// firstHigh is four times the fastest server of the simulation. With 1000, only 83 % of the
	// rate is used at 50 requests per second. With 20, it is 45 %.
	firstHigh = 200
)

// These constants say how the next rate follows from the accepted one.
const (
	// below is the factor applied to the accepted rate. With 0.90, only 85 % of the rate is used.
	// With 1, there are nearly twice as many incidents at 50 requests per second.
	below = 0.94
	// jitter is multiplied by a random number in [0, 1), and subtracted from below. It keeps
	// processes with the same host from moving in step. The simulation runs with both of its
	// extremes. Without it, 88 % of the rate is used.
	jitter = 0.04
	// The accepted rate counts as known from sure requests on. With 2, only 56 % of the rate is
	// used at 50 requests per second. With 8, 12 % of the requests are refused at 0.5.
	sure = 4
)

// rate returns how many requests per second may start at now. 0 means any number.
func (e *estimator) rate(now instant) float64 {
	if e.proven == 0 || e.base == 0 {
		return e.base
	}
	t := min(now.since(e.proven).Seconds(), float64(e.starts))
	rise := math.Log(e.goal / e.base)
	speed := growth
	if e.goal > e.base*farTooLow {
		speed = rise / searchFor
	} else {
		t = max(t-holdFor, 0)
	}
	if t*speed < rise {
		return e.base * math.Exp(t*speed)
	}
	t -= rise / speed
	return min(e.goal*math.Exp(beyond*t*t), unlimited)
}

// interval returns the time between two starts at now, at most longest. 0 means no delay.
func (e *estimator) interval(now instant, longest time.Duration) time.Duration {
	rate := e.rate(now)
	if rate == 0 || rate >= unlimited {
		return 0
	}
	return min(time.Duration(float64(time.Second)/rate), longest)
}

// countStart records that a request starts at now.
func (e *estimator) countStart(now instant) {
	if e.starts == 0 {
		e.first = now
	}
	if e.starts < math.MaxInt32 {
		e.starts++
	}
}

// accept records a response, seen at now, that is not a complaint. It reports whether t was the
// probe.
func (e *estimator) accept(now instant, t *Ticket) bool {
	e.odd = max(e.odd-1, 0)
	if !e.probing() || t.incident != e.incident {
		return false
	}
	e.proven = now
	return true
}

// A complaint is a response that asks for fewer requests. Its request was started after the
// previous complaint.
type complaint struct {
	seen   instant // when the response came
	last   instant // when the last request was started
	wait   bool    // the response has a Retry-After
	rate   float64 // requests per second that were sent; used only for the first complaint
	random float64 // a number in [0, 1)
}

// complain records a complaint and sets the next rate. least is the lowest rate that it may set.
func (e *estimator) complain(c complaint, least float64) {
	switch {
	case e.goal == 0:
		e.goal = max(firstLow, min(c.rate, firstHigh))
		e.base = e.goal * cut
	case e.proven == 0 && c.wait:
		// The Retry-After has failed, not the rate: the probe went too early.
	case e.proven == 0:
		if e.accepted == 0 {
			e.goal = e.base
		}
		e.base *= cut
	default:
		e.learn(e.rate(c.seen), float64(e.starts-1), c.last.since(e.first).Seconds(), c.random)
	}
	e.base = max(e.base, least)
	e.goal = max(e.goal, e.base)
	e.probe()
}

// probe starts a new incident. One request goes before any other.
func (e *estimator) probe() {
	e.proven = 0
	e.starts = 0
	e.odd = 0
	e.incident++
}

// probing reports whether all other requests wait for the answer to the probe.
func (e *estimator) probing() bool { return e.incident > 0 && e.proven == 0 }

// learn sets the next rate after the rate failed has proved too high. n is the number of requests
// that had been accepted, and seconds is the time that this took.
//
// The rate of the host lies between low, a rate that it has accepted, and high. If few requests
// preceded the failure, the host had no saved allowance when they began, so high is less than
// failed.
//
// The next rate is a weighted mean: low has twice the weight of high. With the same weight, a
// server that answers plain 503 refuses 72 instead of 65 of 615 requests
// (TestRateIsFoundByPlain503).
func (e *estimator) learn(failed, n, seconds, random float64) {
	low := e.accepted / 2 // the host may accept less now than before
	high := failed
	if n > 1 {
		low = max(low, (n-1)/seconds)
		high = failed * (1 - 1/n)
	}
	low = min(low, failed)
	e.accepted = low
	low = min(low, high)
	e.base = max(math.Cbrt(low*low*high), failed*cut) * (below - jitter*random)
	e.goal = failed
	if n >= sure {
		e.goal = max(math.Sqrt(low*high), failed*cut)
	}
}

// These constants decide when 503 responses without Retry-After are a complaint, because one of
// them may only mean that the page is broken. They follow from two tests: a host that answers 503
// to one page in ten must not be slowed down at all (TestOnePlain503InTenIsNotAComplaint), and a
// server that refuses requests with plain 503, as nginx does with limit_req, must be recognized
// (TestRateIsFoundByPlain503). The first test fails with twice the oddWeight or half the oddMost,
// and the second with half the oddWeight or twice the oddMost.
const (
	// oddWeight is how many accepted responses cancel one 503 response. In the first test, nine
	// follow each of them.
	oddWeight = 8
	// oddMost is the largest weight that is not a complaint: four 503 responses in a row.
	oddMost = 32
)

// unavailable records a 503 response without Retry-After and reports whether it is a complaint.
func (e *estimator) unavailable() bool {
	e.odd += oddWeight
	return e.odd > oddMost || e.probing()
}
