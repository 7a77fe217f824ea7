package backend

import (
	"context"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
)

// This file sends requests: those of collectors through their Seam, and those of the plugin.

// RoundTrip implements http.RoundTripper. It sends one request of a collector, and sends it again
// as often as its Trip asks for that.
func (s *Seam) RoundTrip(req *http.Request) (*http.Response, error) {
	ctl := s.controllerOf(req)
	trip, err := s.tripOf(req, ctl)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	for {
		resp, again, err := s.send(req, ctl, trip)
		if again == nil {
			return resp, err
		}
		if resp != nil {
			drain(resp)
			req = resp.Request
		}
		trip = again
		req, err = repeated(req, trip)
		if err != nil {
			trip.Ended(0, err)
			return nil, err
		}
	}
}

// tripOf returns the Trip of a request whose controller is ctl, which may be nil. A request without
// a Trip is not known to the idle function of Release, so it makes the Seam stay.
func (s *Seam) tripOf(req *http.Request, ctl Controller) (Trip, error) {
	if ctl == nil {
		for _, other := range s.controllers() {
			other.Stray(req)
		}
		s.Keep()
		return noTrip{}, nil
	}
	trip, err := ctl.Before(s, req)
	if err != nil {
		return nil, err
	}
	if trip == nil {
		s.Keep()
		return noTrip{}, nil
	}
	return trip, nil
}

// send sends req once. If again is not nil, resp.Request is to be sent once more as a part of that
// Trip, or req if there is no response. This is not the Trip of req if the transport has followed a
// redirect by itself.
func (s *Seam) send(req *http.Request, ctl Controller, trip Trip) (resp *http.Response, again Trip, err error) {
	t, err := begin(req, s.limit(), trip)
	if err != nil {
		closeBody(req)
		return nil, nil, err
	}
	defer t.endOnPanic()
	sent := req.WithContext(t)
	rt := s.Transport()
	addHeader(sent, trip.Header())
	t.prepareSignature(rt, sent)
	resp, err = rt.RoundTrip(sent)
	if sent.Context() != context.Context(t) {
		copyProxyURL(req, sent)
	}
	if err != nil {
		err = t.failed(err)
		if t.repeats {
			return nil, trip, nil
		}
		return nil, nil, err
	}
	if resp == nil {
		t.answered(nil)
		return nil, nil, nil
	}
	t.hasResponse.Store(true)
	resp.Request, err = s.follow(t, req, resp, ctl)
	if err != nil {
		if resp.Body != nil {
			resp.Body.Close()
		}
		return nil, nil, t.failed(err)
	}
	if s.only == nil && ctl != nil && controllerIn(resp.Request.Context()) == nil {
		// A redirect finds its controller in the request that was redirected.
		resp.Request = resp.Request.WithContext(Mark(resp.Request.Context(), ctl))
	}
	if t.answered(resp) {
		again = t.trip
	}
	return resp, again, nil
}

// addHeader adds fields, which may be nil, to req. req is a copy that only the transport gets.
func addHeader(req *http.Request, fields http.Header) {
	if fields == nil {
		return
	}
	req.Header = req.Header.Clone()
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	maps.Copy(req.Header, fields)
}

// Do sends one request with rt, which may be nil for http.DefaultTransport, and sends it again as
// often as its Trip asks for that. It asks no controller, sends no cookies and follows no
// redirects. timeout limits the time of each exchange until the body of the response is closed, and
// is 0 if there is no limit. The trip ends when the body is closed, even if the body was read to
// its end before: the caller closes the body of a robots.txt when its rules are in force.
func Do(rt http.RoundTripper, req *http.Request, timeout time.Duration, trip Trip) (*http.Response, error) {
	for {
		resp, again, err := do(rt, req, timeout, trip)
		if !again {
			return resp, err
		}
		drain(resp)
		req, err = repeated(req, trip)
		if err != nil {
			trip.Ended(0, err)
			return nil, err
		}
	}
}

// do sends req once. If again is true, it is to be sent once more as a part of the same Trip.
func do(rt http.RoundTripper, req *http.Request, timeout time.Duration, trip Trip) (resp *http.Response, again bool, err error) {
	t, err := begin(req, newTimeouts(timeout), trip)
	if err != nil {
		return nil, false, err
	}
	t.untilClose = true
	defer t.endOnPanic()
	client := http.Client{
		Transport:     signedBy(t, rt),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err = client.Do(req.WithContext(t))
	if err != nil {
		return nil, false, t.failed(err)
	}
	t.hasResponse.Store(true)
	resp = beforeRedirects(resp, req)
	return resp, t.answered(resp), nil
}

// maxDrained limits how much of a dropped response is read, so that its connection can be used
// again.
const maxDrained = 16 << 10

// drain closes a response that is dropped.
func drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, maxDrained)
	resp.Body.Close()
}

// WaitContext returns the context for a wait of req. It ends with the context of req, and when the
// deprecated channel Cancel of req is closed. The caller must call stop after the wait.
func WaitContext(req *http.Request) (ctx context.Context, stop func()) {
	//lint:ignore SA1019 old programs use it
	canceled := req.Cancel
	if canceled == nil {
		return req.Context(), func() {}
	}
	w := &waitContext{Context: req.Context(), canceled: canceled}
	return w, w.stop
}

// A waitContext is the context of a request that has the deprecated channel Cancel. Each request of an
// http.Client with a Timeout has one. Most requests do not wait, so the goroutine that watches the
// channel is started by the first call of Done.
type waitContext struct {
	context.Context // of the request
	canceled        <-chan struct{}
	once            sync.Once
	merged          context.Context // ends with both; nil before Done was called
	cancel          context.CancelFunc
}

// Done implements context.Context.
func (w *waitContext) Done() <-chan struct{} {
	w.once.Do(func() {
		w.merged, w.cancel = context.WithCancel(w.Context)
		go w.watch()
	})
	return w.merged.Done()
}

// watch ends w.merged when the channel is closed.
func (w *waitContext) watch() {
	select {
	case <-w.canceled:
		if !isPast(w.Context) { // http.Client closes the channel when its Timeout is over
			w.cancel()
		}
	case <-w.merged.Done():
	}
}

// Err implements context.Context.
func (w *waitContext) Err() error {
	err := w.Context.Err()
	if err != nil {
		return err
	}
	select {
	case <-w.canceled:
		if !isPast(w.Context) {
			return context.Canceled
		}
	default:
	}
	return nil
}

// stop ends the goroutine of w, if there is one. No other method is called afterwards.
func (w *waitContext) stop() {
	w.once.Do(func() {})
	if w.cancel != nil {
		w.cancel()
	}
}

// isPast reports whether the deadline of ctx has passed, so that ctx ends by itself.
func isPast(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// repeated waits until req may be sent once more, and returns it with a new body.
func repeated(req *http.Request, trip Trip) (*http.Request, error) {
	ctx, stop := WaitContext(req)
	defer stop()
	err := trip.Again(ctx)
	if err != nil {
		return nil, err
	}
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again := req.WithContext(req.Context())
	again.Body = body
	return again, nil
}

// Repeatable reports whether a request can be sent once more.
func Repeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// closeBody closes the body of a request that is not sent, as a RoundTripper has to.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// copyProxyURL copies the value that Colly's proxy switchers store in the context of the request
// that they get. Colly reads Request.ProxyURL from the context of the request that it has sent.
func copyProxyURL(req, sent *http.Request) {
	if proxy := sent.Context().Value(colly.ProxyURLKey); proxy != nil {
		*req = *req.WithContext(context.WithValue(req.Context(), colly.ProxyURLKey, proxy))
	}
}
