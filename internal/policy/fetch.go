package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Doer performs exactly one HTTP exchange and follows no redirect. It must end soon after the
// request's context does. The body is closed when what was fetched is known to others, or by the
// Doer when it is called for the next hop. What it does before it sends, such as waiting until the
// host may be asked again, belongs in [Wait]. The request's Response is the redirect that led to it,
// if one did.
type Doer func(req *http.Request) (*http.Response, error)

// Fetch says how a robots.txt is fetched. The requests also have the values of the context of Get,
// but do not end with it.
type Fetch struct {
	Do        Doer
	UserAgent string
	Limit     time.Duration // what the fetch may take, if that is shorter than FetchLimit; 0: FetchLimit

	// Way is how the file is asked for: what was not answered is asked for again in another way.
	Way Way

	// Proxy returns the proxy that the last request has gone through, or "". Where the requests take
	// turns with proxies, nothing is concluded from one that was not answered. Proxy may be nil.
	Proxy func() string

	// Header is sent with each request. Another host that a redirect leads to does not get the
	// credentials for a proxy.
	Header http.Header

	// AsPage returns the header of a request for a URL that has the credentials of the page for which
	// robots.txt is fetched, such as its cookies. It replaces Header where the site refuses a
	// request without them, and is never used for another host that a redirect leads to. It
	// returns nil if there are no credentials. AsPage may be nil.
	AsPage func(u *url.URL) http.Header
}

// A Way is how a file is asked for. Its values must be comparable.
type Way struct {
	Client any // the client, its proxy and its time limit
	Caller any // what uses the client
}

// FetchLimit is the time one fetch may take: all of its exchanges and bodies, but not the waits in
// [Wait]. A shorter Limit of a [Fetch] begins anew where a request through a proxy has used it up.
const FetchLimit = 30 * time.Second

func (f Fetch) limit() time.Duration {
	if f.Limit > 0 {
		return min(f.Limit, FetchLimit)
	}
	return FetchLimit
}

// fetch asks for a's robots.txt. If the dialect allows it and known has a copy, it asks whether
// that still holds. before is the silence of the last fetch, if that was made in the same way; it
// may be nil. look is what [Wanted] returns. done is to be called when the outcome is where others
// find it: until then the server is not given back.
func (c *Cache) fetch(ctx context.Context, a dialect.Authority, known facts, before *silence, how Fetch, look func() error) (o outcome, done func()) {
	host, name := Server(a)
	robots, err := url.Parse(dialect.Authority{Scheme: a.Scheme, Host: host}.RobotsURL())
	if err != nil {
		return failed(noResponse, err), func() {}
	}
	f := fetcher{Fetch: how, table: c.access, parent: ctx, name: name, asPage: c.access.asPage}
	if before == nil {
		f.tries = moreTries
	} else {
		f.route = before.route
	}
	if c.access.conditional && known.copy != nil && known.copy.validators != nil {
		f.known = known
	}
	if c.options.Store != nil {
		f.parent = context.WithValue(ctx, wantedKey{}, sync.OnceValue(look))
	}
	f.wind()
	o = f.fetch(robots)
	if o.unanswered() {
		o.failure.silence = c.access.silence(how.Way, f.route, before, f.used())
	}
	if o.copy != nil && c.options.Private != nil {
		o.copy.private = c.options.Private(a)
	}
	return o, f.close
}

type wantedKey struct{}

// Wanted returns what a [Doer] calls, with the context of its request, when it has won the server
// from other processes and before it sends: one of them may have put the file into the store
// meanwhile. The Doer returns its error, if there is one. It is nil if nobody else can have done
// that.
func Wanted(ctx context.Context) func() error {
	f, _ := ctx.Value(wantedKey{}).(func() error)
	return f
}

