package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
)

// A guard makes a browser polite. It intercepts the requests of all tabs, frames and workers, and
// acquires a Turn for each. It does not see WebSockets.
type guard struct {
	browser  context.Context // of chromedp
	robots   *collyrobots.Plugin
	handlers sync.WaitGroup

	mu        sync.Mutex
	sent      map[fetch.RequestID]*exchange      // the requests without a response
	loading   map[network.RequestID]*exchange    // the responses whose bodies are loaded
	redirects map[fetch.RequestID]*http.Response // the redirects that the browser follows
	refusals  map[cdp.FrameID]error              // why the document of a tab was not sent; nil if it was
}

// An exchange is a request that the browser has sent.
type exchange struct {
	request   *http.Request
	turn      *collyrobots.Turn
	networkID network.RequestID // in the events of its tab; may be ""
	frame     cdp.FrameID       // the frame that needs the response
}

// newGuard returns the guard of a browser, which is a context of chromedp. If subresources is
// false, it guards only documents.
func newGuard(browser context.Context, robots *collyrobots.Plugin, subresources bool) (*guard, error) {
	g := &guard{
		browser:   browser,
		robots:    robots,
		sent:      make(map[fetch.RequestID]*exchange),
		loading:   make(map[network.RequestID]*exchange),
		redirects: make(map[fetch.RequestID]*http.Response),
		refusals:  make(map[cdp.FrameID]error),
	}
	kind := network.ResourceTypeDocument
	if subresources {
		kind = "" // any
	}
	err := chromedp.ListenBrowser(browser, g.ofBrowser)
	if err != nil {
		return nil, err
	}
	_, err = chromedp.CallBrowser(browser, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{
		{URLPattern: "*", ResourceType: kind, RequestStage: fetch.RequestStageRequest},
		{URLPattern: "*", ResourceType: kind, RequestStage: fetch.RequestStageResponse},
	}})
	return g, err
}

// ofBrowser handles the events of the browser. It must not block.
func (g *guard) ofBrowser(event any) {
	paused, ok := event.(*fetch.EventRequestPaused)
	if !ok {
		return
	}
	if paused.ResponseStatusCode > 0 || paused.ResponseErrorReason != "" {
		g.handlers.Go(func() { g.answer(paused) })
		return
	}
	g.handlers.Go(func() { g.request(paused) })
}

// request acquires the turn of a request, and then lets the browser send it or makes it fail.
func (g *guard) request(e *fetch.EventRequestPaused) {
	req, err := g.newRequest(e)
	if err != nil {
		g.refuse(e, err)
		return
	}
	turn, err := g.robots.Acquire(g.browser, req)
	if err != nil {
		g.refuse(e, err)
		return
	}
	g.mu.Lock()
	g.sent[e.RequestID] = &exchange{request: req, turn: turn, networkID: e.NetworkID, frame: e.FrameID}
	g.mu.Unlock()
	err = g.proceed(e.RequestID)
	if err != nil { // the page was closed
		g.take(e.RequestID)
		turn.Failed(collyrobots.ErrNotSent)
	}
}

// newRequest returns the request that the browser will send.
func (g *guard) newRequest(e *fetch.EventRequestPaused) (*http.Request, error) {
	req, err := http.NewRequest(e.Request.Method, e.Request.URL, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	g.mu.Lock()
	defer g.mu.Unlock()
	req.Response = g.redirects[e.RedirectedRequestID] // nil if it is no redirect
	delete(g.redirects, e.RedirectedRequestID)
	return req, nil
}

// refuse makes a request fail. It keeps the reason if the request is that of the document of a tab.
func (g *guard) refuse(e *fetch.EventRequestPaused, reason error) {
	g.mu.Lock()
	_, isTab := g.refusals[e.FrameID]
	if isTab && e.ResourceType == network.ResourceTypeDocument {
		g.refusals[e.FrameID] = reason
	}
	g.mu.Unlock()
	chromedp.CallBrowser(g.browser, fetch.FailRequest, fetch.FailRequestParams{
		RequestID:   e.RequestID,
		ErrorReason: network.ErrorReasonBlockedByClient,
	})
}

// proceed lets the browser continue with a request or a response.
func (g *guard) proceed(id fetch.RequestID) error {
	_, err := chromedp.CallBrowser(g.browser, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: id})
	return err
}

// take removes a request from those without a response. It returns nil if there is none.
func (g *guard) take(id fetch.RequestID) *exchange {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.sent[id]
	delete(g.sent, id)
	return x
}

// maxLoading is the longest time that a response keeps its turn. The guard does not see the end of
// some responses, for example if the tab was closed.
const maxLoading = 10 * time.Second

