package collyrobots

import (
	"encoding/json"
	"time"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// A RobotsChange is in the EventRobots of a robots.txt that means something else than when it was read
// before: other rules, or none, or it can no longer be read. The new meaning is then in force, also
// for requests that wait.
type RobotsChange struct {
	Authority string      `json:"authority"` // "https://example.com"
	RobotsURL string      `json:"robots_url"`
	Old       RobotsState `json:"old"`
	New       RobotsState `json:"new"`
}

// RobotsState describes the robots.txt of a site at one time. In JSON it is written as a Decision is.
type RobotsState struct {
	RobotsStatus RobotsStatus  `json:"robots_status"`
	Status       int           `json:"status,omitempty"`   // of the response; 0: there was none
	Err          error         `json:"-"`                  // why it could not be read; nil: it was, or the status says it all
	Fetched      time.Time     `json:"fetched,omitzero"`   // when it was read or confirmed, or the last try failed
	CrawlDelay   time.Duration `json:"-"`                  // as the dialect reads it; 0: none
	Sitemaps     []string      `json:"sitemaps,omitempty"` // as written, perhaps relative to RobotsURL; not to be changed
}

// A RobotsStatus says which rules apply to a site: those of its robots.txt, or others because the
// file does not exist or cannot be read. It is a stable short code.
type RobotsStatus string

const (
	RobotsRules       RobotsStatus = "rules"       // the rules of robots.txt apply
	RobotsNone        RobotsStatus = "no_robots"   // there is no usable robots.txt: everything is allowed
	RobotsUnreachable RobotsStatus = "unreachable" // robots.txt cannot be read: nothing is allowed
	RobotsSiteDown    RobotsStatus = "site_down"   // the site does not respond: it gets no requests for a while
)

// changeOf returns how a policy differs from the one before.
func changeOf(old, new *policy.Policy) *RobotsChange {
	return &RobotsChange{Authority: new.Authority.String(), RobotsURL: new.RobotsURL(), Old: stateOf(old), New: stateOf(new)}
}

func stateOf(p *policy.Policy) RobotsState {
	return RobotsState{
		RobotsStatus: RobotsStatus(p.RobotsStatus.String()),
		Status:       p.Status(),
		Err:          p.Err(),
		Fetched:      p.Fetched(),
		CrawlDelay:   p.CrawlDelay(),
		Sitemaps:     p.Sitemaps(),
	}
}

// plainRobotsState is a RobotsState as package json would write it.
type plainRobotsState RobotsState

type robotsStateJSON struct {
	*plainRobotsState
	CrawlDelay jsonDuration `json:"crawl_delay,omitempty"`
	Error      string       `json:"error,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s RobotsState) MarshalJSON() ([]byte, error) {
	return json.Marshal(robotsStateJSON{(*plainRobotsState)(&s), jsonDuration(s.CrawlDelay), textOf(s.Err)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *RobotsState) UnmarshalJSON(b []byte) error {
	j := robotsStateJSON{plainRobotsState: (*plainRobotsState)(s)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	s.CrawlDelay, s.Err = time.Duration(j.CrawlDelay), errorOf(j.Error)
	return nil
}
