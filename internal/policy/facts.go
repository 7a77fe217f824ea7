package policy

import (
	"errors"
	"time"
)

// facts are what is known of an authority's robots.txt, the same under every dialect: the last
// response that said what the file is, and the failures since. Both are immutable; neither there
// means that nothing was ever fetched.
type facts struct {
	copy    *goodCopy
	body    []byte // of copy, on its way to or from a store; nil once copy.reading is made and the body stored
	failure *failure
}

// goodCopy is a response that says what the file is: its text, or that there is none.
type goodCopy struct {
	fetched    instant // or last confirmed
	reading    *reading
	validators *validators // nil: there are none
	maxAge     seconds     // Cache-Control max-age; noMaxAge without one
	age        seconds     // already spent in caches on the way here, when fetched
	status     uint16
	class      class
	hops       uint8 // redirects that led there
	coding     coding
	short      bool // the text goes on after dialect.SizeLimit
	private    bool // it came from a server at a private address
}

const noMaxAge seconds = -1

// validators name a version of the file at its own URL. They are not kept for a file behind a
// redirect, where they would be another URL's.
type validators struct{ etag, modified string }

// newValidators returns nil where there are none.
func newValidators(etag, modified string) *validators {
	if etag == "" && modified == "" {
		return nil
	}
	return &validators{etag, modified}
}

// failure is an unbroken run of fetches that did not say what the file is.
type failure struct {
	first, last instant
	wait        time.Duration // Retry-After of the last; 0: none
	err         error         // of the last
	answered    *moment       // when the site last answered anything else
	status      int           // of the last; 0: no response
	count       int32         // of the last in a row that had a response, or had none
	class       class         // of the last
	silence     *silence      // nil if the last was answered
}

// outcome is what one fetch brought: one of copy, failure and unsent is set.
type outcome struct {
	copy    *goodCopy
	body    []byte
	failure *failure // of one fetch: first and last are the same, count is 1
	unsent  error    // why nothing was asked
}

// after returns the facts once o has come in. A good copy ends the failures; a failure leaves the
// copy alone.
func (f facts) after(o outcome) facts {
	if o.copy != nil {
		return facts{copy: o.copy, body: o.body}
	}
	return facts{f.copy, f.body, f.failure.then(o.failure)}
}

// forbidden reports whether the file was not asked for at all, because of who asked.
func (x *failure) forbidden() bool {
	return x != nil && x.class == noResponse && errors.Is(x.err, ErrForbidden)
}

// then returns the run x with one more failure, next, at its end. A nil run begins with it.
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

// alike reports whether x and y both had a response at last, or both had none. How soon to try
// again is counted for each kind.
func (x *failure) alike(y *failure) bool { return (x.class == noResponse) == (y.class == noResponse) }

// merge joins what two know of one authority: the newer copy, and the failures since then, from the
// earliest.
func (f facts) merge(g facts) facts {
	if f.copy == nil || g.copy != nil && g.copy.fetched > f.copy.fetched {
		f.copy, f.body, g.copy, g.body = g.copy, g.body, f.copy, f.body
	}
	f.failure = f.failure.merge(g.failure)
	if f.failure == nil || f.copy == nil || f.failure.first > f.copy.fetched {
		return f
	}
	if f.failure.last <= f.copy.fetched {
		f.failure = nil
		return f
	}
	// The copy came in between: only the last failure is known to be later.
	run := *f.failure
	run.first, run.count = run.last, 1
	f.failure = &run
	return f
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
