package pace

import (
	"math"
	"time"
)

// A governor remembers at which rate a host takes requests. A host that has never complained has
// none.
//
// With each complaint the rate becomes a little less than what the host had accepted since the one
// before. From then on one request goes ahead; when it is accepted the others follow, at that rate
// for some ten seconds, then at one that grows by 2 % a second up to what seems to be the
// host's own, then slowly, and faster the longer nobody complains. As long as little is known the
// rate is searched for instead: a quarter after each complaint, then up again to what has failed.
// A host that refuses the one that goes ahead is asked four times less often each time.
//
// All growth is by evidence: a second counts only if a request has been started for it.
type governor struct {
	base     float64 // requests a second, right after the complaint; 0: no limit
	goal     float64 // up to where the rate grows at the usual speed
	accepted float64 // requests a second that were once accepted; 0: not known
	proven   instant // when the host first accepted something after the complaint; 0: not yet
	first    instant // when the first request after it started
	starts   int32   // requests since then, the first included
	incident uint32  // counts complaints; what started before the last one is no news
	odd      int32   // see unavailable
}

const (
	holdFor   = 10.0   // seconds for which a rate is kept that is a little too low
	growth    = 0.02   // per second, from there to the goal
	beyond    = 0.0001 // per second squared, above the goal
	unlimited = 1000.0 // requests a second from which on there is no limit

	searchFor = 8.0  // seconds in which a rate grows to its goal that is far too low,
	farTooLow = 1.25 // by this factor or more
	cut       = 0.25 // of a rate that has failed while nothing better is known
	firstLow  = 4.0  // requests a second: the first complaint is taken for one about this
	firstHigh = 200  // to that

	below  = 0.94 // of what was accepted is the next rate, less
	jitter = 0.04 // by up to this, at random, and less
	unsure = 0.3  // by this over the number of requests that it was learnt from;
	sure   = 4    // so many make it known
)

// rate returns how many requests a second may start at now; 0: any number.
func (g *governor) rate(now instant) float64 {
	if g.proven == 0 || g.base == 0 {
		return g.base
	}
	t := min(now.since(g.proven).Seconds(), float64(g.starts))
	rise, speed := math.Log(g.goal/g.base), growth
	if g.goal > g.base*farTooLow {
		speed = rise / searchFor
	} else {
		t = max(t-holdFor, 0)
	}
	if t*speed < rise {
		return g.base * math.Exp(t*speed)
	}
	t -= rise / speed
	return min(g.goal*math.Exp(beyond*t*t), unlimited)
}

// interval returns the time between two starts at now, longest at the most; 0: none.
func (g *governor) interval(now instant, longest time.Duration) time.Duration {
	rate := g.rate(now)
	if rate == 0 || rate >= unlimited {
		return 0
	}
	return min(time.Duration(float64(time.Second)/rate), longest)
}

// started counts a request that starts at now.
func (g *governor) started(now instant) {
	if g.starts == 0 {
		g.first = now
	}
	if g.starts < math.MaxInt32 {
		g.starts++
	}
}

// accept takes note of an answer, seen at now, that is no complaint. It reports whether t was the
// one that goes ahead.
func (g *governor) accept(now instant, t *Ticket) bool {
	g.odd = max(g.odd-1, 0)
	if !g.probing() || t.incident != g.incident {
		return false
	}
	g.proven = now
	return true
}

// A complaint is an answer that asks for less, to a request that was started after the last one.
type complaint struct {
	seen, last instant // when it came, and when the last request was started
	wait       bool    // it names a time to come back
	rate       float64 // requests a second that were sent; needed for the first complaint
	random     float64 // a number in [0, 1)
}

// complain takes note of a complaint. least is the slowest rate.
func (g *governor) complain(c complaint, least float64) {
	switch {
	case g.goal == 0:
		g.goal = max(firstLow, min(c.rate, firstHigh))
		g.base = g.goal * cut
	case g.proven == 0 && c.wait:
		// It came back too early, which says nothing about the rate.
	case g.proven == 0:
		if g.accepted == 0 {
			g.goal = g.base
		}
		g.base *= cut
	default:
		g.learn(g.rate(c.seen), float64(g.starts-1), c.last.since(g.first).Seconds(), c.random)
	}
	g.base = max(g.base, least)
	g.goal = max(g.goal, g.base)
	g.probe()
}

// probe makes one request go ahead before any other starts.
func (g *governor) probe() {
	g.proven, g.starts, g.odd = 0, 0, 0
	g.incident++
}

// probing reports whether everybody waits for the answer to one request.
func (g *governor) probing() bool { return g != nil && g.incident > 0 && g.proven == 0 }

// learn finds the next rate after failed was too high: n requests had been accepted in so many
// seconds.
//
// What was accepted is a lower bound of the host's own rate, and what failed an upper one. The
// latter is better the fewer requests it took to fail: the host had saved up none when they began.
func (g *governor) learn(failed, n, seconds, random float64) {
	g.accepted /= 2 // it was accepted once, and may not be any more
	if n > 1 {
		g.accepted = min(max(g.accepted, (n-1)/seconds), failed)
		g.goal = failed * (1 - 1/n)
	} else {
		g.goal = failed
	}
	low, high := min(g.accepted, g.goal), g.goal
	g.base = max(math.Cbrt(low*low*high), failed*cut) * (below - unsure/max(n, 2) - jitter*random)
	if g.goal = failed; n >= sure {
		g.goal = max(math.Sqrt(low*high), failed*cut)
	}
}

// An odd answer is a 503 without Retry-After: the page's own trouble as likely as the host's.
const (
	oddWeight = 8  // accepted answers make up for one odd
	oddMost   = 32 // more than four of them, one after the other, are a complaint
)

// unavailable takes note of an odd answer and reports whether it is a complaint.
func (g *governor) unavailable() bool {
	g.odd += oddWeight
	return g.odd > oddMost || g.probing()
}
