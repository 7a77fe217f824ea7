package robotstest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A robotsLog records the responses of each authority to requests for its robots.txt.
type robotsLog struct {
	answers map[dialect.Authority][]robotsAnswer
	moved   map[string]dialect.Authority // from the target of a redirect to the authority whose robots.txt was redirected
	hops    map[dialect.Authority]int    // the redirects since the last request for the robots.txt itself
}

// maxHops is the number of redirects after which a robots.txt counts as one that does not exist, which
// RFC 9309 permits (section 2.3.1.2) and Google does. Later requests are for the robots.txt of the
// host that they go to.
const maxHops = 5

// A robotsAnswer is one response, after redirects.
type robotsAnswer struct {
	known  time.Time // when it was complete, so that the client could know it
	status int       // 0 if there was no complete response
	body   []byte
}

// ownerOf returns the authority whose robots.txt is requested. If r is not a request for a
// robots.txt, ok is false.
func (l *robotsLog) ownerOf(r Request) (owner dialect.Authority, ok bool) {
	if r.Method != http.MethodGet {
		return owner, false
	}
	owner, ok = l.moved[r.url()]
	if ok {
		delete(l.moved, r.url())
		return owner, true
	}
	if r.URI == "/robots.txt" {
		delete(l.hops, r.authority())
	}
	return r.authority(), r.URI == "/robots.txt"
}

// answered records a response. For one of the first redirects, it records only the target. It also records a 304; a
// 304 contains nothing new.
func (l *robotsLog) answered(owner dialect.Authority, r Request, c *capture) {
	answer := c.answer()
	answer.known = time.Now()
	if answer.status >= 300 && answer.status < 400 {
		if l.hops == nil {
			l.hops = make(map[dialect.Authority]int)
		}
		l.hops[owner]++
		if l.hops[owner] <= maxHops {
			l.expect(locationOf(r, c), owner)
			return
		}
		answer.status = http.StatusNotFound
	}
	if answer.status == 0 && r.url() != owner.RobotsURL() {
		l.expect(r.url(), owner) // a crawler may retry at the target of the redirect
	}
	if l.answers == nil {
		l.answers = make(map[dialect.Authority][]robotsAnswer)
	}
	l.answers[owner] = append(l.answers[owner], answer)
}

// expect records that a request for url is a request for the robots.txt of owner. It does nothing
// if url is "".
func (l *robotsLog) expect(url string, owner dialect.Authority) {
	if url == "" {
		return
	}
	if l.moved == nil {
		l.moved = make(map[string]dialect.Authority)
	}
	l.moved[url] = owner
}

// locationOf returns the target of a redirect, in the form of the URLs in the log. It returns "" if
// there is none.
func locationOf(r Request, c *capture) string {
	base, err := url.Parse(r.url())
	if err != nil {
		return ""
	}
	to, err := base.Parse(c.Header().Get("Location"))
	if err != nil || c.Header().Get("Location") == "" {
		return ""
	}
	a, err := dialect.AuthorityOf(to)
	if err != nil {
		return ""
	}
	return a.String() + to.RequestURI()
}

// unasked returns the response that an authority's robots.txt would have now, without a logged
// request.
func (w *Web) unasked(a dialect.Authority) robotsAnswer {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that a handler that waits for the end of the request returns
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, a.RobotsURL(), nil)
	r.RequestURI = r.URL.RequestURI()
	c := &capture{ResponseWriter: httptest.NewRecorder()}
	func() {
		defer func() { recover() }() // a handler that panics has no response
		w.answerOf(a.Host, "/robots.txt").ServeHTTP(c, r)
		c.returned = true
	}()
	return c.answer()
}

// A capture is a ResponseWriter that keeps a copy of the response.
type capture struct {
	http.ResponseWriter
	status   int // 0 if the header was not written yet
	body     bytes.Buffer
	failed   bool // whether a write failed or the handler hijacked the connection
	returned bool // whether the handler has returned without a panic
}

func (c *capture) WriteHeader(status int) {
	if c.status == 0 && status >= 200 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *capture) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	c.body.Write(p)
	n, err := c.ResponseWriter.Write(p)
	c.failed = c.failed || err != nil
	return n, err
}

func (c *capture) Flush() {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	http.NewResponseController(c.ResponseWriter).Flush()
}

func (c *capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c.failed = true
	return http.NewResponseController(c.ResponseWriter).Hijack()
}

// answer returns the captured response, or the zero robotsAnswer if the response ended early.
func (c *capture) answer() robotsAnswer {
	if c.failed || !c.returned {
		return robotsAnswer{}
	}
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if size, err := strconv.Atoi(c.Header().Get("Content-Length")); err == nil && size > c.body.Len() {
		return robotsAnswer{}
	}
	a := robotsAnswer{status: c.status, body: c.body.Bytes()}
	if c.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(&c.body)
		if err != nil {
			return robotsAnswer{}
		}
		a.body, err = io.ReadAll(io.LimitReader(z, 2*dialect.SizeLimit))
		if err != nil {
			return robotsAnswer{}
		}
	}
	return a
}