// answer reports the headers of a response to the plugin. The turn ends when the body was loaded.
func (g *guard) answer(e *fetch.EventRequestPaused) {
	x := g.take(e.RequestID)
	if x != nil {
		resp := responseOf(e, x.request)
		if e.ResponseErrorReason == "" {
			x.turn.Answered(resp.StatusCode, resp.Header)
		}
		g.load(e, x, resp)
	}
	g.proceed(e.RequestID) // fails if the page was closed
}

// load ends the turn of a response when it was loaded, or at once if it has no body or its end is
// not an event of a tab.
func (g *guard) load(e *fetch.EventRequestPaused, x *exchange, resp *http.Response) {
	isRedirect := resp.StatusCode/100 == 3 && resp.Header.Get("Location") != ""
	g.mu.Lock()
	defer g.mu.Unlock()
	if isRedirect {
		g.redirects[e.RequestID] = resp
	}
	switch {
	case e.ResponseErrorReason != "":
		x.turn.Failed(failure(e.ResponseErrorReason))
		return
	case isRedirect || !g.endIsSeen(e):
		x.turn.End()
		return
	}
	g.loading[e.NetworkID] = x
	time.AfterFunc(maxLoading, func() { g.loaded(e.NetworkID, nil) })
}

// failure returns the error of a request without a response. The plugin has to know whether the
// request was sent, and whether the server has reset the connection.
func failure(reason network.ErrorReason) error {
	switch reason {
	case network.ErrorReasonConnectionReset:
		return fmt.Errorf("%s: %w", reason, syscall.ECONNRESET)
	case network.ErrorReasonNameNotResolved, network.ErrorReasonConnectionRefused, network.ErrorReasonConnectionFailed,
		network.ErrorReasonAddressUnreachable, network.ErrorReasonInternetDisconnected:
		return fmt.Errorf("%s: %w", reason, collyrobots.ErrNotSent)
	}
	return errors.New(string(reason))
}

// endIsSeen reports whether the end of a response is an event of a tab. It is not for workers, for
// frames of other sites, and for tabs that the guard does not watch.
func (g *guard) endIsSeen(e *fetch.EventRequestPaused) bool {
	switch e.ResourceType {
	case network.ResourceTypeDocument:
		_, isTab := g.refusals[e.FrameID]
		return isTab
	case network.ResourceTypeOther:
		return false
	}
	return e.NetworkID != ""
}

// responseOf returns the response to a request.
func responseOf(e *fetch.EventRequestPaused, req *http.Request) *http.Response {
	header := make(http.Header)
	for _, h := range e.ResponseHeaders {
		header.Add(h.Name, h.Value)
	}
	return &http.Response{StatusCode: int(e.ResponseStatusCode), Header: header, Request: req}
}

// watch makes the guard see the responses in a tab.
func (g *guard) watch(tab context.Context) error {
	g.mu.Lock()
	g.refusals[frameOf(tab)] = nil
	g.mu.Unlock()
	return chromedp.Listen(tab, g.ofTab)
}

// frameOf returns the main frame of a tab.
func frameOf(tab context.Context) cdp.FrameID {
	return cdp.FrameID(chromedp.FromContext(tab).Target.TargetID)
}

// ofTab handles the events of a tab. It must not block.
func (g *guard) ofTab(event any) {
	switch e := event.(type) {
	case *network.EventLoadingFinished:
		g.loaded(e.RequestID, nil)
	case *network.EventLoadingFailed:
		g.loaded(e.RequestID, errors.New(e.ErrorText))
	}
}

// loaded ends the turn of a request whose response was loaded, or that has failed or was canceled
// because of err.
func (g *guard) loaded(id network.RequestID, err error) {
	g.end(err, func(x *exchange) bool { return x.networkID == id })
}

// end ends the turns of the exchanges that over accepts. err is why they have failed, or nil.
func (g *guard) end(err error, over func(x *exchange) bool) {
	ended := func(x *exchange) bool {
		if !over(x) {
			return false
		}
		x.turn.Failed(err)
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.sent, func(_ fetch.RequestID, x *exchange) bool { return ended(x) })
	maps.DeleteFunc(g.loading, func(_ network.RequestID, x *exchange) bool { return ended(x) })
}

// errTabClosed is the error of requests that their tab has left behind.
var errTabClosed = errors.New("the tab was closed")

// leave forgets a tab that will be closed. It returns why its document was not sent, or nil if it
// was.
func (g *guard) leave(tab context.Context) error {
	g.end(errTabClosed, func(x *exchange) bool { return x.frame == frameOf(tab) })
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.refusals[frameOf(tab)]
	delete(g.refusals, frameOf(tab))
	return err
}
