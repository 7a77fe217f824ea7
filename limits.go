package collyrobots

import (
	"errors"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
)

// This file denies pages that robots.txt allows: those of hosts that refuse requests (StopRefused),
// and those over the budget of their host (MaxPages).
//
// A page is checked twice. When it is judged, restrict denies it if the limit is reached already.
// Just before it is sent, claim decides again and counts it, so that the numbers are exact although
// many pages are judged at the same time. A page that waits for its host is also checked whenever a
// request of the host has ended. So a page that can no longer be sent does not wait for its start.

// exempt says which limits of its host do not concern a URL.
type exempt struct{ refusals, budget bool }

// exemptions returns the limits that do not concern q with the verdict v: a probe goes to a host
// that is stopped, and a page is counted once.
func (q *request) exemptions(v *verdict) exempt {
	return exempt{refusals: q.probe == v.host.Name(), budget: q.isCounted(v)}
}

// limitOf returns the reason why a limit of the host of v denies a URL at now, or "". If the host is
// stopped, stopped says since when.
func (j *judge) limitOf(now time.Time, v *verdict, x exempt) (reason report.Reason, stopped *stop.Status) {
	name := v.host.Name()
	if !x.refusals && !j.stops.None() {
		status, denied := j.stops.Denied(now, name)
		if denied {
			return report.ReasonRefused, &status
		}
	}
	limit := v.settings.maxPages
	if !x.budget && limit > 0 && j.sent.Used(name) >= limit {
		return report.ReasonBudget, nil
	}
	return "", nil
}

// restrict changes v, a verdict at now, to a denial if a limit of its host is reached.
func (j *judge) restrict(now time.Time, v *verdict, x exempt) {
	if !v.rule.Allowed {
		return
	}
	reason, stopped := j.limitOf(now, v, x)
	if reason != "" {
		v.stopped = stopped
		v.deny(reason)
	}
}

// deny makes v a denial that no rule of robots.txt causes.
func (v *verdict) deny(reason report.Reason) {
	v.reason = reason
	v.rule = dialect.Decision{}
}

// allow undoes deny. rule and reason are those before it.
func (v *verdict) allow(rule dialect.Decision, reason report.Reason) {
	v.rule = rule
	v.reason = reason
	v.stopped = nil
}

// isCounted reports whether q is already counted in the budget of its host. A redirect within a
// host is part of the page that was counted.
func (q *request) isCounted(v *verdict) bool {
	name := v.host.Name()
	return q.charged == name || q.redirect && q.from == name
}

// claim is called just before q is sent. It counts q in the budget of its host. If the host is
// stopped and a probe is due, q becomes the probe. If the limits no longer allow q, claim returns a
// *DisallowedError or, in a dry run, stores it in q.dry.
func (g *gate) claim(q *request) error {
	v := &q.verdict
	if v.settings.maxPages == 0 && g.stops.None() || q.dry != nil {
		return nil
	}
	reason := g.tryClaim(q)
	if reason == "" {
		return nil
	}
	v.deny(reason)
	dry, err := g.enforce(v, q.target.url, q.numbers)
	q.dry = dry
	if err != nil {
		return q.denied(err)
	}
	return nil
}

// tryClaim counts q for claim. It returns the reason why q must not be sent, or "".
func (g *gate) tryClaim(q *request) report.Reason {
	v := &q.verdict
	name := v.host.Name()
	reason, stopped := g.limitOf(q.now, v, q.exemptions(v))
	if reason != "" {
		v.stopped = stopped
		return reason
	}
	if limit := v.settings.maxPages; limit > 0 && !q.isCounted(v) {
		if !g.sent.Take(name, limit) {
			return report.ReasonBudget
		}
		q.charged = name
	}
	if q.probe == name {
		return ""
	}
	probe, ok := g.stops.Start(q.now, name)
	if !ok {
		status := g.stops.Status(name)
		v.stopped = &status
		q.unclaim()
		return report.ReasonRefused
	}
	if probe {
		q.probe = name
		q.tries = name
	}
	return ""
}

// unclaim undoes claim if q was never sent.
func (q *request) unclaim() {
	if q.charged == "" && q.tries == "" || q.before || q.sent.Load() {
		return
	}
	if q.charged != "" {
		q.gate.sent.Return(q.charged)
		q.charged = ""
	}
	if q.tries != "" {
		q.gate.stops.NotSent(time.Now(), q.tries)
		q.tries = ""
		q.probe = ""
	}
}

// errDenied ends the wait of a page whose host has reached a limit. The page is then judged again.
var errDenied = errors.New("a limit of the host is reached")

// endWaitIfDenied makes Enter of the host of q return errDenied if a limit of the host is reached.
func (g *gate) endWaitIfDenied(q *request) {
	v := &q.verdict
	if g.dryRun || v.settings.stopRefused == 0 && v.settings.maxPages == 0 {
		return
	}
	q.ticket.WaitWhile(func() error {
		reason, _ := g.limitOf(time.Now(), v, q.exemptions(v))
		if reason != "" {
			return errDenied
		}
		return nil
	})
}
