// Package robotstest provides a small web for tests of crawlers: sites by host in memory, a
// transport that reaches them, an exact access log, and [Verify], which fails a test where the log
// shows that robots.txt was not obeyed. It is to a crawler what net/http/httptest is to a client,
// and knows no crawler: whatever sends its requests through an http.RoundTripper can be tested.
//
// The connections of a web that is made in a bubble of testing/synctest are pipes in memory between
// a real http.Transport and a real http.Server. They take no time, so the instants in the log are
// exact and a crawl delay of hours costs nothing. This test passes in a millisecond:
//
//	func TestSpider(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			web := robotstest.New(t, robotstest.Sites{"shop.test": {
//				"/robots.txt": "User-agent: *\nCrawl-delay: 60\nDisallow: /cart\n",
//				"/":           robotstest.Page("/1", "/cart/3"),
//				"/1":          robotstest.Page("/", "/2"),
//				"/2":          robotstest.Page("/4"),
//				"/4":          http.StatusNotFound,
//			}})
//			crawl(web.Transport(), "http://shop.test/") // your spider: c.WithTransport(transport)
//			want := "0s /robots.txt\n1m0s /\n2m0s /1\n3m0s /2\n4m0s /4"
//			if got := web.Log("shop.test").Schedule(); got != want {
//				t.Errorf("shop.test was asked for\n%s\nwant\n%s", got, want)
//			}
//			robotstest.Verify(t, web, dialect.RFC9309())
//		})
//	}
//
// Outside a bubble the connections of the same web go over the loopback interface, and time is the
// world's. A program that makes its own client can be tested with http.DefaultTransport replaced by
// a [Web.Transport] for as long as the test runs.
package robotstest

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/collyrobots/collyrobots/dialect"
)

// Sites are the hosts of a web, by name. A host such as "a.test" answers on http and on https with
// the same site; another port is a host of its own, "a.test:8080". A port speaks https if it ends
// in 443, as 8443 does, else http.
type Sites map[string]Site

// A Site is what one host answers, by path and query as they are on the wire: "/robots.txt",
// "/page?id=1". The answer to "*" is for everything that is not listed; without it, that is not
// found. An answer is one of
//
//	string          a body, sent as HTML or XML if it begins as such, else as plain text
//	[]byte          a body whose type net/http detects
//	int             a status without a body
//	http.Handler    what the handler does; a func(http.ResponseWriter, *http.Request) will do, too
//	nil             not found
type Site map[string]any

// A Web is a few hosts and the log of what they were asked for. All methods may be called from any
// goroutine. Get one from New; the zero Web serves nothing and cannot be used.
type Web struct {
	t       testing.TB // nil: none
	network *network
	server  *http.Server
	serving sync.WaitGroup

	mu         sync.Mutex
	sites      map[string]map[string]http.Handler // by host in normal form, then by path and query
	transports []*http.Transport
	began      time.Time
	log        Log
	robots     robotsLog
	closed     bool
}

// New starts a web of sites, which it copies, so that later changes are made with Set. The web ends
// with the test. A site that cannot be served, such as one with an answer of another type, fails
// the test.
//
// In an Example, where there is no test, t is nil: then Close ends the web, and New panics instead.
func New(t testing.TB, sites Sites) *Web {
	w := &Web{t: t, began: time.Now(), sites: make(map[string]map[string]http.Handler)}
	if t != nil {
		t.Helper()
	}
	if err := w.start(sites); err != nil {
		if t == nil {
			panic(err)
		}
		t.Fatal(err)
	}
	if t != nil {
		t.Cleanup(w.Close)
	}
	return w
}

// start lets the web answer.
func (w *Web) start(sites Sites) error {
	for host, site := range sites {
		name, answers, err := parseSite(host, site)
		if err != nil {
			return err
		}
		if w.sites[name] != nil {
			return fmt.Errorf("robotstest: %s is there twice", name)
		}
		w.sites[name] = answers
	}
	var err error
	if w.network, err = newNetwork(); err != nil {
		return err
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ErrorLog: log.New(io.Discard, "", 0)}
	// The HTTP/2 server of net/http shares channels between bubbles before Go 1.26, which ends the
	// program (go.dev/issue/75674). The one of x/net keeps them for itself.
	if err := http2.ConfigureServer(w.server, nil); err != nil {
		return fmt.Errorf("robotstest: %w", err)
	}
	go w.server.Serve(w.network) // ends with Close
	return nil
}

