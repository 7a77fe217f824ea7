package collyrobots

import (
	"log/slog"
	"time"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// A RobotsChange is what OnRobotsChanged reports: the robots.txt of a site means something else
// than when it was read before.
type RobotsChange struct {
	Authority string // "https://example.com"
	RobotsURL string
	Old, New  RobotsState
}

// RobotsState is what a robots.txt means at a time.
type RobotsState struct {
	Meaning    Meaning
	Status     int           // of the response; 0: there was none
	Err        error         // why it could not be read; nil: it was, or the status says it all
	Fetched    time.Time     // when it was read or confirmed, or the last try failed
	CrawlDelay time.Duration // as the dialect reads it; 0: none
	Sitemaps   []string      // as written, perhaps relative to RobotsURL; not to be changed
}

// A Meaning is what is known about a site: a stable short code.
type Meaning string

const (
	MeaningRules       Meaning = "rules"       // its robots.txt decides
	MeaningNoRobots    Meaning = "no_robots"   // there is no robots.txt, or none that counts: everything is allowed
	MeaningUnreachable Meaning = "unreachable" // robots.txt cannot be read: nothing is allowed
	MeaningSiteDown    Meaning = "site_down"   // the site does not answer: it is left alone for a while
)

func stateOf(p *policy.Policy) RobotsState {
	return RobotsState{Meaning(p.Meaning.String()), p.Status(), p.Err(), p.Fetched(), p.CrawlDelay(), p.Sitemaps()}
}

// changes puts changed robots.txt files into force and reports them.
type changes struct {
	tell    func(RobotsChange)
	limiter *limiter
}

// put puts a policy that differs from the one before into force for those who wait already: the
// pace changes at once, and each of them is judged again before it goes on.
func (c changes) put(s *hostSettings, reader string, old, new *policy.Policy) {
	change := RobotsChange{new.Authority.String(), new.RobotsURL(), stateOf(old), stateOf(new)}
	now := time.Now()
	server, _ := policy.Server(new.Authority)
	c.limiter.setCrawlDelay(now, c.limiter.hosts.At(now, server), s, reader, new)
	c.limiter.report.log.Info("robots.txt has changed", "robots", change.RobotsURL, "meaning", change.New.Meaning, "delay", change.New.CrawlDelay,
		slog.Group("old", "meaning", change.Old.Meaning, "delay", change.Old.CrawlDelay))
	c.tell(change)
}
