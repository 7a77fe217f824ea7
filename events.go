package collyrobots

import "time"

// An EventKind is what happened: a stable short code.
type EventKind string

const (
	EventStarted   EventKind = "started"   // a request was sent: its headers were written
	EventAnswered  EventKind = "answered"  // a request that had started is over, or has failed
	EventDenied    EventKind = "denied"    // a request was not sent, or would not have been in a dry run
	EventWaiting   EventKind = "waiting"   // a page begins to wait for its host
	EventRobots    EventKind = "robots"    // a robots.txt was fetched, or could not be, or came from the Store
	EventSitemap   EventKind = "sitemap"   // a sitemap was read, or could not be
	EventSlowed    EventKind = "slowed"    // a host has asked for less: 429, or 503
	EventRecovered EventKind = "recovered" // a host that had asked for less has accepted a request again
	EventMissed    EventKind = "missed"    // the listener was too slow and has missed events
)

// A DelaySource is where a delay between two requests to a host comes from: a stable short code,
// "" where there is no delay.
type DelaySource string

const (
	SourceCrawlDelay DelaySource = "crawl_delay" // a line of robots.txt
	SourceMinDelay   DelaySource = "min_delay"   // the option MinDelay
	SourceBackOff    DelaySource = "back_off"    // answers with status 429 or 503
	SourceRetryAfter DelaySource = "retry_after" // the Retry-After of such an answer
)

// A RequestKind says what a request was for. It is a stable short code. It is "" in events that are
// not about a single request that was sent.
type RequestKind string

const (
	RequestPage     RequestKind = "page"     // a request of a collector
	RequestRedirect RequestKind = "redirect" // a redirect of a page that is followed
	RequestRobots   RequestKind = "robots"   // a robots.txt, or a redirect of one
	RequestSitemap  RequestKind = "sitemap"  // a sitemap, or a redirect of one
	RequestRetry    RequestKind = "retry"    // one of these, repeated after 429 or 503 or after a lost connection
)

// An Event reports something that happened on the wire, or that a request was not sent. Fields that
// do not apply to its Kind are zero. In JSON, durations are numbers of seconds, such as 0.25. An Event
// that is read back from JSON is the same, except that Err has only its text, and Body is missing.
type Event struct {
	Kind EventKind `json:"kind"`
	Time time.Time `json:"time"`           // when it happened
	Host string    `json:"host,omitempty"` // as in HostStats
	URL  string    `json:"url,omitempty"`  // of the request, the robots.txt or the sitemap, a password replaced

	// Collector and Request are Colly's numbers of a page and of the hops that it led to; 0: not
	// known, or the request is the plugin's own.
	Collector uint32 `json:"collector,omitempty"`
	Request   uint32 `json:"request,omitempty"`

	RequestKind RequestKind `json:"request_kind,omitempty"` // started, answered: what the request was for
	From        string      `json:"from,omitempty"`         // started: the URL that redirects to this one

	// Gap is the time since the last request to the host was started; 0: it is the first. Started
	// has it.
	Gap time.Duration `json:"-"`
	// Delay is the delay in force, 0 for none, Source where it comes from, and Line the line of
	// robots.txt with the crawl delay. Started, waiting, slowed and recovered have them; the Source
	// of waiting is what the next start waits for.
	Delay  time.Duration `json:"-"`
	Source DelaySource   `json:"source,omitempty"`
	Line   int           `json:"line,omitempty"`

	Status int           `json:"status,omitempty"` // answered, robots, slowed, recovered: of the response; 0: there was none
	Bytes  int64         `json:"bytes,omitempty"`  // answered: the bytes of the body that were read
	Took   time.Duration `json:"-"`                // answered: from the start to the end of the body
	Err    error         `json:"-"`                // answered, robots, sitemap: what went wrong; denied: why, without a Decision

	// Decision is why a request was denied by robots.txt, not to be changed; nil under denied: it
	// was by something else, Err.
	Decision *Decision `json:"decision,omitempty"`

	Count int       `json:"count,omitempty"` // waiting: pages that wait for the host; sitemap: entries read; missed: events
	Until time.Time `json:"until,omitzero"`  // waiting: before when no request to the host starts, zero: not known; slowed: until when a Retry-After holds all of them

	RobotsStatus RobotsStatus  `json:"robots_status,omitempty"` // robots: which rules apply to the site now
	Fetched      time.Time     `json:"fetched,omitzero"`        // robots: when it was read or confirmed, or the last try failed: before Time if it was Stored
	Stored       bool          `json:"stored,omitempty"`        // robots: it came from the Store, and nothing was fetched
	Hash         string        `json:"hash,omitempty"`          // robots: the first 32 hexadecimal digits of the SHA-256 of the file; "": there are no rules
	Body         []byte        `json:"-"`                       // robots: the file as read, not to be changed; nil: there are no rules, or it is as it was
	Change       *RobotsChange `json:"change,omitempty"`        // robots: what has changed; nil if it is the same, or the first
}