// parseSite returns the name of a host in normal form, and what serves its answers.
func parseSite(host string, site Site) (name string, answers map[string]http.Handler, err error) {
	if name, err = hostName(host); err != nil {
		return "", nil, err
	}
	answers = make(map[string]http.Handler)
	for uri, answer := range site {
		if uri != "*" && !strings.HasPrefix(uri, "/") {
			return "", nil, fmt.Errorf("robotstest: %s: %q does not begin with a slash", host, uri)
		}
		if answers[uri], err = handlerOf(answer); err != nil {
			return "", nil, fmt.Errorf("robotstest: %s%s: %w", host, uri, err)
		}
	}
	return name, answers, nil
}

// hostName returns the name of a host, which may have a port, in normal form.
func hostName(host string) (string, error) {
	u := url.URL{Scheme: "http", Host: host}
	if isTLS(u.Port()) {
		u.Scheme = "https"
	}
	a, err := dialect.AuthorityOf(&u)
	if err != nil {
		return "", fmt.Errorf("robotstest: %q is not a host: %w", host, err)
	}
	return a.Host, nil
}

// Close ends the web: it closes the connections and waits for the handlers to return. The test that
// was given to New calls it at its end.
func (w *Web) Close() {
	w.mu.Lock()
	w.closed = true
	transports := w.transports
	w.mu.Unlock()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	w.server.Close()
	w.serving.Wait()
}

// Transport returns a new transport that reaches the hosts of the web and no other, and trusts the
// authority that has signed their certificates. The caller may change it, and need not close its
// connections. A proxy in it has to be a host of the web; every host is a proxy to the others if it
// is asked as one.
func (w *Web) Transport() *http.Transport {
	t := w.network.transport(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transports = append(w.transports, t)
	return t
}

// Set changes what a host answers from now on, or adds it to the web's hosts. An answer that cannot
// be served fails the test; without a test, Set panics.
func (w *Web) Set(host, uri string, answer any) {
	name, answers, err := parseSite(host, Site{uri: answer})
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.sites[name] == nil {
			w.sites[name] = make(map[string]http.Handler)
		}
		maps.Copy(w.sites[name], answers)
		return
	}
	if w.t == nil {
		panic(err)
	}
	w.t.Helper()
	w.t.Error(err)
}

// has reports whether the web has a host of this name.
func (w *Web) has(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sites[host] != nil
}

// answerOf returns what a host answers now.
func (w *Web) answerOf(host, uri string) http.Handler {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range []string{uri, "*"} {
		if h := w.sites[host][key]; h != nil {
			return h
		}
	}
	return http.NotFoundHandler()
}

// serve logs a request and answers it. The host is the one that the connection was opened to,
// whatever the Host field says, unless a proxy is asked for another's page.
func (w *Web) serve(out http.ResponseWriter, r *http.Request) {
	to := r.Context().Value(http.LocalAddrContextKey).(address)
	if r.Method == http.MethodConnect {
		w.tunnel(out, r, to)
		return
	}
	asked := &url.URL{Scheme: "http", Host: to.host}
	if r.TLS != nil {
		asked.Scheme = "https"
	}
	if r.URL.IsAbs() {
		asked, to.proxy = r.URL, to.host
	}
	authority, err := dialect.AuthorityOf(asked)
	if err != nil || !w.has(authority.Host) {
		http.Error(out, "the web has no such host", http.StatusBadGateway)
		return
	}
	if authority.Host == to.proxy {
		to.proxy = ""
	}
	request := Request{
		Method: r.Method, Scheme: authority.Scheme, Host: authority.Host, URI: r.URL.RequestURI(),
		Header: r.Header.Clone(), Proxy: to.proxy,
	}
	owner, isRobots, ok := w.note(request)
	if !ok {
		panic(http.ErrAbortHandler) // the web has ended
	}
	defer w.serving.Done()
	answer := w.answerOf(authority.Host, request.URI)
	if !isRobots {
		answer.ServeHTTP(out, r)
		return
	}
	c := &capture{ResponseWriter: out}
	defer func() { w.robotsAnswered(owner, request, c) }()
	answer.ServeHTTP(c, r)
	c.returned = true
}

// note adds a request to the log, with its time. It reports whether it asks for a robots.txt, and
// whose, and whether the web is still open: if so, w.serving waits for it.
func (w *Web) note(r Request) (owner dialect.Authority, isRobots, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return owner, false, false
	}
	w.serving.Add(1)
	owner, r.robots = w.robots.ownerOf(r)
	r.Time = time.Now()
	r.Elapsed = r.Time.Sub(w.began)
	w.log = append(w.log, r)
	return owner, r.robots, true
}

// robotsAnswered keeps an answer to a request for a robots.txt.
func (w *Web) robotsAnswered(owner dialect.Authority, r Request, c *capture) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.robots.answered(owner, r, c)
}