// fetcher is one fetch of one robots.txt under way.
type fetcher struct {
	Fetch
	table    *accessTable
	parent   context.Context
	ctx      context.Context // ends when the time is up
	clocks   []*clock        // the last one is that of ctx
	tries    int             // more to make where there is no response
	name     string          // of the Host header; "": the URL's host
	known    facts           // the copy to ask for again by its validators, if there is one
	asPage   bool            // the credentials of the page are sent
	left     bool            // a redirect has led to another host
	route    route           // of the requests
	redirect *http.Response  // that led to the next request; nil for the first one

	open []io.Closer // the bodies of the responses
}

// wind gives the fetch all its time.
func (f *fetcher) wind() {
	ctx, c := withClock(f.parent, f.limit())
	f.ctx = ctx
	f.clocks = append(f.clocks, c)
}

// used returns how much time the fetch has used.
func (f *fetcher) used() (sum time.Duration) {
	for _, c := range f.clocks {
		sum += c.used()
	}
	return sum
}

func (f *fetcher) close() {
	for _, body := range f.open {
		body.Close()
	}
	for _, c := range f.clocks {
		c.release()
	}
}

// moreTries is how often a fetch asks again where there is no response: a connection breaks now and
// then, and the next one may take another proxy.
const moreTries = 2

// fetch asks for the file at robots. If the site refuses it, and the page has credentials that were
// not sent, fetch asks once more with them. Panics of the Doer become a failure.
func (f *fetcher) fetch(robots *url.URL) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = failed(noResponse, &PanicError{v})
		}
	}()
	name := f.name
	o = f.follow(robots)
	if !o.refused() || f.asPage || !f.hasCredentials(robots) || ended(f.ctx) {
		return o
	}
	f.asPage, f.left, f.name = true, false, name
	if admitted := f.follow(robots); admitted.unsent == nil && !admitted.refused() {
		return admitted
	}
	return o
}

// refused reports whether a request with the credentials of the page may have another outcome. A
// site that asks for patience, by status 429 or by Retry-After, is not asked again.
func (o outcome) refused() bool {
	switch {
	case o.copy != nil && o.copy.class == tooManyRedirects:
		return true
	case o.copy != nil:
		s := o.copy.status
		return s == http.StatusUnauthorized || s == http.StatusForbidden || s == http.StatusProxyAuthRequired
	case o.failure == nil:
		return false
	}
	return o.failure.class != throttled && o.failure.wait == 0 && !o.failure.forbidden()
}

func (f *fetcher) hasCredentials(u *url.URL) bool {
	return f.AsPage != nil && f.AsPage(u) != nil
}

// follow asks for the file at robots and follows its redirects hop by hop.
func (f *fetcher) follow(robots *url.URL) outcome {
	at := robots
	f.redirect = nil
	for hops := 0; ; hops++ {
		o, next := f.hop(f.ctx, at, hops)
		for o.noResponse() && f.mayTryAgain() {
			f.asPage = f.asPage || f.hasCredentials(robots)
			o, next = f.hop(f.ctx, at, hops)
		}
		if next == nil {
			return o
		}
		f.left = f.left || !sameSite(at, next)
		at = next
	}
}

// mayTryAgain reports whether to ask once more where there was no response. A proxy that hangs is
// left for the next one; a host that hangs is not asked again.
func (f *fetcher) mayTryAgain() bool {
	if f.tries == 0 || f.parent.Err() != nil {
		return false
	}
	if ended(f.ctx) {
		if f.route.fixed() || f.limit()*time.Duration(len(f.clocks)+1) > FetchLimit {
			return false
		}
		f.wind()
	}
	f.tries--
	return true
}

// sameSite reports whether what may be sent to the URL from may be sent to the URL to: both are on
// one host, and the way there is no less secure.
func sameSite(from, to *url.URL) bool {
	a, errA := dialect.AuthorityOf(from)
	b, errB := dialect.AuthorityOf(to)
	return errA == nil && errB == nil && a.Host == b.Host && (a.Scheme == b.Scheme || b.Scheme == "https")
}

