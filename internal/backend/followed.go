package backend

import (
	"cmp"
	"context"
	"net/http"
	"slices"
)

// Some transports follow redirects by themselves, for example one that wraps an http.Client. The
// Seam sees only the last response. The request of that response leads back to the redirects.

// followed returns the redirects that a transport has followed by itself after it got req, in their
// order.
func followed(resp *http.Response, req *http.Request) []*http.Request {
	var redirects []*http.Request
	for r := resp.Request; r != nil && r.Response != nil && r.Response != req.Response; r = r.Response.Request {
		redirects = append(redirects, r)
	}
	slices.Reverse(redirects)
	return redirects
}

// follow treats each redirect that the transport has followed as if the Seam had sent it now, with
// a Trip of its own. So the redirect is judged, and its host counts it as a request, so that the
// next request to the host has to wait. t continues with the last Trip. follow returns the request
// that led to resp.
func (s *Seam) follow(t *transfer, req *http.Request, resp *http.Response, ctl Controller) (*http.Request, error) {
	redirects := followed(resp, req)
	if len(redirects) == 0 {
		return requestOf(resp, req), nil
	}
	if ctl == nil {
		return resp.Request.WithContext(req.Context()), nil
	}
	t.settle()
	for _, redirect := range redirects {
		response := *redirect.Response
		response.Request = req
		next := redirect.WithContext(req.Context())
		next.Response = &response
		ctl.Followed(next)
		err := t.redirected(&response, func() (Trip, error) { return ctl.Before(s, next) })
		if err != nil {
			return nil, err
		}
		req = next
	}
	return req, t.checkPeer()
}

// requestOf returns the request that led to resp if no redirect was followed. This is req, unless
// the transport reports that it has requested another URL.
func requestOf(resp *http.Response, req *http.Request) *http.Request {
	r := resp.Request
	if r == nil || r.URL == nil || r.URL == req.URL || r.URL.String() == req.URL.String() {
		return req
	}
	return r.WithContext(req.Context())
}

// redirected ends the Trip of t with a redirect, and starts the Trip that next returns. The time
// that next takes does not count towards the timeout.
func (t *transfer) redirected(redirect *http.Response, next func() (Trip, error)) error {
	if !t.pause() {
		return context.DeadlineExceeded
	}
	before, ok := t.setTrip(noTrip{}, Terms{})
	if !ok {
		return cmp.Or(context.Cause(t.Context), context.Canceled)
	}
	_, report := before.Answered(redirect)
	before.Ended(0, nil)
	if report != nil {
		report()
	}
	trip, err := next()
	if err != nil {
		return err
	}
	if trip == nil {
		trip = noTrip{}
	}
	terms, ready := trip.Ready()
	_, ok = t.setTrip(trip, terms)
	if !ok {
		trip.Ended(0, context.Canceled)
		return context.Canceled
	}
	t.startTimeout()
	if !ready {
		return context.DeadlineExceeded
	}
	return nil
}

// pause stops the timeout. It returns false if the time is up.
func (t *transfer) pause() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopTimeout()
}

// setTrip gives t another Trip and returns the one before. It returns false if t is over.
func (t *transfer) setTrip(trip Trip, terms Terms) (before Trip, ok bool) {
	t.attempts.Lock()
	defer t.attempts.Unlock()
	t.mu.Lock()
	over := t.over
	if !over {
		before = t.trip
		t.trip = trip
	}
	t.mu.Unlock()
	if over {
		return nil, false
	}
	t.startDeadline(terms)
	return before, true
}

// checkPeer calls Peer of the current Trip with the address of the last connection.
func (t *transfer) checkPeer() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peer == nil {
		return nil
	}
	return t.trip.Peer(t.hostPort, t.peer)
}

// beforeRedirects returns the first redirect that a transport has followed by itself, without its
// body. It returns resp if there is none.
func beforeRedirects(resp *http.Response, req *http.Request) *http.Response {
	redirects := followed(resp, req)
	if len(redirects) == 0 {
		return resp
	}
	resp.Body.Close()
	first := *redirects[0].Response
	first.Body = http.NoBody
	return &first
}
