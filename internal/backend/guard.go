package backend

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

// A Watcher is told of every exchange that Colly makes with a client, redirect hops included, on the exchange's goroutine.
type Watcher interface {
	// Before is asked before an exchange. It may wait; its error refuses the exchange, and reaches Colly's OnError and
	// Visit inside a *url.Error. The client is the one that makes the exchange.
	Before(client *http.Client, req *http.Request) error
	// Again is asked when net/http sends a request once more, because the server dropped the connection it had kept. It may
	// wait; its error ends the exchange.
	Again(req *http.Request) error
	// Answered is told when the headers of the response are there.
	Answered(req *http.Request, resp *http.Response)
	// Ended is told once when an exchange that was not refused is over: it failed, or its body was closed.
	Ended(req *http.Request)
}

// Guard keeps a Watcher in the way of a client's exchanges, whatever the user does to the client. It may be used from many
// goroutines.
type Guard struct {
	watcher Watcher
	wrapped map[*http.Client]*transport // what was put in place, under wrapping
}

// wrapping orders every look at and change of a client's Transport by this package: several guards may share a client.
var wrapping sync.Mutex

// NewGuard returns a Guard that tells w.
func NewGuard(w Watcher) *Guard {
	return &Guard{watcher: w, wrapped: make(map[*http.Client]*transport)}
}

// moved is a client's Timeout that the guard has taken over: no timeout to net/http, and another value than any user's.
const moved = -1

// Watch puts the guard in front of client's transport unless it is there already. Called at first and before each request, it notices
// what was replaced (SetProxy, WithTransport, SetClient, SetRequestTimeout) while nothing of this goroutine is on the wire.
//
// The client's timeout moves into the guard, which applies it to each exchange: net/http lets one timeout run over a whole
// chain of redirects, so that a hop's wait for its host would use it up, and hides the collector's context behind it.
func (g *Guard) Watch(client *http.Client) {
	wrapping.Lock()
	defer wrapping.Unlock()
	t := g.wrap(client)
	if client.Timeout != moved {
		t.timeout.Store(int64(client.Timeout))
		client.Timeout = moved
	}
}

// wrap returns the wrapper of g around client's transport, put there if need be.
func (g *Guard) wrap(client *http.Client) *transport {
	if t := g.find(client.Transport); t != nil {
		return t
	}
	t := &transport{guard: g, client: client, base: client.Transport}
	if before := g.wrapped[client]; before != nil {
		t.base = carryOver(t.base, before.base)
		t.timeout.Store(before.timeout.Load())
	}
	g.wrapped[client] = t
	client.Transport = t
	return t
}

// find returns the wrapper of g in the chain of wrappers that starts with rt, or nil.
func (g *Guard) find(rt http.RoundTripper) *transport {
	for {
		t, ok := rt.(*transport)
		if !ok || t.guard == g {
			return t
		}
		rt = t.base
	}
}

// carryOver returns the transport Colly would have if it had found before in place. SetProxy changes an *http.Transport it
// knows, but drops any other RoundTripper, so our wrapper would cost users their TLS settings.
func carryOver(now, before http.RoundTripper) http.RoundTripper {
	set, ok := now.(*http.Transport)
	kept, known := before.(*http.Transport)
	if !ok || !known || !bareProxy(set) {
		return now
	}
	merged := kept.Clone()
	merged.Proxy, merged.DisableKeepAlives = set.Proxy, set.DisableKeepAlives
	return merged
}

// bareProxy tells whether t has the shape that SetProxyFunc builds: a proxy, no keep-alives and nothing else.
func bareProxy(t *http.Transport) bool {
	if t.Proxy == nil || !t.DisableKeepAlives {
		return false
	}
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && f.Name != "Proxy" && f.Name != "DisableKeepAlives" && !v.Field(i).IsZero() {
			return false
		}
	}
	return true
}

// transport is the wrapper. It tells the guard's Watcher and leaves everything else to base.
type transport struct {
	guard   *Guard
	client  *http.Client
	base    http.RoundTripper // nil: http.DefaultTransport, as for a client
	timeout atomic.Int64      // of one exchange, a time.Duration; 0: none
}

// RoundTrip makes one exchange. What the client does for others than Colly passes untouched.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	colly, w := req.Context().Value(colly.CheckRevisitKey) != nil, t.guard.watcher
	if colly {
		if err := w.Before(t.client, req); err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
	}
	var again func() error
	var ended func()
	if colly {
		again, ended = func() error { return w.Again(req) }, func() { w.Ended(req) }
	}
	x := begin(req.Context(), time.Duration(t.timeout.Load()), again, ended)
	sent := req.WithContext(x.ctx)
	resp, err := t.next().RoundTrip(sent)
	tellProxy(req, sent)
	if err != nil {
		return nil, x.failed(err)
	}
	if colly {
		w.Answered(req, resp)
	}
	resp.Request = req
	resp.Body = &body{resp.Body, x}
	return resp, nil
}

func (t *transport) next() http.RoundTripper {
	if t.base == nil {
		return http.DefaultTransport
	}
	return t.base
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach base.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// tellProxy hands on what Colly's proxy switchers leave in the context of the request they were shown: Request.ProxyURL.
func tellProxy(req, sent *http.Request) {
	if proxy := sent.Context().Value(colly.ProxyURLKey); proxy != nil && req.Context().Value(colly.ProxyURLKey) != proxy {
		*req = *req.WithContext(context.WithValue(req.Context(), colly.ProxyURLKey, proxy))
	}
}

// Exchange makes one exchange with client's transport (its proxy, its TLS settings) and nothing else of it: no cookies, no
// redirects, no guard. It may take timeout until its body is read; 0 is no limit. again is asked as Watcher.Again is, ended is told
// as Watcher.Ended is. The default transport serves a client without one.
func Exchange(client *http.Client, req *http.Request, timeout time.Duration, again func() error, ended func()) (*http.Response, error) {
	wrapping.Lock()
	rt := client.Transport
	wrapping.Unlock()
	for t, ok := rt.(*transport); ok; t, ok = rt.(*transport) {
		rt = t.base
	}
	x := begin(req.Context(), timeout, again, ended)
	once := http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := once.Do(req.WithContext(x.ctx))
	if err != nil {
		return nil, x.failed(err)
	}
	resp.Body = &body{resp.Body, x}
	return resp, nil
}
