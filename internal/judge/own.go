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
// check gets the origin of the request, and the time of Fetcher.Turn. It is called again if robots.txt
// changes before the request has its turn.
func (j *Judge) SendOwn(req *http.Request, timeout time.Duration, from exchange.Lead, check func(by exchange.Origin, turn time.Time) (Verdict, error)) (resp *http.Response, began time.Time, err error) {
	guard, err := j.Wire.Allow(from, hostname.Of(req.URL), req.URL)
	if err != nil {
		j.Report.TellUnsent(req.URL, err, false, reporter.IDs{})
		return nil, time.Time{}, err
	}
	x := &exchange.Exchange{Wire: j.Wire}
	x.Permit = permitOf(req.Context(), x, func(turn time.Time) (Verdict, error) {
		return check(exchange.GuardedBy(guard, from.Payer), turn)
	})
	err = x.Permit.Check(time.Time{})
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
func permitOf(ctx context.Context, x *exchange.Exchange, judge func(turn time.Time) (Verdict, error)) *exchange.Permit {
	var last Verdict
	current := func(turn time.Time) bool {
		if last.Reader == nil { // no policy, or robots.txt is ignored
			return last.Policy == nil || last.Policy.Fresh(time.Now())
		}
		return last.Reader.Known(ctx, time.Now(), last.Policy.Authority, last.Host, turn) != nil
	}
	check := func(turn time.Time) error {
		v, err := judge(turn)
		if err == nil {
			v.ObeyedBy(&x.Ticket)
			last = v
		}
		return err
	}
	return &exchange.Permit{Current: current, Check: check}
}
