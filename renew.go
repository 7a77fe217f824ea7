package collyrobots

import (
	"log/slog"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// changes reports changed robots.txt files.
type changes struct {
	tell    func(RobotsChange)
	limiter *limiter
}

// put reports a policy that differs from the one before. Its delay is in force already, and each
// request that waits is judged again when its turn comes.
func (c changes) put(s *hostSettings, reader string, old, new *policy.Policy) {
	change := changeOf(old, new)
	c.limiter.report.log.Info("robots.txt has changed", "robots", change.RobotsURL, "robots_status", change.New.RobotsStatus, "delay", change.New.CrawlDelay,
		slog.Group("old", "robots_status", change.Old.RobotsStatus, "delay", change.Old.CrawlDelay))
	c.tell(change)
}