// hop asks for the file at one URL. It returns where a redirect leads that is to be followed, or
// else the outcome.
func (f *fetcher) hop(ctx context.Context, at *url.URL, hops int) (o outcome, next *url.URL) {
	resp, err := f.send(ctx, at, hops)
	switch {
	case errors.Is(err, ErrUnsent):
		return outcome{unsent: err}, nil
	case errors.Is(err, ErrForbidden) && hops > 0:
		return failed(undefined, err), nil
	case errors.Is(err, ErrForbidden):
		return failed(noResponse, err), nil
	case err != nil:
		return failed(noResponse, &NoResponseError{f.noHeaders(f.cause(ctx, err))}), nil
	}
	next, found := location(resp, at)
	if !found {
		return f.last(ctx, resp, hops), nil
	}
	if to, err := url.Parse(resp.Header.Get("Location")); err != nil || to.IsAbs() {
		f.name = "" // as net/http does
	}
	switch {
	case next == nil:
		err := &RedirectError{resp.StatusCode, resp.Header.Get("Location"), hops}
		return failed(undefined, err).status(resp), nil
	case hops == f.table.hops:
		return tooMany(resp, hops+1), nil
	}
	f.redirect = resp
	return outcome{}, next
}

// noHeaders returns the error of a request that has no response because of err. If the time limit of
// the client was used up, it contains the words of net/http, for which some programs look.
func (f *fetcher) noHeaders(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && f.limit() == f.Limit {
		return fmt.Errorf("%w (Client.Timeout exceeded while awaiting headers)", err)
	}
	return err
}

// tooMany is the outcome of a chain of redirects that is too long: that of a file which is not
// there.
func tooMany(resp *http.Response, hops int) outcome {
	return outcome{copy: &goodCopy{class: tooManyRedirects, hops: uint8(hops), status: uint16(resp.StatusCode),
		maxAge: noMaxAge, fetched: now()}}
}

// send makes one request with the user agent. It asks for gzip as net/http would, but explicitly:
// otherwise net/http decompresses the body, and the number of compressed bytes has no limit.
func (f *fetcher) send(ctx context.Context, at *url.URL, hops int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if header := f.header(at); header != nil {
		req.Header = header
	}
	req.Response = f.redirect
	req.Header.Set("User-Agent", f.UserAgent)
	req.Header.Set("Accept-Encoding", "gzip")
	if f.name != "" {
		req.Host = f.name
	}
	if hops == 0 && f.known.copy != nil {
		f.known.copy.validators.ask(req.Header)
	}
	resp, err := f.Do(req)
	if f.Proxy != nil {
		f.route.add(f.Proxy())
	}
	if err == nil && (resp == nil || resp.Body == nil) {
		err = errors.New("a response without a body")
	}
	if err == nil {
		f.open = append(f.open, resp.Body)
	}
	return resp, err
}

// header returns a copy of the header for a request for at, which may be nil.
func (f *fetcher) header(at *url.URL) http.Header {
	if f.asPage && !f.left && f.AsPage != nil {
		if header := f.AsPage(at); header != nil {
			return header.Clone()
		}
	}
	header := f.Header.Clone()
	if f.left {
		header.Del("Proxy-Authorization")
	}
	return header
}

func (v *validators) ask(h http.Header) {
	if v.etag != "" {
		h.Set("If-None-Match", v.etag)
	}
	if v.modified != "" {
		h.Set("If-Modified-Since", v.modified)
	}
}

// location returns where a redirect leads: found is false when resp is none, next is nil when it
// may not be followed.
func location(resp *http.Response, at *url.URL) (next *url.URL, found bool) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, false
	}
	to := resp.Header.Get("Location")
	if to == "" {
		return nil, true
	}
	next, err := at.Parse(to)
	if err != nil || next.Host == "" || next.Scheme != "http" && next.Scheme != "https" {
		return nil, true
	}
	next.User, next.Fragment = nil, ""
	return next, true
}

