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

// A robotsLog is what each authority has answered when it was asked for its robots.txt.
type robotsLog struct {
	answers map[dialect.Authority][]robotsAnswer
	moved   map[string]dialect.Authority // URLs that robots.txt was redirected to: whose it is
}

// A robotsAnswer is one answer, redirects followed.
type robotsAnswer struct {
	known  time.Time // when it was complete: whoever had asked could know it
	status int       // 0: there was no complete answer
	body   []byte
}

// ownerOf returns the authority whose robots.txt is asked for, if a request does that.
func (l *robotsLog) ownerOf(r Request) (owner dialect.Authority, ok bool) {
	if r.Method != http.MethodGet {
		return owner, false
	}
	if owner, ok = l.moved[r.url()]; ok {
		delete(l.moved, r.url())
		return owner, true
	}
	return r.authority(), r.URI == "/robots.txt"
}

// answered adds an answer. A redirect is none yet, and a 304 says nothing new.
func (l *robotsLog) answered(owner dialect.Authority, r Request, c *capture) {
	answer := c.answer()
	answer.known = time.Now()
	if answer.status >= 300 && answer.status < 400 {
		l.expect(locationOf(r, c), owner)
		return
	}
	if answer.status == 0 && r.url() != owner.RobotsURL() {
		l.expect(r.url(), owner) // a crawler may try once more where the redirect led
	}
	if l.answers == nil {
		l.answers = make(map[dialect.Authority][]robotsAnswer)
	}
	l.answers[owner] = append(l.answers[owner], answer)
}

// expect notes that url may be asked for as owner's robots.txt; "" is none.
func (l *robotsLog) expect(url string, owner dialect.Authority) {
	if url == "" {
		return
	}
	if l.moved == nil {
		l.moved = make(map[string]dialect.Authority)
	}
	l.moved[url] = owner
}

// locationOf returns the URL that an answer redirects to as it will be in the log, or "".
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

// unasked returns what an authority's robots.txt would answer now, though nobody asks.
func (w *Web) unasked(a dialect.Authority) robotsAnswer {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // whoever waits for its end has waited
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, a.RobotsURL(), nil)
	r.RequestURI = r.URL.RequestURI()
	c := &capture{ResponseWriter: httptest.NewRecorder()}
	func() {
		defer func() { recover() }() // no answer
		w.answerOf(a.Host, "/robots.txt").ServeHTTP(c, r)
		c.returned = true
	}()
	return c.answer()
}

// A capture keeps a copy of an answer.
type capture struct {
	http.ResponseWriter
	status   int // 0: there is no header yet
	body     bytes.Buffer
	failed   bool // a write failed, or the handler has taken the connection
	returned bool // the handler has, and did not panic
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

// answer returns what was captured. An answer that ended early is none.
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
		if a.body, err = io.ReadAll(io.LimitReader(z, 2*dialect.SizeLimit)); err != nil {
			return robotsAnswer{}
		}
	}
	return a
}
