package policy

import (
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

const (
	day     = 24 * time.Hour
	forever = 100 * 365 * day
)

// class is what kind of response a fetch of robots.txt brought, redirects followed. The numbers are
// in stored records.
type class uint8

const (
	noResponse       class = iota // none that is complete
	undefined                     // a status nobody defined, or a redirect that leads nowhere it may be followed to
	ok                            // 200
	success                       // another 2xx
	tooManyRedirects              // more than are followed
	clientError                   // 4xx but 429
	throttled                     // 429
	serverError                   // 5xx
	classes                       // how many there are
)

// definite reports whether the response says what the file is. The others are failures: they leave
// the last good copy untouched.
func (c class) definite() bool { return c.hasText() || c == clientError || c == tooManyRedirects }

// hasText reports whether the body of the response is a robots.txt.
func (c class) hasText() bool { return c == ok || c == success }

// action is what a dialect makes of a class.
type action uint8

const (
	outage action = iota // the file cannot be read: the stages of the table
	down                 // nor can the site
	open                 // no restriction
	follow               // the rules of the body
)

// stage is what an outage means from an age on, counted from its first failure.
type stage struct {
	from time.Duration
	then fallback
}

// fallback is what holds in place of a file that cannot be read.
type fallback uint8

const (
	stop           fallback = iota // nothing is allowed
	copyElseOpen                   // the last good copy; without one, no restriction
	openIfAnswered                 // no restriction if the site otherwise answers, else nothing is allowed
)

// accessTable is what a response to GET /robots.txt means under one dialect: the access results of
// RFC 9309, section 2.3.1, and how long they are kept.
type accessTable struct {
	on              [classes]action
	hops            int           // redirects followed
	size            int           // octets read of a file
	asPage          bool          // it is asked for with the page's credentials at once
	wholeAnswers    bool          // an answer with a body that cannot be read is no answer, whatever its status
	asSent          bool          // its text is what the transport hands over, whatever Content-Encoding says
	fresh           time.Duration // a response without Cache-Control is good for
	most            time.Duration // Cache-Control can make that at most
	openFor         time.Duration // no restriction because of a failure holds for
	retry           backoff       // a file that cannot be read is asked for again after
	retryNoResponse backoff       // the same where the response cannot be read
	retrySilence    backoff       // the same where there was none, see silence
	outage          []stage
	conditional     bool // may ask with If-None-Match and If-Modified-Since
	ignoreDelay     bool // does not know Crawl-delay
}

// backoff doubles from first to most.
type backoff struct{ first, most time.Duration }

// shortest is the least time an answer is good for, whatever Cache-Control says: a site that
// forbids caching is not asked for its robots.txt before every page.
const shortest = time.Minute

// rfc9309 is RFC 9309, section 2.3.1 (access results) and 2.4 (caching). A file that stays
// unreachable is replaced by its last copy after 30 days, the careful one of the two choices that
// section 2.3.1.4 gives.
var rfc9309 = accessTable{
	on: [classes]action{
		ok: follow, success: follow,
		clientError: open, throttled: open, tooManyRedirects: open,
		serverError: outage, undefined: outage, noResponse: outage,
	},
	hops: 5, size: dialect.SizeLimit,
	fresh: day, most: day, openFor: time.Hour,
	retry:           backoff{time.Minute, 6 * time.Hour},
	retryNoResponse: backoff{time.Minute / 8, 6 * time.Hour},
	retrySilence:    backoff{time.Second / 10, 6 * time.Hour},
	outage:          []stage{{0, stop}, {30 * day, copyElseOpen}},
	conditional:     true,
}

// google is "How Google interprets the robots.txt specification", section "Handling of errors and
// HTTP status codes" and "Caching". It gives no bound for a longer max-age: a week is ours.
var google = accessTable{
	on: [classes]action{
		ok: follow, success: follow,
		clientError: open, tooManyRedirects: open,
		throttled: outage, serverError: outage, undefined: outage, noResponse: outage,
	},
	hops: 5, size: dialect.SizeLimit,
	fresh: day, most: 7 * day,
	retry:           backoff{time.Minute, time.Hour},
	retryNoResponse: backoff{time.Minute / 8, time.Hour},
	retrySilence:    backoff{time.Second / 10, time.Hour},
	outage:          []stage{{0, stop}, {12 * time.Hour, copyElseOpen}, {12*time.Hour + 30*day, openIfAnswered}},
	ignoreDelay:     true,
}

// cocCoc is Coc Coc's webmaster help, "Robots.txt": rules for 200 OK alone, any other response is
// unrestricted access, no response excludes the site for a while. It names no period: ten minutes
// that grow to a day are ours.
var cocCoc = accessTable{
	on: [classes]action{
		ok:      follow,
		success: open, clientError: open, throttled: open, serverError: open, undefined: open, tooManyRedirects: open,
		noResponse: down,
	},
	hops: 5, size: dialect.SizeLimit,
	fresh: day, most: day, openFor: time.Hour,
	retryNoResponse: backoff{10 * time.Minute, day},
	retrySilence:    backoff{10 * time.Minute, day},
	conditional:     true,
}

// original1994 says nothing of statuses but that a missing file means no rules: the rest is RFC
// 9309's.
var original1994 = func() accessTable {
	r := rfc9309
	r.ignoreDelay = true
	return r
}()

// temoto is what Colly v2.3.0's built-in check does with temoto/robotstxt v1.1.2: a 5xx allows
// everything, what it read it never reads again, and a fetch that failed fails the page and is
// tried again with the next. It reads the body of every answer. Colly takes the response to the
// tenth request for the answer, so it follows nine redirects. The check has no limit of size: the
// one here is what memory allows.
var temoto = accessTable{
	on: [classes]action{
		ok: follow, success: follow,
		clientError: open, throttled: open, serverError: open,
		undefined: outage, tooManyRedirects: outage, noResponse: outage,
	},
	hops: 9, size: 4 << 20, asPage: true, wholeAnswers: true, asSent: true,
	fresh: forever, openFor: forever,
	outage:      []stage{{0, stop}},
	ignoreDelay: true,
}

func tableOf(d dialect.Dialect) *accessTable {
	switch d {
	case dialect.Google():
		return &google
	case dialect.CocCoc():
		return &cocCoc
	case dialect.Original1994():
		return &original1994
	case dialect.Temoto():
		return &temoto
	default:
		return &rfc9309
	}
}
