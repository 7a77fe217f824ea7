package collyrobots

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// maxDenials is how often OnDenied is told of one request and its retries while nothing has
// changed: an OnDenied that calls Request.Retry without waiting for anything would go on for ever.
const maxDenials = 10

// denials know how often requests were denied that are retries of each other.
type denials struct {
	mu    sync.Mutex
	known map[denialKey]denial
	sweep int         // when known has this length, requests that cannot be retried any more are dropped
	loops atomic.Bool // isLoop was true once: without that, a page costs no look-up
}

// A denialKey is equal for a request and its retries, because Colly's Request.Retry passes both the
// header map and the Context on. The header map alone is not enough: programs pass one map to many
// calls of Collector.Request.
type denialKey struct {
	header backend.HeaderKey
	ctx    weak.Pointer[colly.Context]
}

func denialKeyOf(r *colly.Request) denialKey {
	return denialKey{header: backend.KeyOf(*r.Headers), ctx: weak.Make(r.Ctx)}
}

// alive reports whether the request can still be retried.
func (k denialKey) alive() bool { return k.header.Alive() && k.ctx.Value() != nil }

// A denial is why a request was denied last, and how often in a row.
type denial struct {
	cause
	count   int
	allowed bool // the page itself was allowed: the target of a redirect was denied, or the address
}

// A cause is equal to another if there is no sense in another try. A robots.txt that was read again
// is another cause, even if it says the same, and so is a Pacer that fails in another second.
type cause struct {
	url, why string
	at       time.Time
}

func causeOf(r *colly.Request, err error) cause {
	if silent := (*policy.NoResponseError)(nil); errors.As(err, &silent) {
		return cause{r.URL.String(), string(ReasonUnreachable), time.Time{}} // each try may have asked once more
	}
	if denied := (*DisallowedError)(nil); errors.As(err, &denied) {
		return cause{r.URL.String(), string(denied.Decision.Reason), denied.Decision.Expires}
	}
	if unpaced := (*PaceError)(nil); errors.As(err, &unpaced) {
		return cause{r.URL.String(), "", time.Now().Truncate(time.Second)}
	}
	return cause{r.URL.String(), err.Error(), time.Time{}}
}

// count notes that a request was denied, and returns how often in a row it was, for the same cause.
// allowed reports whether the page itself was allowed.
func (d *denials) count(r *colly.Request, err error, allowed bool) int {
	key, why := denialKeyOf(r), causeOf(r, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= d.sweep {
		d.forget()
	}
	now := d.known[key]
	if now.cause != why {
		now = denial{cause: why}
	}
	now.count++
	now.allowed = allowed
	d.known[key] = now
	if allowed && now.count >= maxDenials {
		d.loops.Store(true)
	}
	return now.count
}

// isLoop reports whether a request was denied so often after its page was allowed that a retry of it
// is a loop. Such a retry may succeed, because the redirect may lead elsewhere by now.
func (d *denials) isLoop(r *colly.Request) bool {
	if !d.loops.Load() {
		return false
	}
	key, url := denialKeyOf(r), r.URL.String()
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.known[key]
	return last.allowed && last.url == url && last.count >= maxDenials
}

// inVain reports whether a request was denied so often, for the same cause, that a retry of it is a
// loop.
func (d *denials) inVain(r *colly.Request, err error) bool {
	key, why := denialKeyOf(r), causeOf(r, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.known[key]
	return last.cause == why && last.count >= maxDenials
}

// braked notes that the retry of a request has waited, and is still denied for the same cause.
func (d *denials) braked(r *colly.Request, err error) {
	key, why := denialKeyOf(r), causeOf(r, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.known[key]
	last.cause = why
	d.known[key] = last
}

// forget drops the requests that cannot be retried any more. d.mu is held.
func (d *denials) forget() {
	if d.known == nil {
		d.known = make(map[denialKey]denial)
	}
	for key := range d.known {
		if !key.alive() {
			delete(d.known, key)
		}
	}
	d.sweep = 2*len(d.known) + 64
}

// dryDenials are the requests of a dry run that would have been denied, and why, until their
// responses are there. OnDenied may call Retry, which uses the headers and the body of the request,
// so it cannot be called while the request itself uses them.
type dryDenials struct{ errs sync.Map } // error by weak.Pointer[colly.Request]

func (d *dryDenials) put(r *colly.Request, err error) {
	key := weak.Make(r)
	d.errs.Store(key, err)
	runtime.AddCleanup(r, func(key weak.Pointer[colly.Request]) { d.errs.Delete(key) }, key) // a later callback may abort it
}

// take returns why r would have been denied, once, or nil.
func (d *dryDenials) take(r *colly.Request) error {
	err, ok := d.errs.LoadAndDelete(weak.Make(r))
	if !ok {
		return nil
	}
	return err.(error)
}

// A refusedError says why the plugin refused a request. net/http puts it into a *url.Error.
type refusedError struct {
	cause error
	url   string // of the request
}

// Error returns the text of the cause. If that begins with the URL of the request, the URL is left
// out: the *url.Error has it.
func (e *refusedError) Error() string {
	return strings.Replace(e.cause.Error(), e.url+" denied: ", "denied: ", 1)
}

func (e *refusedError) Unwrap() error { return e.cause }

// Timeout makes that method of *url.Error report whether the cause is a timeout.
func (e *refusedError) Timeout() bool {
	timeout := interface{ Timeout() bool }(nil)
	return errors.As(e.cause, &timeout) && timeout.Timeout()
}

// whyUnsent returns why the plugin did not let the transport send a request that failed with err. It
// returns nil if the request was sent, or failed for another reason.
func whyUnsent(err error) error {
	refused := (*refusedError)(nil)
	if errors.As(err, &refused) {
		return refused.cause
	}
	denied := (*DisallowedError)(nil)
	if errors.As(err, &denied) {
		return denied
	}
	private := (*PrivateNetworkError)(nil)
	foreign, unpaced := (*ShardError)(nil), (*PaceError)(nil)
	if errors.Is(err, ErrClosed) || errors.As(err, &private) || errors.As(err, &foreign) || errors.As(err, &unpaced) {
		return err // a second attempt, or a connection to an address that was not known before
	}
	return nil
}
