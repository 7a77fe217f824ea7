package gate

import (
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/report"
)

// A totalLimit is the limit of the option MaxPages, for the pages of all hosts together.
type totalLimit struct {
	most int64
	sent atomic.Int64
}

func (l *totalLimit) Concerns(*judge.HostSettings) bool { return true }

func (l *totalLimit) Judge(_ time.Time, c judge.Candidate) *judge.Denial {
	if c.IsFile || l.isCounted(c) || l.sent.Load() < l.most {
		return nil
	}
	return l.reached()
}

func (l *totalLimit) Take(_ time.Time, c judge.Candidate) *judge.Denial {
	if l.isCounted(c) {
		return nil
	}
	if l.sent.Add(1) > l.most {
		l.sent.Add(-1)
		return l.reached()
	}
	c.Marks.Set(judge.Mark{By: l, Host: c.Host})
	return nil
}

func (l *totalLimit) Undo(time.Time, string) { l.sent.Add(-1) }

// isCounted reports whether the page of a request is counted already, as that of a redirect is.
func (l *totalLimit) isCounted(c judge.Candidate) bool { return c.Marks.Of(l).By != nil }

func (l *totalLimit) reached() *judge.Denial {
	return &judge.Denial{Reason: report.ReasonBudget, Describe: func(d *report.Decision) { d.MaxPages = int(l.most) }}
}