// last reads the response that is no redirect.
func (f *fetcher) last(ctx context.Context, resp *http.Response, hops int) outcome {
	if resp.StatusCode == http.StatusNotModified && hops == 0 && f.known.copy != nil {
		return f.confirmed(resp)
	}
	class := classify(resp.StatusCode)
	if !class.hasText() && f.table.wholeAnswers {
		if _, _, err := f.table.readBody(resp); err != nil {
			return f.unreadable(ctx, err)
		}
	}
	if !class.hasText() {
		drain(resp)
	}
	if !class.definite() {
		return failed(class, &StatusError{resp.StatusCode}).status(resp)
	}
	o := outcome{copy: &goodCopy{class: class, hops: uint8(hops), status: uint16(resp.StatusCode), fetched: now()}}
	o.copy.maxAge, o.copy.age = freshness(resp.Header)
	if !class.hasText() {
		return o
	}
	body, coding, err := f.table.readBody(resp)
	if err != nil {
		return f.unreadable(ctx, err)
	}
	o.body, o.copy.coding, o.copy.fetched = body, coding, now()
	o.copy.short = len(body) > dialect.SizeLimit && !f.table.readsOn()
	if hops == 0 {
		o.copy.validators = newValidators(resp.Header.Get("ETag"), resp.Header.Get("Last-Modified"))
	}
	return o
}

// drain reads a short body that has no rules, so that the connection can be used again for the first
// page. It stops after a second, since the file is not worth a longer wait.
func drain(resp *http.Response) {
	if resp.ContentLength <= 0 || resp.ContentLength > maxDrained {
		return
	}
	limit := time.AfterFunc(time.Second, func() { resp.Body.Close() })
	defer limit.Stop()
	io.CopyN(io.Discard, resp.Body, resp.ContentLength)
}

const maxDrained = 16 << 10

// unreadable is the outcome of a response whose body could not be read because of err.
func (f *fetcher) unreadable(ctx context.Context, err error) outcome {
	if badCoding := (*CodingError)(nil); errors.As(err, &badCoding) {
		return failed(noResponse, err)
	}
	return failed(noResponse, &NoResponseError{f.cause(ctx, err)})
}

// confirmed renews the copy at hand with what a 304 says of it (RFC 9111, section 4.3.4).
func (f *fetcher) confirmed(resp *http.Response) outcome {
	s := *f.known.copy
	s.fetched = now()
	if resp.Header.Get("Cache-Control") != "" {
		s.maxAge, _ = freshness(resp.Header)
	}
	_, s.age = freshness(resp.Header)
	if etag := resp.Header.Get("ETag"); etag != "" {
		s.validators = newValidators(etag, s.validators.modified)
	}
	return outcome{copy: &s, body: f.known.body}
}

func failed(c class, err error) outcome {
	at := now()
	return outcome{failure: &failure{first: at, last: at, count: 1, class: c, err: err, answered: new(moment)}}
}

// noResponse reports whether o is a failure for want of a complete response.
func (o outcome) noResponse() bool {
	none := (*NoResponseError)(nil)
	return o.failure != nil && errors.As(o.failure.err, &none)
}

// unanswered reports whether o says nothing but that this way of asking was of no use.
func (o outcome) unanswered() bool {
	panicked := (*PanicError)(nil)
	return o.noResponse() || o.failure != nil && errors.As(o.failure.err, &panicked)
}

// status notes the response that a failure came with.
func (o outcome) status(resp *http.Response) outcome {
	o.failure.status = resp.StatusCode
	o.failure.wait = RetryAfter(resp.Header, o.failure.last.time())
	return o
}

// cause returns the reason why ctx has ended, or err if it has not.
func (f *fetcher) cause(ctx context.Context, err error) error {
	if !ended(ctx) {
		return err
	}
	return cmp.Or(context.Cause(ctx), errTimeLimit(f.limit()))
}

// ended reports whether ctx has ended, or is about to: a transport that looks at the deadline may
// return before ctx ends.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
