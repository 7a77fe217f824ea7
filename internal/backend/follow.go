package backend

import (
	"cmp"
	"context"
	"net/http"
	"slices"
)

// Some transports follow redirects by themselves, for example one that is made of an http.Client. The
// seam sees no more of them than the response. Its request shows which redirects have led to it.

// followed returns the redirect hops that a transport has followed by itself after req was handed to
// it, in their order.
func followed(resp *http.Response, req *http.Request) (hops []*http.Request) {
	for r := resp.Request; r != nil && r.Response != nil && r.Response != req.Response; r = r.Response.Request {
		hops = append(hops, r)
	}
	slices.Reverse(hops)
	return hops
}

// follow makes each redirect that the transport has followed a trip of its own, as if the seam had
// sent it now: it is judged, and it takes the turn of its host, so that the next request of the host
// waits for it. x goes on as the last trip. follow returns the request that resp answers.
func (s *Seam) follow(x *exchange, req *http.Request, resp *http.Response, g Governor) (*http.Request, error) {
	hops := followed(resp, req)
	if len(hops) == 0 {
		return asSent(req, resp), nil
	}
	if g == nil {
		return resp.Request.WithContext(req.Context()), nil
	}
	x.settle()
	for _, hop := range hops {
		redirect := *hop.Response
		redirect.Request = req
		next := hop.WithContext(req.Context())
		next.Response = &redirect
		g.Followed(next)
		if err := x.redirected(&redirect, func() (Trip, error) { return g.Before(s, next) }); err != nil {
			return nil, err
		}
		req = next
	}
	return req, x.metAgain()
}

// asSent returns the request that resp answers if no redirect was followed. It is req, unless the
// transport says that it has asked for another URL.
func asSent(req *http.Request, resp *http.Response) *http.Request {
	if r := resp.Request; r != nil && r.URL != nil && r.URL.String() != req.URL.String() {
		return r.WithContext(req.Context())
	}
	return req
}

// redirected ends the trip of x with a redirect, and begins another one. The time that begin takes
// does not count.
func (x *exchange) redirected(redirect *http.Response, begin func() (Trip, error)) error {
	if !x.pause() {
		return context.DeadlineExceeded
	}
	x.hold()
	before, ok := x.change(nobody{})
	if !ok {
		return cmp.Or(context.Cause(x.Context), context.Canceled)
	}
	_, report := before.Answered(redirect)
	before.Ended(0, nil)
	if report != nil {
		report()
	}
	next, err := begin()
	if err != nil {
		return err
	}
	if next == nil {
		next = nobody{}
	}
	if _, ok := x.change(next); !ok {
		next.Ended(0, context.Canceled)
		return context.Canceled
	}
	x.resume()
	return x.lasts()
}

// lasts sets the deadline of a trip that has just begun. It returns an error if that is over.
func (x *exchange) lasts() error {
	x.attempts.Lock()
	defer x.attempts.Unlock()
	if !x.ready() {
		return context.DeadlineExceeded
	}
	return nil
}

// hold lets the deadline of the trip pass.
func (x *exchange) hold() {
	x.attempts.Lock()
	defer x.attempts.Unlock()
	x.postpone()
}

// change gives x another trip, unless it is over. It returns the one before.
func (x *exchange) change(trip Trip) (before Trip, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return nil, false
	}
	before = x.trip
	x.trip = trip
	return before, true
}

// metAgain tells the trip of the address that the last request went to. It returns an error if the
// request may not have gone there.
func (x *exchange) metAgain() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.peer == nil || !x.trip.Guarded() {
		return nil
	}
	return x.trip.Peer(x.hop, x.peer)
}

// beforeRedirects returns the first redirect that a transport has followed by itself, without its
// body, or else resp.
func beforeRedirects(resp *http.Response, req *http.Request) *http.Response {
	hops := followed(resp, req)
	if len(hops) == 0 {
		return resp
	}
	resp.Body.Close()
	first := *hops[0].Response
	first.Body = http.NoBody
	return &first
}
