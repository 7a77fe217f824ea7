package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// fetcher performs one fetch of one robots.txt.
type fetcher struct {
	Fetch
	table           *accessTable
	parent          context.Context
	ctx             context.Context // ends when the time limit is used up
	clocks          []*clock        // the last one is that of ctx
	tries           int             // further attempts if there is no response
	name            string          // of the Host header; if "", it is the URL's host
	known           facts           // the copy for a conditional request, if there is one
	withCredentials bool            // requests have the credentials of the page
	leftHost        bool            // a redirect has led to another host
	route           route           // of the requests
	redirect        *http.Response  // that led to the next request; nil for the first one

	open []io.Closer // the bodies of the responses
}

// startClock gives the fetch a new time limit.
func (f *fetcher) startClock() {
	ctx, c := withClock(f.parent, f.limit())
	f.ctx = ctx
	f.clocks = append(f.clocks, c)
}

// used returns the time that the fetch has used.
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

// moreTries is how often a fetch without a response is repeated: connections break occasionally,
// and the next request may use another proxy.
const moreTries = 2

// fetch requests the file at robots. If the site refuses the request, and the page has credentials
// that were not sent, fetch repeats it with them. A panic of the Doer becomes a failure.
func (f *fetcher) fetch(robots *url.URL) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = failed(noResponse, &PanicError{v})
		}
	}()
	name := f.name
	o = f.follow(robots)
	if !o.refused() || f.withCredentials || !f.hasCredentials(robots) || ended(f.ctx) {
		return o
	}
	f.withCredentials = true
	f.leftHost = false
	f.name = name
	if admitted := f.follow(robots); admitted.unsent == nil && !admitted.refused() {
		return admitted
	}
	return o
}

// refused reports whether a request with the credentials of the page may have another outcome. A
// site that asks the crawler to wait, by status 429 or Retry-After, gets no second request.
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

// follow requests the file at robots and follows its redirects.
func (f *fetcher) follow(robots *url.URL) outcome {
	at := robots
	f.redirect = nil
	for redirects := 0; ; redirects++ {
		o, next := f.request(at, redirects)
		for (o.noResponse() || f.mayAskNextProxy(o)) && f.mayTryAgain() {
			f.withCredentials = f.withCredentials || f.hasCredentials(robots)
			o, next = f.request(at, redirects)
		}
		if next == nil {
			return o
		}
		f.leftHost = f.leftHost || !SameSite(at, next)
		at = next
	}
}

// mayAskNextProxy reports whether o is the answer of a proxy, and the next request may use another
// one. A proxy that asks the crawler to wait, by Retry-After, gets no second request.
func (f *fetcher) mayAskNextProxy(o outcome) bool {
	return o.ofProxy() && o.failure.wait == 0 && !f.route.fixed()
}

// mayTryAgain reports whether to repeat a request that had no response, and counts the attempt. If
// the time limit is used up, only a request that may use another proxy is repeated: a slow proxy
// says nothing about the next one, but a host that hangs gets no second request.
func (f *fetcher) mayTryAgain() bool {
	if f.tries == 0 || f.parent.Err() != nil {
		return false
	}
	if ended(f.ctx) {
		if f.route.fixed() || f.limit()*time.Duration(len(f.clocks)+1) > FetchLimit {
			return false
		}
		f.startClock()
	}
	f.tries--
	return true
}

// SameSite reports whether credentials for the URL from may be sent to the URL to: both have the
// same host, and the connection to the second is no less secure.
func SameSite(from, to *url.URL) bool {
	a, errA := dialect.AuthorityOf(from)
	b, errB := dialect.AuthorityOf(to)
	return errA == nil && errB == nil && a.Host == b.Host && (a.Scheme == b.Scheme || b.Scheme == "https")
}

