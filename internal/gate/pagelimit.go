package gate

import (
	"time"

	"github.com/collyrobots/collyrobots/internal/budget"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/report"
)

// A pageLimit is the limit of the option MaxPagesPerHost. The zero pageLimit allows every page.
type pageLimit struct{ sent *budget.Pages }

func (l *pageLimit) Concerns(s *judge.HostSettings) bool { return s.MaxPagesPerHost > 0 }

func (l *pageLimit) Judge(_ time.Time, c judge.Candidate) *judge.Denial {
	most := c.Settings.MaxPagesPerHost
	if most == 0 || c.IsFile || l.isCounted(c) || l.sent.Used(c.Host) < most {
		return nil
	}
	return pageLimitReached(most)
}

func (l *pageLimit) Take(_ time.Time, c judge.Candidate) *judge.Denial {
	most := c.Settings.MaxPagesPerHost
	if most == 0 || l.isCounted(c) {
		return nil
	}
	if !l.sent.Take(c.Host, most) {
		return pageLimitReached(most)
	}
	c.Marks.Set(judge.Mark{By: l, Host: c.Host})
	return nil
}

func (l *pageLimit) Undo(_ time.Time, host string) { l.sent.Return(host) }

// isCounted reports whether a request is already counted in the budget of its host. A redirect
// within a host is part of the page that was counted.
func (l *pageLimit) isCounted(c judge.Candidate) bool {
	m := c.Marks.Of(l)
	return m.Host == c.Host && m.Source != judge.OfRedirect || c.Redirected == c.Host
}

// pageLimitReached returns the denial of a host whose budget is used up.
func pageLimitReached(most int) *judge.Denial {
	return &judge.Denial{Reason: report.ReasonBudget, Describe: func(d *report.Decision) { d.MaxPagesPerHost = most }}
}
