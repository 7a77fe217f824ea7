package policy

import (
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

const (
	day     = 24 * time.Hour
	forever = 100 * 365 * day
)

// class is the kind of response to a fetch of robots.txt, after redirects. Stored records contain
// these numbers.
type class uint8

const (
	noResponse       class = iota // no complete response, or a body that cannot be decoded
	undefined                     // an undefined status, or a redirect that must not be followed
	ok                            // 200
	success                       // any other 2xx
	tooManyRedirects              // more redirects than the dialect follows
	clientError                   // 4xx except 429
	throttled                     // 429
	serverError                   // 5xx
	classes                       // the number of classes
)

// definite reports whether the response determines the content of the file. Other responses are
// failures, which do not replace the last good copy.
func (c class) definite() bool { return c.hasText() || c == clientError || c == tooManyRedirects }

// hasText reports whether the body of the response is a robots.txt.
func (c class) hasText() bool { return c == ok || c == success }

// action is how a dialect treats a class of responses.
type action uint8

const (
	outage action = iota // the file cannot be read: the stages of the table apply
	down                 // the site does not respond
	open                 // no restriction
	follow               // the rules of the body apply
)

// stage is a period of an outage. It begins when the outage has lasted for from, and then the
// fallback applies.
type stage struct {
	from time.Duration
	then fallback
}

// fallback says what applies while the file cannot be read.
type fallback uint8

const (
	stop           fallback = iota // nothing is allowed
	copyElseOpen                   // the last good copy; without one, no restriction
	openIfAnswered                 // no restriction if the site answers other requests; otherwise nothing is allowed
)

// accessTable says how one dialect interprets the responses to GET /robots.txt: the access results
// of RFC 9309, section 2.3.1, and how long they are kept.
type accessTable struct {
	on              [classes]action
	redirects       int           // how many are followed
	sizeLimit       int           // in bytes; the rest of a file is not read
	withCredentials bool          // the first request has the page's credentials
	readsAllBodies  bool          // a response whose body cannot be read is no response, whatever its status
	ignoresCoding   bool          // the text is what the transport returns, whatever Content-Encoding says
	freshFor        time.Duration // the lifetime of a response without Cache-Control
	freshAtMost     time.Duration // the longest lifetime that Cache-Control can set
	openFor         time.Duration // how long a failure allows everything
	retry           backoff       // after a response with a failure status
	retryUnreadable backoff       // after a response that cannot be decoded
	retryUnanswered backoff       // after a fetch without a complete response, see unanswered
	stages          []stage       // of an outage
	conditional     bool          // sends If-None-Match and If-Modified-Since
	ignoresDelay    bool          // does not support Crawl-delay
	forbidden       Access        // Options.WhenForbidden
}

// backoff is a pause that doubles from first to most.
type backoff struct{ first, most time.Duration }

// shortest is the minimum lifetime of a response, whatever Cache-Control says. Without it, the
// robots.txt of a site that forbids caching would be fetched before every page.
const shortest = time.Minute

// rfc9309 follows RFC 9309, sections 2.3.1 (access results) and 2.4 (caching). After 30 days
// without a readable file, section 2.3.1.4 lets a crawler either assume that there is no file or
// continue to use a cached copy. The table uses the copy if there is one, because that is more
// careful.
var rfc9309 = accessTable{
	on: [classes]action{
		ok:               follow,
		success:          follow,
		clientError:      open,
		throttled:        open,
		tooManyRedirects: open,
		serverError:      outage,
		undefined:        outage,
		noResponse:       outage,
	},
	redirects:       5,
	sizeLimit:       dialect.SizeLimit,
	freshFor:        day,
	freshAtMost:     day,
	openFor:         time.Hour,
	retry:           backoff{first: time.Minute, most: 6 * time.Hour},
	retryUnreadable: backoff{first: time.Minute / 8, most: 6 * time.Hour},
	retryUnanswered: backoff{first: time.Second / 10, most: 6 * time.Hour},
	stages:          []stage{{0, stop}, {30 * day, copyElseOpen}},
	conditional:     true,
}

// google follows "How Google interprets the robots.txt specification", sections "Handling of errors
// and HTTP status codes" and "Caching". That page has no limit for a longer max-age, so the week is
// our choice.
var google = accessTable{
	on: [classes]action{
		ok:               follow,
		success:          follow,
		clientError:      open,
		tooManyRedirects: open,
		throttled:        outage,
		serverError:      outage,
		undefined:        outage,
		noResponse:       outage,
	},
	redirects:       5,
	sizeLimit:       dialect.SizeLimit,
	freshFor:        day,
	freshAtMost:     7 * day,
	retry:           backoff{first: time.Minute, most: time.Hour},
	retryUnreadable: backoff{first: time.Minute / 8, most: time.Hour},
	retryUnanswered: backoff{first: time.Second / 10, most: time.Hour},
	stages:          []stage{{0, stop}, {12 * time.Hour, copyElseOpen}, {12*time.Hour + 30*day, openIfAnswered}},
	ignoresDelay:    true,
}

// cocCoc follows Coc Coc's webmaster help, "Robots.txt": only 200 OK has rules, any other response
// means unrestricted access, and without a response the site is excluded for a while. The page does
// not say for how long. A period that grows from ten minutes to a day is our choice.
var cocCoc = accessTable{
	on: [classes]action{
		ok:               follow,
		success:          open,
		clientError:      open,
		throttled:        open,
		serverError:      open,
		undefined:        open,
		tooManyRedirects: open,
		noResponse:       down,
	},
	redirects:       5,
	sizeLimit:       dialect.SizeLimit,
	freshFor:        day,
	freshAtMost:     day,
	openFor:         time.Hour,
	retryUnreadable: backoff{first: 10 * time.Minute, most: day},
	retryUnanswered: backoff{first: 10 * time.Minute, most: day},
	conditional:     true,
}

// original1994 is rfc9309 without Crawl-delay. The only access result in the text of 1994 is that
// without a file there are no rules, and RFC 9309 agrees.
var original1994 = func() accessTable {
	t := rfc9309
	t.ignoresDelay = true
	return t
}()

// yandex follows Yandex's webmaster help, "Using robots.txt": a file that does not meet the
// requirements restricts nothing (one of them is that the server answers with 200 OK), and a
// redirect to the file of another site is followed. The page does not say what holds without an
// answer or how many redirects are followed, so these are as in RFC 9309.
var yandex = func() accessTable {
	t := rfc9309
	t.on = [classes]action{
		ok:               follow,
		success:          open,
		clientError:      open,
		throttled:        open,
		serverError:      open,
		undefined:        open,
		tooManyRedirects: open,
		noResponse:       outage,
	}
	t.ignoresDelay = true
	return t
}()

// seznam is rfc9309 without Crawl-delay. Seznam's help says nothing about the answers to GET
// /robots.txt.
var seznam = original1994

// temoto does the same as the built-in check of Colly v2.3.0 with temoto/robotstxt v1.1.2. A 5xx
// allows everything. A file that was read is never read again. A fetch that failed fails the page,
// and the next page fetches again. The check reads the body of every response. Colly accepts the
// response to the tenth request, so it follows nine redirects. The check has no limit of size; the
// limit here saves memory.
var temoto = accessTable{
	on: [classes]action{
		ok:               follow,
		success:          follow,
		clientError:      open,
		throttled:        open,
		serverError:      open,
		undefined:        outage,
		tooManyRedirects: outage,
		noResponse:       outage,
	},
	redirects:       9,
	sizeLimit:       4 << 20,
	withCredentials: true,
	readsAllBodies:  true,
	ignoresCoding:   true,
	freshFor:        forever,
	openFor:         forever,
	stages:          []stage{{0, stop}},
	ignoresDelay:    true,
}

// tableOf returns the table of a dialect. Each dialect has a case here.
func tableOf(d dialect.Dialect) *accessTable {
	switch d {
	case dialect.RFC9309():
		return &rfc9309
	case dialect.Google():
		return &google
	case dialect.CocCoc():
		return &cocCoc
	case dialect.Original1994():
		return &original1994
	case dialect.Temoto():
		return &temoto
	case dialect.Yandex():
		return &yandex
	case dialect.Seznam():
		return &seznam
	}
	panic("policy: no accessTable for the dialect " + d.String())
}
