package collyrobots

import (
	"log/slog"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// changes puts changed robots.txt files into force and reports them.
type changes struct {
	tell    func(RobotsChange)
	limiter *limiter
}

// put puts a policy that differs from the one before into force for those who wait already: the
// pace changes at once, and each of them is judged again before it goes on.
func (c changes) put(s *hostSettings, reader string, old, new *policy.Policy) {
	change := changeOf(old, new)
	c.limiter.learn(s, reader, new)
	c.limiter.report.log.Info("robots.txt has changed", "robots", change.RobotsURL, "meaning", change.New.Meaning, "delay", change.New.CrawlDelay,
		slog.Group("old", "meaning", change.Old.Meaning, "delay", change.Old.CrawlDelay))
	c.tell(change)
}
