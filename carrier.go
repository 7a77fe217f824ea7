package collyrobots

import (
	"net/http"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/report"
)

// This file admits requests of a transport of the plugin that is inside another transport of the
// same plugin, or inside the transport of a collector.

// A carrier is a request of the plugin that a transport is sending, while another transport of the
// plugin gets a request with its context. This happens if one transport of the plugin is inside
// another, or inside the transport of a collector. The inner request is the same one, or a
// transport between the two has changed its URL, or makes a request of its own first.
type carrier struct {
	*exchange
	trip   backend.Trip
	client *request // of a collector or a client; nil if the plugin itself makes the request
}

// url returns the URL that the carrier is admitted for.
func (c *carrier) url() *url.URL {
	if c.client != nil {
		return c.client.target.url
	}
	return c.trace.url
}

// carrierOf returns the carrier of req. It returns nil if there is none, or if its host does not
// share the pace of the host of req, so that req may wait for a turn of its own.
func (rt *roundTripper) carrierOf(req *http.Request) *carrier {
	for trip := range backend.Trips(req.Context()) {
		c := &carrier{trip: trip}
		switch x := trip.(type) {
		case *request:
			c.exchange = &x.exchange
			c.client = x
		case *exchange:
			c.exchange = x
		default:
			continue
		}
		if c.limiter == rt.plugin.limiter && c.carries(req, rt.seam.Transport()) {
			return c
		}
	}
	return nil
}

// carries reports whether req would wait until the carrier has ended if it had a turn of its own.
// next will send it.
func (c *carrier) carries(req *http.Request, next http.RoundTripper) bool {
	name := hostOf(req.URL)
	switch {
	case !hasRobots(req.URL), name == "":
		return false
	case name == c.host.Name():
		return true
	case !c.host.Rules().Shares:
		return false
	}
	host := c.limiter.hosts.At(time.Now(), name)
	c.limiter.join(req.Context(), host, next, req.URL)
	return host.SharesPace(c.host)
}

// admitWithin admits a request that is sent in the turn of its carrier. It has no turn of its own,
// for which it would wait until the carrier has ended. The transport reports when it is written,
// and the carrier takes another turn if it is written after that. If the URL is not that of the
// carrier, the request is judged.
func (ctl *controller) admitWithin(s *backend.Seam, req *http.Request, outer *carrier) error {
	if outer.trace.kind == report.RequestRobots || outer.url().String() == req.URL.String() {
		return nil
	}
	q := ctl.newTransportRequest(s, req)
	q.carried = true
	q.redirect = false // it does not wait
	if outer.client != nil {
		q.charged = outer.client.charged
		q.probe = outer.client.probe
	}
	ctx := req.Context()
	known := ctl.isKnown(ctx, q)
	if !known {
		outer.ticket.End() // reading robots.txt takes a turn
	}
	err := ctl.checkWithoutHook(ctx, q)
	q.charged = "" // it is the carrier that gives it back
	if err != nil {
		return ctl.reject(ctx, q, err)
	}
	if !known {
		return backend.Repeat(ctx, outer.trip)
	}
	return nil
}
