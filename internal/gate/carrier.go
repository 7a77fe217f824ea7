package gate

import (
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/report"
)

// A carrier is a request of the plugin that a transport is sending, while another transport of the
// plugin gets a request with its context. This happens if one transport of the plugin is inside
// another, or inside the transport of a collector. The inner request is the same one, or a
// transport between the two has changed its URL, or makes a request of its own first. The carrier may
// end at any time, so it has a copy of what is needed.
type carrier struct {
	backend.Carrier
	wire  *exchange.Wire // nil if the request is not one of a plugin
	host  *pace.Host
	kind  report.RequestKind
	url   string // that it is admitted for
	marks judge.Marks
}

// read sets the fields of c from its trip.
func (c *carrier) read(trip backend.Trip) {
	x := exchangeOf(trip)
	if x == nil {
		return
	}
	c.wire = x.Wire
	c.host = x.Host
	c.kind = x.Trace.Kind
	if q, ok := trip.(*Request); ok {
		c.url = q.target.URL.String()
		c.marks = q.marks.HandOn(judge.OfCarrier)
	} else {
		c.url = x.Trace.URL.String()
	}
}

// exchangeOf returns the exchange of a trip, or nil if the trip is not one of a plugin.
func exchangeOf(trip backend.Trip) *exchange.Exchange {
	switch x := trip.(type) {
	case *Request: // of a collector or a client
		return &x.Exchange
	case *exchange.Exchange: // of the plugin itself
		return x
	}
	return nil
}

// AdmitWithin admits a request that s sends in the turn of its carrier. carried is false if there is no
// carrier, so that the request needs a turn of its own.
func (g *Gate) AdmitWithin(s *backend.Seam, req *http.Request) (carried bool, err error) {
	outer := g.carrierOf(s, req)
	if outer == nil {
		return false, nil
	}
	return true, g.admitWithin(s, req, outer)
}

// carrierOf returns the carrier of req. It returns nil if there is none, or if its host does not
// share the pace of the host of req, so that req may wait for a turn of its own.
func (g *Gate) carrierOf(s *backend.Seam, req *http.Request) *carrier {
	for under := range backend.Carriers(req.Context()) {
		c := &carrier{Carrier: under}
		if c.Use(c.read) && c.wire == g.Wire && c.carries(req, s.Transport()) {
			return c
		}
	}
	return nil
}

// carries reports whether req would wait until the carrier has ended if it had a turn of its own.
// next will send it.
func (c *carrier) carries(req *http.Request, next http.RoundTripper) bool {
	name := hostname.Of(req.URL)
	switch {
	case !judge.HasRobots(req.URL), name == "":
		return false
	case name == c.host.Name():
		return true
	case !c.host.Rules().Shares:
		return false
	}
	host := c.wire.Hosts.At(time.Now(), name)
	c.wire.Join(req.Context(), host, next, req.URL)
	return host.SharesPace(c.host)
}

// admitWithin admits a request that is sent in the turn of its carrier. It has no turn of its own,
// for which it would wait until the carrier has ended. The transport reports when it is written,
// and the carrier takes another turn if it is written after that. If the URL is not that of the
// carrier, the request is judged.
func (g *Gate) admitWithin(s *backend.Seam, req *http.Request, outer *carrier) error {
	if outer.kind == report.RequestRobots || outer.url == req.URL.String() {
		return nil
	}
	q := g.newTransportRequest(s, req)
	q.carried = true
	q.redirect = false // it does not wait
	q.marks = outer.marks
	ctx := req.Context()
	known := g.IsKnown(ctx, q.now, q.target, q.fetcher(), true)
	if !known { // reading robots.txt takes a turn
		outer.Use(func(trip backend.Trip) { exchangeOf(trip).Ticket.End() })
	}
	err := g.Admit(ctx, q, InTurn)
	if err != nil {
		return g.Reject(ctx, q, err)
	}
	if !known {
		return outer.Repeat()
	}
	return nil
}
