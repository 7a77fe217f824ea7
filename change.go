package collyrobots

import (
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// A RobotsChange tells that the robots.txt of a site means something else than when it was read before.
type RobotsChange struct {
	Authority string // "https://example.com"
	RobotsURL string
	Old, New  RobotsState
}

// RobotsState is what a robots.txt means at a time.
type RobotsState struct {
	Meaning    string // "rules", "no restriction", "unreachable", "site down"
	Status     int    // of the response; 0: there was none
	Err        error  // why it could not be read; nil: it was, or the status says it all
	Fetched    time.Time
	CrawlDelay time.Duration // as written
	Sitemaps   []string
}

func stateOf(p *policy.Policy) RobotsState {
	return RobotsState{p.Meaning.String(), p.Status, p.Err, p.Fetched, p.CrawlDelay, p.Sitemaps}
}

// changed puts a policy that differs from the one before into force for those who wait already: the pace changes at once, and each
// of them is judged again before it goes on.
func (p *Plugin) changed(r *regime, old, new *policy.Policy) {
	change := RobotsChange{new.Authority, new.RobotsURL, stateOf(old), stateOf(new)}
	if u, err := url.Parse(new.RobotsURL); err == nil {
		w, _ := r.wish(new.CrawlDelay)
		p.pace.of(u).heed(time.Now(), u.Scheme, w)
	}
	p.config.log.Info("robots.txt has changed", "robots", change.RobotsURL, "was", change.Old.Meaning, "is", change.New.Meaning,
		"wasDelay", change.Old.CrawlDelay, "isDelay", change.New.CrawlDelay)
	p.config.onChanged(change)
}
