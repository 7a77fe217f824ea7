package policy

import (
	"sync/atomic"
	"time"
)

// facts are what is known of an authority's robots.txt, the same under every dialect: the last settled answer, and
// the failures since. Both are immutable; neither there means that nothing was ever fetched.
type facts struct {
	copy    *settled
	failure *failure
}

// settled is an answer that tells what the file is: its text, or that there is none.
type settled struct {
	class  class
	hops   uint8 // redirects that led there
	status uint16
	maxAge seconds // Cache-Control max-age; noMaxAge without one
	age    seconds // already spent in caches on the way here, when fetched
	at     int64   // unix nanoseconds: fetched, or last confirmed

	tag     validators
	reading *reading // of the body; nil when there is none to read
}

func (s *settled) fetched() time.Time { return time.Unix(0, s.at) }

// seconds is a duration in whole seconds, small because a cache holds very many of them.
type seconds int32

const noMaxAge seconds = -1

func (s seconds) duration() time.Duration { return time.Duration(s) * time.Second }

// validators name a version of the file at its own URL. They are not kept for a file behind a redirect, where they
// would be another URL's.
type validators struct{ etag, modified string }

// failure is an unbroken run of fetches that did not tell what the file is.
type failure struct {
	first, last time.Time
	count       int
	class       class         // of the last
	status      int           // of the last; 0: no response
	wait        time.Duration // Retry-After of the last; 0: none
	err         error
	answered    *moment // when the site last answered anything else
}

// outcome is what one fetch brought: exactly one of the two is set.
type outcome struct {
	copy    *settled
	failure *failure // of one fetch: first and last are the same, count is 1
}

// after returns the facts once o has come in. A settled answer ends the failures; a failure leaves the copy alone.
func (f facts) after(o outcome) facts {
	if o.copy != nil {
		return facts{copy: o.copy}
	}
	if f.failure == nil {
		return facts{f.copy, o.failure}
	}
	run := *o.failure
	run.first = f.failure.first
	run.count = f.failure.count + 1
	run.answered = f.failure.answered
	return facts{f.copy, &run}
}

// verdict is what facts mean, and until when.
type verdict struct {
	meaning Meaning
	expires time.Time
}

// judge is the whole life of a policy: what f means under r. What has expired has to be fetched.
func (r *row) judge(f facts) verdict {
	switch {
	case f.failure != nil:
		return r.failing(f)
	case f.copy == nil:
		return verdict{meaning: Unreachable}
	}
	v := verdict{r.content(f.copy), f.copy.fetched()}
	if v.meaning != Unreachable {
		v.expires = v.expires.Add(r.lifetime(f.copy))
	}
	return v
}

func (r *row) failing(f facts) verdict {
	last := f.failure.last
	switch r.on[f.failure.class] {
	case open:
		return verdict{NoRestriction, last.Add(max(r.openFor, f.failure.wait))}
	case down:
		return verdict{SiteDown, last.Add(r.retry.after(f.failure))}
	default:
		then, next := r.staged(f.failure)
		return verdict{r.relieve(then, f), next}
	}
}

// staged returns the stage of an outage, and when to try again. A stage begins with a try that fails in it, not with
// its time alone: nobody is let in before the file has been asked for once more.
func (r *row) staged(x *failure) (then relief, next time.Time) {
	next = x.last.Add(r.retry.after(x))
	for _, s := range r.outage {
		begins := x.first.Add(s.from)
		if x.last.Before(begins) {
			if begins.Before(next) {
				next = begins
			}
			break
		}
		then = s.then
	}
	return then, next
}

func (r *row) relieve(then relief, f facts) Meaning {
	switch {
	case then == copyElseOpen && f.copy != nil:
		return r.content(f.copy)
	case then == copyElseOpen:
		return NoRestriction
	case then == openIfAnswered && f.failure.answered.within(f.failure.last, answers):
		return NoRestriction
	default:
		return Unreachable
	}
}

// content is what a settled answer means.
func (r *row) content(s *settled) Meaning {
	class := s.class
	if int(s.hops) > r.hops {
		class = astray
	}
	switch r.on[class] {
	case follow:
		return Rules
	case open:
		return NoRestriction
	default:
		return Unreachable
	}
}

// answers is how long an answer of a page shows that the site is generally available.
const answers = 7 * day

// lifetime is how long a settled answer is good for, from when it was fetched.
func (r *row) lifetime(s *settled) time.Duration {
	if s.maxAge == noMaxAge || r.most == 0 {
		return r.fresh
	}
	return min(max((s.maxAge-s.age).duration(), shortest), r.most)
}

// after is the pause before the next try: it doubles with each failure, and Retry-After can make it longer.
func (b backoff) after(f *failure) time.Duration {
	wait := b.first
	for i := 1; i < f.count && wait < b.most; i++ {
		wait *= 2
	}
	wait = min(wait, b.most)
	return max(wait, f.wait)
}

// moment is an instant that many may set and read; nil and the zero value: never.
type moment struct{ nanos atomic.Int64 }

func (m *moment) set(t time.Time) { m.nanos.Store(t.UnixNano()) }

// time returns the instant, in UTC; the zero time: never.
func (m *moment) time() time.Time {
	if m == nil || m.nanos.Load() == 0 {
		return time.Time{}
	}
	return time.Unix(0, m.nanos.Load()).UTC()
}

func (m *moment) within(now time.Time, d time.Duration) bool { return now.Sub(m.time()) < d }
