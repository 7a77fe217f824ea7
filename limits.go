package collyrobots

import (
	"errors"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// This file denies pages that robots.txt allows: those of hosts that refuse requests (StopRefused),
// and those over the budget of their host (MaxPages).
//
// A page is checked twice. When it is judged, restrict denies it if the limit is reached already.
// Just before it is sent, claim decides again and counts it, so that the numbers are exact although
// many pages are judged at the same time. A page that waits for its host is also checked whenever a
// request of the host has ended. So a page that can no longer be sent does not wait for its start.

// restrict changes v, the verdict on q, to a denial if a limit of its host is reached.
func (j *judge) restrict(q *request, v *verdict) {
	if q.probe != v.host.Name() {
		j.restrictByRefusals(q.now, v)
	}
	if !q.isCounted(v) {
		j.restrictByBudget(v)
	}
}

// restrictTarget is like restrict for a target that has no request. A file, such as a sitemap, is
// not counted as a page.
func (j *judge) restrictTarget(now time.Time, t target, v *verdict) {
	j.restrictByRefusals(now, v)
	if !t.isFile {
		j.restrictByBudget(v)
	}
}

// restrictByRefusals denies a URL if its host is stopped at now.
func (j *judge) restrictByRefusals(now time.Time, v *verdict) {
	if !v.rule.Allowed || j.stops.None() {
		return
	}
	status, denied := j.stops.Denied(now, v.host.Name())
	if denied {
		v.stopped = &status
		v.deny(ReasonRefused)
	}
}

// restrictByBudget denies a page if the budget of its host is used up.
func (j *judge) restrictByBudget(v *verdict) {
	limit := v.settings.maxPages
	if v.rule.Allowed && limit > 0 && j.sent.Used(v.host.Name()) >= limit {
		v.deny(ReasonBudget)
	}
}

// deny makes v a denial that no rule of robots.txt causes.
func (v *verdict) deny(reason Reason) {
	v.reason = reason
	v.rule = dialect.Decision{}
}

// allow undoes deny. rule and reason are those before it.
func (v *verdict) allow(rule dialect.Decision, reason Reason) {
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
	dry, err := g.enforce(*v, q.target.url, q.numbers)
	q.dry = dry
	if err != nil {
		return q.denied(err)
	}
	return nil
}

// tryClaim counts q for claim. It returns the reason why q must not be sent, or "".
func (g *gate) tryClaim(q *request) Reason {
	v := &q.verdict
	name := v.host.Name()
	if q.probe != name && !g.stops.None() {
		status, denied := g.stops.Denied(q.now, name)
		if denied {
			v.stopped = &status
			return ReasonRefused
		}
	}
	if limit := v.settings.maxPages; limit > 0 && !q.isCounted(v) {
		if !g.sent.Take(name, limit) {
			return ReasonBudget
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
		return ReasonRefused
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
	name := v.host.Name()
	q.ticket.WaitWhile(func() error {
		_, stopped := g.stops.Denied(time.Now(), name)
		if stopped && q.probe != name {
			return errDenied
		}
		limit := v.settings.maxPages
		if limit > 0 && !q.isCounted(v) && g.sent.Used(name) >= limit {
			return errDenied
		}
		return nil
	})
}
