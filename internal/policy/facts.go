package policy

import (
	"errors"
	"time"
)

// facts are the results of the fetches of an authority's robots.txt, which do not depend on the
// dialect: the last response that determined the content of the file, and the failures since then.
// Both are immutable. If neither is set, nothing was ever fetched.
type facts struct {
	copy    *goodCopy
	body    []byte // of copy, on its way to or from a store; nil once it is parsed and stored
	failure *failure
}

// goodCopy is a response that determines the content of the file: its text, or that it does not
// exist.
type goodCopy struct {
	fetched    instant // or confirmed
	parsed     *parsedFile
	validators *validators // nil if there are none
	maxAge     seconds     // of Cache-Control; noMaxAge if it has none
	age        seconds     // the time in caches before the response arrived
	status     uint16
	class      class
	redirects  uint8 // how many were followed
	coding     coding
	short      bool // the text continues after dialect.SizeLimit
	private    bool // the server has a private address
	walled     bool // it looks like the answer of a bot wall; see Policy.Walled
	given      bool // it is Options.Given: it was not fetched, and is never stored
}

const noMaxAge seconds = -1

// validators identify a version of the file at its own URL. They are not kept for a file behind a
// redirect, because they would belong to another URL.
type validators struct{ etag, modified string }

// newValidators returns nil if there are none.
func newValidators(etag, modified string) *validators {
	if etag == "" && modified == "" {
		return nil
	}
	return &validators{etag: etag, modified: modified}
}

// failure is an unbroken run of fetches that did not determine the content of the file.
type failure struct {
	first, last instant       // when the first and the last of them ended
	wait        time.Duration // Retry-After of the last; 0 if it has none
	err         error         // of the last
	answered    *moment       // when the site last answered another request
	status      int           // of the last; 0 if it had no response
	count       int32         // the last ones in a row that were alike
	class       class         // of the last
	unanswered  *unanswered   // nil if the last had a response of the site
	walled      bool          // the last looks like the answer of a bot wall
}

// outcome is the result of one fetch. One of copy, failure and unsent is set.
type outcome struct {
	copy    *goodCopy
	body    []byte
	failure *failure // of this fetch: first and last are the same, and count is 1
	unsent  error    // why nothing was sent
}

// after returns f together with o. A good copy ends the failures. A failure leaves the copy
// unchanged.
func (f facts) after(o outcome) facts {
	if o.copy != nil {
		return facts{copy: o.copy, body: o.body}
	}
	return facts{copy: f.copy, body: f.body, failure: f.failure.then(o.failure)}
}

// forbidden reports whether the Doer refused to send the request. It reports false if x is nil.
func (x *failure) forbidden() bool {
	return x != nil && x.class == noResponse && errors.Is(x.err, ErrForbidden)
}

// then returns the run x with one more failure, next, at its end. If x is nil, the run begins with
// next.
func (x *failure) then(next *failure) *failure {
	if x == nil {
		return next
	}
	run := *next
	run.first = x.first
	if x.alike(next) {
		run.count = x.count + 1
	}
	run.answered = x.answered
	return &run
}

// alike reports whether the last fetches of x and y both had a response, or both had none. These
// two kinds are counted separately for the pause before the next fetch.
func (x *failure) alike(y *failure) bool { return (x.class == noResponse) == (y.class == noResponse) }

// merge returns what f and g, two records about one authority, say together: the newer copy, and
// the failures after it, counted from the earliest.
func (f facts) merge(g facts) facts {
	both := facts{copy: f.copy, body: f.body, failure: f.failure.merge(g.failure)}
	if f.copy == nil || g.copy != nil && g.copy.fetched > f.copy.fetched {
		both.copy = g.copy
		both.body = g.body
	}
	if both.failure == nil || both.copy == nil || both.failure.first > both.copy.fetched {
		return both
	}
	if both.failure.last <= both.copy.fetched {
		both.failure = nil
		return both
	}
	// The copy was fetched during the run: only the last failure is known to be later.
	run := *both.failure
	run.first = run.last
	run.count = 1
	both.failure = &run
	return both
}

func (x *failure) merge(y *failure) *failure {
	switch {
	case x == nil:
		return y
	case y == nil || x == y:
		return x
	case y.last > x.last:
		x, y = y, x
	}
	run := *x
	run.first = min(x.first, y.first)
	if x.alike(y) {
		run.count = max(x.count, y.count)
	}
	if y.answered.get() > x.answered.get() {
		run.answered = y.answered
	}
	return &run
}
