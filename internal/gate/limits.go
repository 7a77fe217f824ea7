package gate

import (
	"errors"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/internal/judge"
)

// candidate returns the candidate of a request that was judged.
func (q *Request) candidate() judge.Candidate {
	return q.Complete(judge.CandidateOf(&q.verdict, &q.target))
}

// Complete implements judge.Applicant.
func (q *Request) Complete(c judge.Candidate) judge.Candidate {
	c.Marks = &q.marks
	if q.redirect {
		c.Redirected = q.From
	}
	return c
}

// charge is called just before q is sent. The limits count it. If they no longer allow it, charge
// returns a *judge.Denied or, in a dry run, stores it in q.dry.
func (g *Gate) charge(q *Request) error {
	if len(g.Limits) == 0 || q.dry != nil {
		return nil
	}
	d := g.take(q)
	if d == nil {
		return nil
	}
	q.verdict.Deny(d)
	dry, err := g.Enforce(&q.verdict, q.target.URL, q.IDs, q.redirect)
	q.dry = dry
	return err
}

// take makes all limits count q. If one of them denies it, none counts it. The last limit counts
// first: then the first one, which decides, does not count a request that another limit denies.
func (g *Gate) take(q *Request) *judge.Denial {
	c := q.candidate()
	if d := g.LimitOf(q.now, c); d != nil {
		return d
	}
	for _, l := range slices.Backward(g.Limits) {
		if d := l.Take(q.now, c); d != nil {
			q.refund()
			return d
		}
	}
	return nil
}

// refund undoes charge if q was never sent.
func (q *Request) refund() {
	if q.marks.None() || q.WasSent() {
		return
	}
	now := time.Now()
	for _, l := range slices.Backward(q.gate.Limits) {
		if m := q.marks.Of(l); m.By != nil && m.Source == judge.OfItself {
			q.marks.Clear(l)
			l.Undo(now, m.Host)
		}
	}
}

// errDenied ends the wait of a page whose host has reached a limit. The page is then judged again.
var errDenied = errors.New("a limit of the host is reached")

// endWaitIfDenied makes Enter of the host of q return errDenied if a limit of the host is reached.
func (g *Gate) endWaitIfDenied(q *Request) {
	concerns := func(l judge.Limit) bool { return l.Concerns(q.verdict.Settings) }
	if g.DryRun || !slices.ContainsFunc(g.Limits, concerns) {
		return
	}
	q.Ticket.WaitWhile(func() error {
		if g.LimitOf(time.Now(), q.candidate()) != nil {
			return errDenied
		}
		return nil
	})
}

// addFeatures adds the limits and the responders whose options are set for any host. The
// responder of StopAfterRefusals counts refusals also without the option.
func (g *Gate) addFeatures() {
	s := g.Settings
	g.Limits = appendIf(g.Limits, s.IsForAny(g.refusals.Concerns), judge.Limit(g.refusals))
	g.Limits = appendIf(g.Limits, s.IsForAny(g.pageLimit.Concerns), judge.Limit(g.pageLimit))
	g.Limits = appendIf(g.Limits, g.MaxPages > 0, judge.Limit(&totalLimit{most: int64(g.MaxPages)}))
	g.responders = appendIf(g.responders, g.Wire.Signs(), responder(signedRetries{}))
	g.responders = append(g.responders, g.refusals)
	if s.IsForAny(func(s *judge.HostSettings) bool { return s.Retries != nil }) {
		g.retries = new(retries)
		g.responders = append(g.responders, g.retries)
	}
}

// appendIf appends a feature to a list if a condition is true.
func appendIf[F any](list []F, condition bool, feature F) []F {
	if !condition {
		return list
	}
	return append(list, feature)
}
