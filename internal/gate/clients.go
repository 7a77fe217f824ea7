package gate

import (
	"context"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
)

// Clients is the backend.Controller of http.Clients.
type Clients struct{ Controller }

// Redirected implements backend.Controller. The client itself decides about redirects.
func (Clients) Redirected(*http.Request, error) {}

// Before implements backend.Controller.
func (c Clients) Before(s *backend.Seam, req *http.Request) (backend.Trip, error) {
	if !judge.HasRobots(req.URL) {
		return nil, nil
	}
	q := c.gate.newTransportRequest(s, req)
	ctx, stop := backend.WaitContext(req)
	defer stop()
	err := c.gate.Admit(ctx, q, modeOfClient(q))
	if err != nil {
		return nil, c.gate.Reject(ctx, q, err)
	}
	q.send(s, req)
	return q, nil
}

// modeOfClient returns the mode of a request of a client. It waits behind the requests that wait
// already, like a page of a collector. A redirect goes first.
func modeOfClient(q *Request) Mode {
	if q.redirect {
		return OnWire
	}
	return OfClient
}

// newTransportRequest returns the record of a request that net/http sends with s.
func (g *Gate) newTransportRequest(s *backend.Seam, req *http.Request) *Request {
	q := g.newClientRequest(req.Context(), req)
	if q.IDs.Page == nil {
		q.IDs.Page = g.Report.NewPage(req.Context())
	}
	if _, set := req.Header["User-Agent"]; !set {
		q.target.UserAgent = judge.GoUserAgent
	}
	q.seam = s
	q.header = req.Header
	return q
}

// newClientRequest returns the record of a request of a client. ctx may have its purpose. No hook looks
// for the request, so it is not in the table of requests.
func (g *Gate) newClientRequest(ctx context.Context, req *http.Request) *Request {
	q := &Request{gate: g}
	q.Wire = g.Wire
	q.target = judge.Target{URL: req.URL, UserAgent: judge.UserAgentOf(req.Header), Purpose: judge.PurposeOf(ctx)}
	if req.Host != req.URL.Host {
		q.target.HostHeader = req.Host
	}
	q.follow(req.Response)
	if before, ok := handedOn(req.Response); ok {
		q.marks = before.marks
		q.IDs = before.IDs
	}
	q.setClock(time.Now())
	return q
}

// Acquire judges a request that the program sends itself, and waits until it may start. robots.txt is
// fetched for by. The program ends the result with Finish. After an error there is nothing to end.
func (g *Gate) Acquire(ctx context.Context, req *http.Request, by exchange.Client) (*Request, error) {
	q := g.newClientRequest(ctx, req)
	q.IDs.Page = g.Report.NewPage(ctx)
	u := *req.URL
	q.target.URL = &u // the program may change req before it ends the turn
	q.client = by
	q.header = req.Header
	q.Ticket.Expires()
	err := g.Admit(ctx, q, modeOfClient(q))
	if err != nil {
		g.Reject(ctx, q, err)
		return nil, err
	}
	q.prepareTrace(req)
	q.Leave()
	return q, nil
}

// Reply records a response to a request that the program has sent itself. It returns a function that
// logs it, or nil.
func (q *Request) Reply(status int, header http.Header) (log func()) {
	_, log = q.Answered(&http.Response{StatusCode: status, Header: header, Request: &http.Request{URL: q.target.URL}})
	return log
}
