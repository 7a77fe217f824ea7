package policy

import "time"

// meaning is the whole life of a policy: what f means under t, and until when. What has expired has
// to be fetched.
func (t *accessTable) status(f facts) (s RobotsStatus, expires instant) {
	switch {
	case f.failure != nil:
		return t.failing(f)
	case f.copy == nil:
		return Unreachable, 0
	}
	s = t.content(f.copy)
	if s == Unreachable {
		return s, f.copy.fetched
	}
	return s, f.copy.fetched.add(t.lifetime(f.copy))
}

// failing is what f means while the file cannot be read.
func (t *accessTable) failing(f facts) (s RobotsStatus, expires instant) {
	last := f.failure.last
	switch t.on[f.failure.class] {
	case open:
		return NoRobots, last.add(max(t.openFor, f.failure.wait))
	case down:
		return SiteDown, last.add(t.pause(f.failure))
	default:
		then, next := t.staged(f.failure)
		return t.fallBack(then, f), next
	}
}

// staged returns what holds at this stage of an outage, and when to try again. A stage begins with
// a try that fails in it, not with its time alone: nobody is let in before the file has been asked
// for once more.
func (t *accessTable) staged(x *failure) (then fallback, next instant) {
	next = x.last.add(t.pause(x))
	for _, s := range t.outage {
		begins := x.first.add(s.from)
		if x.last < begins {
			next = min(next, begins)
			break
		}
		then = s.then
	}
	return then, next
}

func (t *accessTable) fallBack(then fallback, f facts) RobotsStatus {
	switch {
	case then == copyElseOpen && f.copy != nil:
		return t.content(f.copy)
	case then == copyElseOpen:
		return NoRobots
	case then == openIfAnswered && f.failure.answered.within(f.failure.last, answersCount):
		return NoRobots
	default:
		return Unreachable
	}
}

// answersCount is how long the answer of a page shows that the site is generally available.
const answersCount = 7 * day

// readable returns f without a copy whose text is not as a fetch under t would have read it. Then
// the file has to be fetched once more.
func (t *accessTable) readable(f facts) facts {
	if f.copy != nil && !t.reads(f.copy) {
		f.copy, f.body = nil, nil
	}
	return f
}

func (t *accessTable) reads(s *goodCopy) bool {
	if s.short && t.readsOn() {
		return false
	}
	if t.asSent {
		return s.coding != decoded
	}
	return s.coding != encoded
}

// content is what a good copy means.
func (t *accessTable) content(s *goodCopy) RobotsStatus {
	class := s.class
	if int(s.hops) > t.hops {
		class = tooManyRedirects
	}
	switch t.on[class] {
	case follow:
		return Rules
	case open:
		return NoRobots
	default:
		return Unreachable
	}
}

// lifetime is how long a good copy is good for, from when it was fetched.
func (t *accessTable) lifetime(s *goodCopy) time.Duration {
	if s.maxAge == noMaxAge || t.most == 0 {
		return t.fresh
	}
	return min(max((s.maxAge-s.age).duration(), shortest), t.most)
}

// pause is how long to wait before the next try. Retry-After can make it longer.
func (t *accessTable) pause(x *failure) time.Duration {
	if x.silence != nil {
		return x.silence.pause
	}
	b := t.retry
	if x.class == noResponse {
		b = t.retryNoResponse
	}
	return max(b.after(x.count), x.wait)
}

// after returns the pause after so many failures: it doubles with each.
func (b backoff) after(failures int32) time.Duration {
	wait := b.first
	for i := int32(1); i < failures && wait < b.most; i++ {
		wait *= 2
	}
	return min(wait, b.most)
}
