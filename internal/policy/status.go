package policy

import "time"

// status returns the RobotsStatus that f has under t, and when it expires. After that the file has
// to be fetched.
func (t *accessTable) status(f facts) (s RobotsStatus, expires instant) {
	switch {
	case f.failure != nil:
		return t.statusInFailure(f)
	case f.copy == nil:
		return Unreachable, 0
	}
	s = t.statusOf(f.copy)
	if s == Unreachable && !t.decidesForbidden(f.copy) {
		return s, f.copy.fetched
	}
	return s, f.copy.fetched.add(t.lifetime(f.copy))
}

// statusInFailure is status while the file cannot be read.
func (t *accessTable) statusInFailure(f facts) (s RobotsStatus, expires instant) {
	last := f.failure.last
	switch t.on[f.failure.class] {
	case open:
		if f.failure.nextProxy() {
			return NoRobots, last
		}
		return NoRobots, last.add(max(t.openFor, f.failure.wait))
	case down:
		return SiteDown, last.add(t.pause(f.failure))
	default:
		then, next := t.stageOf(f.failure)
		return t.fallBack(then, f), next
	}
}

// stageOf returns the fallback at the current stage of an outage, and when to try again. When the
// time of a stage has come, the stage begins with the next fetch that fails. So the file is
// requested once more before a stage allows pages.
func (t *accessTable) stageOf(x *failure) (then fallback, next instant) {
	next = x.last.add(t.pause(x))
	for _, s := range t.stages {
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
		return t.statusOf(f.copy)
	case then == copyElseOpen:
		return NoRobots
	case then == openIfAnswered && f.failure.answered.within(f.failure.last, answerCounts):
		return NoRobots
	default:
		return Unreachable
	}
}

// answerCounts is how long the answer of a page shows that the site is generally available.
const answerCounts = 7 * day

// readable returns f without a copy whose text differs from what a fetch under t would have read.
// The file then has to be fetched again.
func (t *accessTable) readable(f facts) facts {
	if f.copy != nil && !t.reads(f.copy) {
		f.copy = nil
		f.body = nil
	}
	return f
}

func (t *accessTable) reads(s *goodCopy) bool {
	if s.short && t.readsLongFiles() {
		return false
	}
	if t.ignoresCoding {
		return s.coding != decoded
	}
	return s.coding != encoded
}

// statusOf returns the RobotsStatus of a good copy.
func (t *accessTable) statusOf(s *goodCopy) RobotsStatus {
	if t.decidesForbidden(s) {
		return t.forbidden.status()
	}
	class := s.class
	if int(s.redirects) > t.redirects {
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

// decidesForbidden reports whether Options.WhenForbidden says how to treat a good copy.
func (t *accessTable) decidesForbidden(s *goodCopy) bool {
	return t.forbidden != ByDialect && s.isForbidden()
}

// lifetime returns how long a good copy is fresh after it was fetched.
func (t *accessTable) lifetime(s *goodCopy) time.Duration {
	if s.given {
		return forever
	}
	if s.maxAge == noMaxAge || t.freshAtMost == 0 {
		return t.freshFor
	}
	return min(max((s.maxAge-s.age).duration(), shortest), t.freshAtMost)
}

// retryProxy is the pause after the first status 5xx through a proxy, unless it is the only one of
// the client. If several requests share proxies that take turns, two requests for a file in a row may
// get the same one.
const retryProxy = time.Second

// pause returns how long to wait before the next fetch. Retry-After can make it longer.
func (t *accessTable) pause(x *failure) time.Duration {
	switch {
	case x.nextProxy():
		return 0
	case x.unanswered != nil && x.class == noResponse:
		return x.unanswered.pause
	}
	b := t.retry
	switch {
	case x.class == noResponse:
		b = t.retryUnreadable
	case x.unanswered != nil && !x.unanswered.route.only:
		b.first = min(b.first, retryProxy)
	}
	return max(b.after(x.count), x.wait)
}

// after returns the pause after a number of failures. It doubles with each of them.
func (b backoff) after(failures int32) time.Duration {
	wait := b.first
	for i := int32(1); i < failures && wait < b.most; i++ {
		wait *= 2
	}
	return min(wait, b.most)
}
