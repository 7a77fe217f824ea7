// Package robotstest provides a small web for tests of crawlers: sites in memory, a transport that
// reaches them, an exact access log, and [Verify], which fails a test if the log shows that
// robots.txt was not obeyed. It is for crawlers what net/http/httptest is for HTTP clients. It does
// not depend on a crawler: it can test every program that sends its requests through an
// http.RoundTripper.
//
// If a web is created in a bubble of testing/synctest, its connections are pipes in memory between
// a real http.Transport and a real http.Server. They take no time, so the times in the log are
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
//			want := []string{"0s /robots.txt", "1m0s /", "2m0s /1", "3m0s /2", "4m0s /4"}
//			if got := web.Log("shop.test").Schedule(); !slices.Equal(got, want) {
//				t.Errorf("requests to shop.test: got %q, want %q", got, want)
//			}
//			robotstest.Verify(t, web, dialect.RFC9309())
//		})
//	}
//
// Outside a bubble, the connections of the same web use the loopback interface, and time is real.
// To test a program that creates its own client, replace http.DefaultTransport with a
// [Web.Transport] during the test.
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

// Sites are the hosts of a web by name. A host such as "a.test" serves the same site on http and on
// https. A host with another port is a separate host, such as "a.test:8080". A port uses https if
// it ends in 443, as 8443 does, and http otherwise.
type Sites map[string]Site

// A Site maps the path and query of a URL, as sent on the wire, to an answer: "/robots.txt",
// "/page?id=1". The answer for "*" applies to all URLs that are not listed; without it, they are
// not found. An answer is one of
//
//	string          a body, sent as HTML or XML if it begins as such, otherwise as plain text
//	[]byte          a body whose type net/http detects
//	int             a status without a body
//	http.Handler    a handler; a func(http.ResponseWriter, *http.Request) is also accepted
//	nil             not found
type Site map[string]any

// A Web is a set of hosts and a log of the requests to them. Its methods are safe for concurrent
// use. Create a Web with New or Open; the zero value cannot be used.
type Web struct {
	t       testing.TB // nil if the web was started by Open
	network *network
	server  *http.Server
	serving sync.WaitGroup

	mu         sync.Mutex
	sites      map[string]map[string]http.Handler // by normalized host, then by path and query
	transports []*http.Transport
	began      time.Time
	log        Log
	robots     robotsLog
	closed     bool
}

// New starts a web for a test. It copies sites, so use Set for later changes. The web is closed at
// the end of the test. If a site cannot be served, for example because an answer has an unsupported
// type, New fails the test.
func New(t testing.TB, sites Sites) *Web {
	t.Helper()
	w, err := Open(sites)
	if err != nil {
		t.Fatal(err)
	}
	w.t = t
	t.Cleanup(w.Close)
	return w
}

// Open starts a web without a test, for a program or an Example. It copies sites, so use Set for
// later changes. The caller must close the web. Open returns an error if a site cannot be served.
func Open(sites Sites) (*Web, error) {
	w := &Web{began: time.Now(), sites: make(map[string]map[string]http.Handler)}
	if err := w.start(sites); err != nil {
		return nil, err
	}
	return w, nil
}

// start registers the sites and starts the server.
func (w *Web) start(sites Sites) error {
	for host, site := range sites {
		name, answers, err := parseSite(host, site)
		if err != nil {
			return err
		}
		if w.sites[name] != nil {
			return fmt.Errorf("robotstest: host %s is listed twice", name)
		}
		w.sites[name] = answers
	}
	var err error
	w.network, err = newNetwork()
	if err != nil {
		return err
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ErrorLog: log.New(io.Discard, "", 0)}
	// Before Go 1.26, the HTTP/2 server of net/http shares channels between bubbles, which ends the
	// program (go.dev/issue/75674). The server of x/net does not share them.
	if err := http2.ConfigureServer(w.server, nil); err != nil {
		return fmt.Errorf("robotstest: %w", err)
	}
	go w.server.Serve(w.network) // ends with Close
	return nil
}

// parseSite returns the normalized name of a host and the handlers of its answers.
func parseSite(host string, site Site) (name string, answers map[string]http.Handler, err error) {
	name, err = hostName(host)
	if err != nil {
		return "", nil, err
	}
	answers = make(map[string]http.Handler)
	for uri, answer := range site {
		if uri != "*" && !strings.HasPrefix(uri, "/") {
			return "", nil, fmt.Errorf("robotstest: %s: path %q does not begin with a slash", host, uri)
		}
		answers[uri], err = handlerOf(answer)
		if err != nil {
			return "", nil, fmt.Errorf("robotstest: %s%s: %w", host, uri, err)
		}
	}
	return name, answers, nil
}

// hostName normalizes the name of a host, which may have a port.
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

// Close closes the web and its connections, and waits until the handlers have returned. A web that
// was started by New is closed at the end of its test.
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

// Transport returns a new transport that reaches only the hosts of the web, and that trusts their
// certificates. The caller may change the transport and does not have to close its connections. The
// Proxy of the transport must be a host of the web. Every host acts as a proxy for the others.
func (w *Web) Transport() *http.Transport {
	t := w.network.transport(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transports = append(w.transports, t)
	return t
}

// Set changes the answer of a host to uri from now on. If the web does not have the host, Set adds
// it. If the answer cannot be served, Set fails the test. If the web was started by Open, Set
// panics instead, like http.ServeMux.Handle for an invalid pattern.
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

// has reports whether the web has a host with this name.
func (w *Web) has(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sites[host] != nil
}

// answerOf returns the handler for a URI of a host.
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

// serve logs a request and answers it. The host is the one that the connection leads to; the Host
// header is ignored. If the request line has an absolute URL, the host of the connection acts as a
// proxy.
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
		asked = r.URL
		to.proxy = to.host
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
		panic(http.ErrAbortHandler) // the web is closed
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

// note adds a request with its time to the log. It reports whether the request is for a robots.txt,
// and returns the authority of that robots.txt. If the web is closed, ok is false; otherwise, the
// caller must call w.serving.Done.
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

// robotsAnswered records a response to a request for a robots.txt.
func (w *Web) robotsAnswered(owner dialect.Authority, r Request, c *capture) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.robots.answered(owner, r, c)
}
