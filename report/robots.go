package report

import (
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// Robots is the robots.txt in force for a site. See Plugin.Robots.
type Robots struct {
	RobotsState

	Authority string // "https://example.com"
	RobotsURL string
	Dialect   dialect.Dialect
	// Option is the name of the option that has replaced the file, or what the dialect says about a
	// file that could not be read: see Decision.Option.
	Option string
	// Token has the product tokens that the group was found with, separated by blanks.
	Token string
	// Group has the rules for the crawler. It has no rules unless RobotsStatus is RobotsRules.
	Group *dialect.Group
	// Delay is the delay in force between the starts of two requests to the host, as in
	// Decision.Delay.
	Delay time.Duration
	// Expires is the time until which the file is used.
	Expires time.Time
	// Body is the text that the dialect reads, at most 500 KiB of it for most dialects. It must not be
	// changed. Body is nil if no rules apply. It is also nil if the text of the rules was not kept and
	// the site does not answer with it now.
	Body []byte
	// Rules is Body as the dialect reads it. It is nil if Body is nil.
	Rules *dialect.Rules
}

// A RobotsChange describes how a robots.txt has changed: it has other rules, it has appeared or
// disappeared, or it can no longer be read. The new state is then in force, also for requests that
// are waiting. An Event of kind EventRobots has a RobotsChange if the file has changed.
type RobotsChange struct {
	Authority string      `json:"authority"` // "https://example.com"
	RobotsURL string      `json:"robots_url"`
	Old       RobotsState `json:"old"`
	New       RobotsState `json:"new"`
}

// A RobotsState describes the robots.txt of a site at one time. In JSON, CrawlDelay is a number of
// seconds. A RobotsState that is read back from JSON is the same, except that Err has only its
// text.
type RobotsState struct {
	RobotsStatus RobotsStatus  `json:"robots_status"`
	Status       int           `json:"status,omitempty"`   // of the response; 0 if there was none
	Err          error         `json:"-"`                  // why the file could not be read; nil if it was read or does not exist
	Fetched      time.Time     `json:"fetched,omitzero"`   // when the file was read or confirmed, or the last fetch failed
	CrawlDelay   time.Duration `json:"-"`                  // as the dialect reads it; 0 if there is none
	Sitemaps     []string      `json:"sitemaps,omitempty"` // as written, possibly relative to RobotsURL; must not be changed
}

// A RobotsStatus says which rules apply to a site: those of its robots.txt, or others because the
// file does not exist or cannot be read. It is a stable short code.
//
// RobotsWalled replaces the other values if the answer is a challenge of a bot wall, or an HTML page with
// status 200, 401, 403, 429 or 503 that has no rules for the crawler. It changes no decision: without
// options, RFC 9309 allows everything after 200, 401, 403 and 429, and nothing after 503.
type RobotsStatus string

const (
	RobotsRules       RobotsStatus = "rules"       // the rules of robots.txt apply
	RobotsNone        RobotsStatus = "no_robots"   // there is no usable robots.txt: everything is allowed
	RobotsUnreachable RobotsStatus = "unreachable" // robots.txt cannot be read: nothing is allowed
	RobotsSiteDown    RobotsStatus = "site_down"   // the site does not respond: it gets no requests for a while
	RobotsWalled      RobotsStatus = "walled"      // a bot wall answers for robots.txt: the dialect decides by Status
)
