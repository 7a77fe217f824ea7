package gate

import (
	"net/http"
	"net/url"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// A Controller sees every request of the collectors when it goes on the wire. It lets requests pass
// that the hooks have admitted, and admits those that no hook of Colly has seen: redirects,
// requests that an OnRequestHeaders callback has changed, and requests of clones that are not
// attached. It implements backend.Controller, except for the method Redirected.
type Controller struct{ gate *Gate }

// NewController returns the controller of the collectors of a plugin.
func NewController(g *Gate) Controller { return Controller{gate: g} }

// Knows implements backend.Controller.
func (ctl Controller) Knows(u *url.URL) bool { return ctl.gate.requests.Has(u) }

// Before implements backend.Controller.
func (ctl Controller) Before(s *backend.Seam, req *http.Request) (backend.Trip, error) {
	if !judge.HasRobots(req.URL) {
		return nil, nil
	}
	g := ctl.gate
	q := g.Take(req.URL)
	if q != nil && q.refusal != nil && q.hasSameURL() {
		return nil, g.Reject(req.Context(), q, q.refusal)
	}
	sent := judge.TargetOf(req.URL, req.Host, req.Header)
	if q != nil && !(q.hasSameURL() && q.target.HostHeader == sent.HostHeader) {
		q.Close() // it was admitted for another URL or site
		q = nil
	}
	seen := q != nil
	if !seen {
		q = g.newWireRequest(s, req)
	}
	q.seam = s
	q.header = req.Header
	sameName := seen && g.sameName(q, sent)
	if !sameName {
		q.GiveBack() // robots.txt may have to be read under the new name, which takes a turn
	}
	if sameName {
		err := g.charge(q)
		if err != nil {
			return nil, g.Reject(req.Context(), q, err)
		}
	}
	if !sameName || !q.Ticket.OnWire() {
		q.target = sent
		err := g.Admit(req.Context(), q, OnWire)
		if err != nil {
			return nil, g.Reject(req.Context(), q, err)
		}
	}
	q.send(s, req)
	return q, nil
}

// send prepares q, which has started, for the wire.
func (q *Request) send(s *backend.Seam, req *http.Request) {
	q.ctx = req.Context()
	q.Through = s.Transport()
	q.makeConditional(req)
	q.prepareTrace(req)
	q.HandOver()
}

// newWireRequest returns the record of a request that no hook has admitted, or that has changed
// since then.
func (g *Gate) newWireRequest(s *backend.Seam, req *http.Request) *Request {
	before := req.Response
	if before == nil {
		s.Keep()
		g.Report.Warn("a request reached the transport that the plugin had not seen: a clone or collector without Attach, or an OnRequestHeaders callback that changes the URL", "url", req.URL.Redacted())
		g.Unseen(req)
		of := reporter.IDs{Page: g.Report.NewPage(req.Context())}
		return g.NewRequest(req.URL, Page{IDs: of, early: true}) // the callbacks of its collector are not known
	}
	p, _ := handedOn(before)
	q := g.NewRequest(req.URL, p)
	q.follow(before)
	return q
}

// sameName reports whether robots.txt is read under the same name for the target that is sent as
// for the target that was judged. A callback may have changed the User-Agent header in between.
func (g *Gate) sameName(q *Request, sent judge.Target) bool {
	v := &q.verdict
	if q.target.UserAgent == sent.UserAgent || v.Reader == nil || v.Settings.ByCollector() {
		return true
	}
	judged, err := g.Policies.Reader(v.Settings, q.target.UserAgent)
	if err != nil {
		return false
	}
	now, err := g.Policies.Reader(v.Settings, sent.UserAgent)
	return err == nil && now.Name == judged.Name
}

// prepareTrace sets the fields of the events of q, which is about to go on the wire.
func (q *Request) prepareTrace(req *http.Request) {
	q.Trace.Report = q.gate.Report
	q.Trace.URL = q.target.URL
	q.Trace.IDs = q.IDs
	q.Trace.Ready = q.now
	q.Trace.Kind = report.RequestPage
	if q.redirect && req.Response.Request != nil {
		q.Trace.Kind = report.RequestRedirect
		if q.gate.Report.Events.Active() {
			q.Trace.From = req.Response.Request.URL.Redacted()
		}
	}
	q.traceDecision()
}

// Followed implements backend.Controller.
func (ctl Controller) Followed(redirect *http.Request) {
	ctl.gate.Report.Warn("the transport follows redirects by itself: they are sent before robots.txt and the crawl delay are known; make its http.Client return http.ErrUseLastResponse from CheckRedirect", "url", redirect.URL.Redacted())
}

// Stray implements backend.Controller. It does not warn of robots.txt: Colly's built-in check
// requests that without the context of its collector, so the request seems to belong to no plugin.
func (ctl Controller) Stray(req *http.Request) {
	if !judge.HasRobots(req.URL) || req.URL.Path == "/robots.txt" {
		return
	}
	ctl.gate.Report.Warn("a request that the plugin does not govern was sent: its collector was cloned before Attach and shares its client; attach it as well, or give it a client of its own", "url", req.URL.Redacted())
}
