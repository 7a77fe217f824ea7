package judge

import (
	"context"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/reporter"
)

// SendOwn sends a request of the plugin's own, as exchange.Exchange.Send does, if check returns no error.
// check gets the origin of the request. It is called again if robots.txt changes before the request has
// its turn.
func (j *Judge) SendOwn(req *http.Request, timeout time.Duration, from exchange.Lead, check func(exchange.Origin) (Verdict, error)) (resp *http.Response, began time.Time, err error) {
	guard, err := j.Wire.Allow(from, hostname.Of(req.URL), req.URL)
	if err != nil {
		j.Report.TellUnsent(req.URL, err, reporter.IDs{})
		return nil, time.Time{}, err
	}
	x := &exchange.Exchange{Wire: j.Wire}
	x.Permit = permitOf(req.Context(), x, func() (Verdict, error) { return check(exchange.GuardedBy(guard, from.Payer)) })
	err = x.Permit.Check()
	if err != nil {
		return nil, time.Time{}, err
	}
	resp, began, err = x.Send(req, from.Client.Seam(), timeout, from)
	if exchange.IsForbidden(err) {
		began = time.Time{} // the connection has shown a private address, so trying again is useless
	}
	return resp, began, err
}

// permitOf returns the permit of x. It lets x be sent if judge returns no error.
func permitOf(ctx context.Context, x *exchange.Exchange, judge func() (Verdict, error)) *exchange.Permit {
	var last Verdict
	current := func() bool {
		return last.Reader == nil || last.Reader.Known(ctx, time.Now(), last.Policy.Authority, last.Host) != nil
	}
	check := func() error {
		v, err := judge()
		if err == nil {
			v.ObeyedBy(&x.Ticket)
			last = v
		}
		return err
	}
	return &exchange.Permit{Current: current, Check: check}
}
