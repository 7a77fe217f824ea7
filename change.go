package collyrobots

import (
	"encoding/json"
	"time"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// A RobotsChange is what OnRobotsChanged reports: the robots.txt of a site means something else
// than when it was read before.
type RobotsChange struct {
	Authority string      `json:"authority"` // "https://example.com"
	RobotsURL string      `json:"robots_url"`
	Old       RobotsState `json:"old"`
	New       RobotsState `json:"new"`
}

// RobotsState is what a robots.txt means at a time. In JSON it is written as a Decision is.
type RobotsState struct {
	Meaning    Meaning       `json:"meaning"`
	Status     int           `json:"status,omitempty"`   // of the response; 0: there was none
	Err        error         `json:"-"`                  // why it could not be read; nil: it was, or the status says it all
	Fetched    time.Time     `json:"fetched,omitzero"`   // when it was read or confirmed, or the last try failed
	CrawlDelay time.Duration `json:"-"`                  // as the dialect reads it; 0: none
	Sitemaps   []string      `json:"sitemaps,omitempty"` // as written, perhaps relative to RobotsURL; not to be changed
}

// A Meaning is what is known about a site: a stable short code.
type Meaning string

const (
	MeaningRules       Meaning = "rules"       // its robots.txt decides
	MeaningNoRobots    Meaning = "no_robots"   // there is no robots.txt, or none that counts: everything is allowed
	MeaningUnreachable Meaning = "unreachable" // robots.txt cannot be read: nothing is allowed
	MeaningSiteDown    Meaning = "site_down"   // the site does not answer: it is left alone for a while
)

// changeOf returns how a policy differs from the one before.
func changeOf(old, new *policy.Policy) RobotsChange {
	return RobotsChange{new.Authority.String(), new.RobotsURL(), stateOf(old), stateOf(new)}
}

func stateOf(p *policy.Policy) RobotsState {
	return RobotsState{Meaning(p.Meaning.String()), p.Status(), p.Err(), p.Fetched(), p.CrawlDelay(), p.Sitemaps()}
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