// request requests the file at one URL, which redirects have led to. It returns the target of a
// redirect to follow, or the outcome.
func (f *fetcher) request(at *url.URL, redirects int) (o outcome, next *url.URL) {
	resp, err := f.send(at, redirects)
	switch {
	case errors.Is(err, ErrUnsent):
		return outcome{unsent: err}, nil
	case errors.Is(err, ErrForbidden) && redirects > 0:
		return failed(undefined, err), nil
	case errors.Is(err, ErrForbidden):
		return failed(noResponse, err), nil
	case err != nil:
		return failed(noResponse, &NoResponseError{f.noHeaders(f.cause(err))}), nil
	}
	next, found := location(resp, at)
	if !found {
		return f.last(resp, redirects), nil
	}
	to := resp.Header.Get("Location")
	if u, err := url.Parse(to); err != nil || u.IsAbs() {
		f.name = "" // as net/http does
	}
	switch {
	case next == nil:
		err := &RedirectError{Status: resp.StatusCode, Location: to, Followed: redirects}
		return failed(undefined, err).withResponse(resp), nil
	case redirects == f.table.redirects:
		return tooMany(resp, redirects+1), nil
	}
	f.redirect = resp
	return outcome{}, next
}

// noHeaders returns the error of a request that has no response because of err. If the time limit
// of the client was used up, the error contains the words of net/http, because some programs search
// for them.
func (f *fetcher) noHeaders(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && f.limit() == f.Limit {
		return fmt.Errorf("%w (Client.Timeout exceeded while awaiting headers)", err)
	}
	return err
}

// tooMany returns the outcome of a chain with too many redirects, which counts as a file that does
// not exist.
func tooMany(resp *http.Response, redirects int) outcome {
	return outcome{copy: &goodCopy{
		class:     tooManyRedirects,
		redirects: uint8(redirects),
		status:    uint16(resp.StatusCode),
		maxAge:    noMaxAge,
		fetched:   now(),
	}}
}

// send sends one request. It asks for gzip as net/http would, but explicitly. Otherwise net/http
// would decompress the body, and the number of compressed bytes would have no limit.
func (f *fetcher) send(at *url.URL, redirects int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(f.ctx, http.MethodGet, at.String(), nil)
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
	if redirects == 0 && f.known.copy != nil {
		f.known.copy.validators.addTo(req.Header)
	}
	resp, err := f.Do(req)
	if f.Proxy != nil {
		f.route.add(f.Proxy())
	}
	if err == nil && (resp == nil || resp.Body == nil) {
		err = errors.New("the response has no body")
	}
	if err == nil {
		f.open = append(f.open, resp.Body)
	}
	return resp, err
}

// header returns a copy of the header for a request for at. It may be nil.
func (f *fetcher) header(at *url.URL) http.Header {
	if f.withCredentials && !f.leftHost && f.AsPage != nil {
		if header := f.AsPage(at); header != nil {
			return header.Clone()
		}
	}
	header := f.Header.Clone()
	if f.leftHost {
		header.Del("Proxy-Authorization")
	}
	return header
}

// addTo makes a request conditional.
func (v *validators) addTo(h http.Header) {
	if v.etag != "" {
		h.Set("If-None-Match", v.etag)
	}
	if v.modified != "" {
		h.Set("If-Modified-Since", v.modified)
	}
}

// location returns the target of a redirect. It reports false if resp is no redirect. The target is
// nil if it must not be followed.
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
	next.User = nil
	next.Fragment = ""
	return next, true
}

// last returns the outcome of a response that is no redirect.
func (f *fetcher) last(resp *http.Response, redirects int) outcome {
	if resp.StatusCode == http.StatusNotModified && redirects == 0 && f.known.copy != nil {
		return f.confirmed(resp)
	}
	class := classify(resp.StatusCode)
	if !class.hasText() {
		return f.withoutText(resp, class, redirects)
	}
	s := newCopy(resp, class, redirects)
	body, coding, err := f.table.readBody(resp)
	if err != nil {
		return f.unreadable(err)
	}
	s.coding = coding
	s.walled = isWall(resp, body)
	s.fetched = now()
	s.short = len(body) > dialect.SizeLimit && !f.table.readsLongFiles()
	if redirects == 0 {
		s.validators = newValidators(resp.Header.Get("ETag"), resp.Header.Get("Last-Modified"))
	}
	return outcome{copy: s, body: body}
}

