package policy

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Doer performs exactly one HTTP exchange and follows no redirect. It must end soon after the request's context
// does. What it does before it sends, such as waiting until the host may be asked again, belongs in [Wait].
type Doer func(req *http.Request) (*http.Response, error)

// FetchLimit is the time one fetch may take: all of its exchanges and bodies, but not the waits in [Wait].
const FetchLimit = 30 * time.Second

// fetcher is one fetch of one robots.txt under way.
type fetcher struct {
	do        Doer
	userAgent string
	hops      int        // redirects to follow at most
	tag       validators // of the copy at hand, to ask whether it still holds
	old       *settled   // that copy
}

// fetch asks for the file at robots and follows its redirects hop by hop. Panics of the Doer become a failure.
func (f *fetcher) fetch(ctx context.Context, robots *url.URL) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = failed(silent, &PanicError{v})
		}
	}()
	at := robots
	for hops := 0; ; hops++ {
		resp, err := f.send(ctx, at, hops)
		if err != nil {
			return failed(silent, &NoAnswerError{cause(ctx, err)})
		}
		next, found := location(resp, at)
		if !found {
			return f.settle(ctx, resp, hops)
		}
		resp.Body.Close()
		switch {
		case next == nil:
			err := &RedirectError{resp.StatusCode, resp.Header.Get("Location"), hops}
			return failed(odd, err).status(resp)
		case hops == f.hops:
			return lost(resp, hops+1)
		}
		at = next
	}
}

// lost is the answer of a chain of redirects that is too long: that of a file which is not there.
func lost(resp *http.Response, hops int) outcome {
	return outcome{copy: &settled{class: astray, hops: uint8(hops), status: uint16(resp.StatusCode), maxAge: noMaxAge,
		at: time.Now().UnixNano()}}
}

// send makes one request, with the user agent and nothing else.
func (f *fetcher) send(ctx context.Context, at *url.URL, hops int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", f.userAgent)
	if hops == 0 {
		f.tag.ask(req.Header)
	}
	resp, err := f.do(req)
	if err == nil && (resp == nil || resp.Body == nil) {
		err = errors.New("a response without a body")
	}
	return resp, err
}

func (v validators) ask(h http.Header) {
	if v.etag != "" {
		h.Set("If-None-Match", v.etag)
	}
	if v.modified != "" {
		h.Set("If-Modified-Since", v.modified)
	}
}

// location returns where a redirect leads: found is false when resp is none, next is nil when it may not be followed.
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

// settle reads the last response.
func (f *fetcher) settle(ctx context.Context, resp *http.Response, hops int) outcome {
	defer resp.Body.Close()
	class := classify(resp.StatusCode)
	if resp.StatusCode == http.StatusNotModified && hops == 0 && f.tag != (validators{}) {
		return f.confirmed(resp)
	}
	if !class.final() {
		return failed(class, &StatusError{resp.StatusCode}).status(resp)
	}
	s := &settled{class: class, hops: uint8(hops), status: uint16(resp.StatusCode), at: time.Now().UnixNano()}
	s.maxAge, s.age = freshness(resp.Header)
	if class == missing {
		return outcome{copy: s}
	}
	body, err := read(resp)
	if err != nil {
		return failed(silent, &NoAnswerError{cause(ctx, err)})
	}
	s.reading, s.at = unread(body), time.Now().UnixNano()
	if hops == 0 {
		s.tag = validators{resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")}
	}
	return outcome{copy: s}
}

// confirmed renews the copy at hand with what a 304 says of it (RFC 9111, section 4.3.4).
func (f *fetcher) confirmed(resp *http.Response) outcome {
	s := *f.old
	s.at = time.Now().UnixNano()
	if resp.Header.Get("Cache-Control") != "" {
		s.maxAge, _ = freshness(resp.Header)
	}
	_, s.age = freshness(resp.Header)
	if etag := resp.Header.Get("ETag"); etag != "" {
		s.tag.etag = etag
	}
	return outcome{copy: &s}
}

func classify(status int) class {
	switch {
	case status == 200:
		return ok
	case status > 200 && status < 300:
		return success
	case status == http.StatusTooManyRequests:
		return throttled
	case status >= 400 && status < 500:
		return missing
	case status >= 500 && status < 600:
		return broken
	default:
		return odd
	}
}

// read returns the body as it counts: after decompression, at most one octet more than a dialect reads, which
// shows that there was more. A body that ends early is an error.
func read(resp *http.Response) ([]byte, error) {
	var body io.Reader = resp.Body
	switch coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		// Compressed text is never much longer than the text: more is a stream made to be read for ever.
		unzipped, err := gzip.NewReader(io.LimitReader(body, 2*dialect.SizeLimit))
		if err != nil {
			return nil, err
		}
		body = unzipped
	default:
		return nil, fmt.Errorf("content coding %q", coding)
	}
	return io.ReadAll(io.LimitReader(body, dialect.SizeLimit+1))
}

// freshness reads Cache-Control and Age (RFC 9111, sections 5.1 and 5.2). What forbids caching counts as max-age 0.
func freshness(h http.Header) (maxAge, age seconds) {
	maxAge = noMaxAge
	for _, line := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "max-age":
				if s, ok := parseSeconds(strings.Trim(value, `" `)); ok && maxAge != 0 {
					maxAge = s
				}
			case "no-store", "no-cache":
				maxAge = 0
			}
		}
	}
	age, _ = parseSeconds(h.Get("Age"))
	return maxAge, age
}

// parseSeconds reads delta-seconds (RFC 9111, section 1.2.2): digits, and what is too large is large.
func parseSeconds(s string) (seconds, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	const large = 1<<31 - 1
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return large, true
	}
	return seconds(n), true
}

// RetryAfter reads Retry-After (RFC 9110, section 10.2.3), seconds or a date, as a time from now on. More than a day counts
// as a day; 0: there is none, or it has passed.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if s, ok := parseSeconds(value); ok {
		return min(s.duration(), day)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), day)
	}
	return 0
}

func failed(c class, err error) outcome {
	now := time.Now()
	return outcome{failure: &failure{first: now, last: now, count: 1, class: c, err: err, answered: new(moment)}}
}

// status notes the response that a failure came with.
func (o outcome) status(resp *http.Response) outcome {
	o.failure.status = resp.StatusCode
	o.failure.wait = RetryAfter(resp.Header, o.failure.last)
	return o
}

// cause prefers why ctx ended over the error that its end made.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