// withoutText returns the outcome of a response whose body has no rules.
func (f *fetcher) withoutText(resp *http.Response, class class, redirects int) outcome {
	text, err := f.beginning(resp)
	if err != nil {
		return f.unreadable(err)
	}
	walled := isWall(resp, text)
	if !class.definite() {
		o := failed(class, f.statusError(class, resp.StatusCode)).withResponse(resp)
		o.failure.walled = walled
		return o
	}
	s := newCopy(resp, class, redirects)
	s.walled = walled
	return outcome{copy: s}
}

// beginning reads a body that has no rules, and returns at least its beginning if it is short. An error
// counts only for a dialect that reads all bodies.
func (f *fetcher) beginning(resp *http.Response) ([]byte, error) {
	if !f.table.readsAllBodies {
		return drain(resp), nil
	}
	text, _, err := f.table.readBody(resp)
	return text, err
}

// newCopy returns the copy of a response of a definite class.
func newCopy(resp *http.Response, class class, redirects int) *goodCopy {
	s := &goodCopy{
		class:     class,
		redirects: uint8(redirects),
		status:    uint16(resp.StatusCode),
		fetched:   now(),
	}
	s.maxAge, s.age = freshness(resp.Header)
	return s
}

// statusError returns the error of a response with a failure status.
func (f *fetcher) statusError(c class, status int) *StatusError {
	err := &StatusError{Status: status}
	if c == serverError {
		err.Proxy = f.route.proxy
	}
	return err
}

// drain reads a short body that has no rules, so that the connection can be used again for the
// first page, and returns its beginning. It stops after a second, since the file is not worth a longer
// wait.
func drain(resp *http.Response) []byte {
	if resp.ContentLength <= 0 || resp.ContentLength > maxDrained {
		return nil
	}
	limit := time.AfterFunc(time.Second, func() { resp.Body.Close() })
	defer limit.Stop()
	first := make([]byte, min(resp.ContentLength, 64))
	n, _ := io.ReadFull(resp.Body, first)
	io.CopyN(io.Discard, resp.Body, resp.ContentLength)
	return first[:n]
}

const maxDrained = 16 << 10

// unreadable returns the outcome of a response whose body could not be read because of err.
func (f *fetcher) unreadable(err error) outcome {
	if badCoding := (*CodingError)(nil); errors.As(err, &badCoding) {
		return failed(noResponse, err)
	}
	return failed(noResponse, &NoResponseError{f.cause(err)})
}

// confirmed returns the known copy, updated from a 304 (RFC 9111, section 4.3.4).
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
	return outcome{failure: &failure{
		first:    at,
		last:     at,
		count:    1,
		class:    c,
		err:      err,
		answered: new(moment),
	}}
}

// noResponse reports whether o is a failure because there was no complete response.
func (o outcome) noResponse() bool {
	none := (*NoResponseError)(nil)
	return o.failure != nil && errors.As(o.failure.err, &none)
}

// ofProxy reports whether o is a failure status that came through a proxy.
func (o outcome) ofProxy() bool {
	status := (*StatusError)(nil)
	return o.failure != nil && errors.As(o.failure.err, &status) && status.Proxy != ""
}

// unanswered reports whether o says nothing about the site, only about the way of the fetch.
func (o outcome) unanswered() bool {
	panicked := (*PanicError)(nil)
	return o.noResponse() || o.ofProxy() || o.failure != nil && errors.As(o.failure.err, &panicked)
}

// withResponse adds the status and Retry-After of the response to a failure.
func (o outcome) withResponse(resp *http.Response) outcome {
	o.failure.status = resp.StatusCode
	o.failure.wait = RetryAfter(resp.Header, o.failure.last.time())
	return o
}

// cause returns the reason why the fetch has ended, or err if it has not.
func (f *fetcher) cause(err error) error {
	if !ended(f.ctx) {
		return err
	}
	return cmp.Or(context.Cause(f.ctx), errTimeLimit(f.limit()))
}

// ended reports whether ctx has ended or its deadline has passed. A transport that looks only at
// the deadline may return before ctx ends.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}
