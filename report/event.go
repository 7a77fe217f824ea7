package report

import (
	"context"
	"time"

	"github.com/collyrobots/collyrobots/robotstags"
)

// An EventKind says what happened. It is a stable short code.
type EventKind string

const (
	EventStarted    EventKind = "started"    // a request was sent: its headers were written
	EventAnswered   EventKind = "answered"   // a request that had started has ended or failed
	EventDenied     EventKind = "denied"     // a request was not sent or, in a dry run, would not have been sent
	EventUnsent     EventKind = "unsent"     // a request was not sent: no connection was made, or its context has ended
	EventWaiting    EventKind = "waiting"    // a page has begun to wait for its host
	EventRobots     EventKind = "robots"     // a robots.txt was fetched, or read from the Store or the option RobotsTxt, or the fetch failed
	EventSitemap    EventKind = "sitemap"    // a sitemap was read, or could not be read
	EventTags       EventKind = "tags"       // a page has rules such as noindex; see Plugin.RobotsTags
	EventSlowed     EventKind = "slowed"     // a host has throttled the crawl: status 429 or 503
	EventRecovered  EventKind = "recovered"  // a host that had throttled the crawl has accepted a request
	EventLicense    EventKind = "license"    // a response with status 401 asks for a license; see package usage
	EventRefused    EventKind = "refused"    // a host has refused a number of requests in a row; see StopAfterRefusals
	EventUnchanged  EventKind = "unchanged"  // a page has not changed since an earlier visit; see Revalidate
	EventUnrecorded EventKind = "unrecorded" // the urlstore.Store of Frontier could not record a page or its result
	EventMissed     EventKind = "missed"     // events were dropped because the listener was too slow
)

// A DelaySource says where the delay between two requests to a host comes from. It is a stable
// short code, and "" if there is no delay.
type DelaySource string

const (
	SourceCrawlDelay  DelaySource = "crawl_delay"  // a line of robots.txt
	SourceRequestRate DelaySource = "request_rate" // a line of robots.txt; see HonorDelays
	SourceVisitTime   DelaySource = "visit_time"   // a line of robots.txt; nothing is sent at this time of day
	SourceHours       DelaySource = "hours"        // the option CrawlHours; pages wait for its hours
	SourceMinDelay    DelaySource = "min_delay"    // the option MinDelay
	SourceAdaptive    DelaySource = "adaptive"     // the option AdaptiveDelay
	SourceBackOff     DelaySource = "back_off"     // responses with status 429 or 503
	SourceRetryAfter  DelaySource = "retry_after"  // the Retry-After header of such a response
	SourceMaxRate     DelaySource = "max_rate"     // the option MaxRate; pages wait for the rate of all hosts together
	SourcePaused      DelaySource = "paused"       // Plugin.Pause; nothing is sent until Plugin.Resume
)

// A RequestKind says what a request was for. It is a stable short code. It is "" in events that do
// not describe a single request that was sent.
type RequestKind string

const (
	RequestPage     RequestKind = "page"     // a request of a collector or an http.Client, or a Turn
	RequestRedirect RequestKind = "redirect" // a redirect of a page that is followed
	RequestRobots   RequestKind = "robots"   // a robots.txt, or a redirect of one
	RequestSitemap  RequestKind = "sitemap"  // a sitemap, or a redirect of one
	RequestTDM      RequestKind = "tdmrep"   // a TDMRep file, or a redirect of one; see TDMRep
	RequestRetry    RequestKind = "retry"    // one of these, repeated after 429 or 503 or after a lost connection
)

// An Event reports something that happened on the wire, or that a request was not sent. The comment
// of each field names the kinds of events that have the field. In other events it is zero. All
// listeners get the same Event, so they must not change it. They may keep it.
//
// The robots event of a file comes before the events of all requests that the file decides about.
//
// In JSON, durations are numbers of seconds, such as 0.25. An Event that is read back from JSON is
// the same, except that Err has only its text, and Body and Context are missing.
type Event struct {
	Kind EventKind `json:"kind"`
	// Time is when it happened.
	Time time.Time `json:"time"`
	// Host is the host, as in HostStats.
	Host string `json:"host,omitempty"`
	// URL is the URL of the request, the robots.txt or the sitemap. If it has a password, that is
	// replaced.
	URL string `json:"url,omitempty"`

	// Collector and Request are the numbers that Colly has given to the collector and to the
	// request of a page. The redirects of the page have the same numbers. Both are 0 for the
	// plugin's own requests, and if they are not known.
	Collector uint32 `json:"collector,omitempty"`
	Request   uint32 `json:"request,omitempty"`

	// Page (started, answered, denied, unsent) is a number that the plugin has given to the page. Its
	// redirects and retries have the same number, and so do the requests for the robots.txt or the
	// TDMRep file that the page needs. It is 0 if there was no listener when the page was requested. A
	// page that has waited for a LimitRule for more than ten seconds may get a new number.
	Page uint64 `json:"page,omitempty"`
	// Context (as Page) is the context of the request: for a page of a collector, the Context of the
	// collector. It may have ended. It is not in JSON.
	Context context.Context `json:"-"`

	// RequestKind (started, answered, denied, unsent) says what the request was for. In denied and
	// unsent events it is "" if the request has not reached the transport.
	RequestKind RequestKind `json:"request_kind,omitempty"`
	// Waited (started, denied, unsent) is how long the request has waited until it might start, was
	// denied or was given up: for robots.txt, for its turn, and for a LimitRule. RobotsWait is the part
	// before robots.txt and the TDMRep file were known. Connect is the time from then until Time, in
	// which the transport gets a connection. The wait of a retry begins when the
	// attempt before it has ended, and that of a page with a new number when it gets the number. For
	// the plugin's own requests, Waited is how long the page that needs the file has waited, or 0 if
	// there is no such page, and the others are 0.
	Waited     time.Duration `json:"-"`
	RobotsWait time.Duration `json:"-"`
	Connect    time.Duration `json:"-"`
	// More (answered, denied) says that the page goes on: the request is sent again, it is redirected
	// and the redirect may be followed, or it is sent because of the dry run.
	More bool `json:"more,omitempty"`

	// Failed (answered, unsent, denied) says that the page has failed, as HostStats.Failed counts it.
	Failed bool `json:"failed,omitempty"`

	// From (started) is the URL that redirects to URL.
	From string `json:"from,omitempty"`
	// Group (started) is the name of the group that shares one pace with the host, as in HostStats.
	Group string `json:"group,omitempty"`
	// Gap (started) is the time since the last started event of the host or its Group. It is 0 for
	// the first one. Started events come in the order of their times, except that of a request whose
	// start its transport has not reported: it comes when the request has ended. If the event of a
	// later request came before, its Gap is negative.
	Gap time.Duration `json:"-"`

	// Delay (started, waiting, slowed, recovered) is the delay in force, or 0 if there is none.
	Delay time.Duration `json:"-"`
	// Source (as Delay) says where the delay comes from. In waiting events, it says what the next
	// start waits for.
	Source DelaySource `json:"source,omitempty"`
	// Line (as Delay) is the line of robots.txt if Source is SourceCrawlDelay, SourceRequestRate or
	// SourceVisitTime.
	Line int `json:"line,omitempty"`

	// Status (answered, robots, slowed, recovered, license, refused) is the status of the response,
	// or 0 if there was no response. In unchanged events it is 304, or 0 if the page was not
	// requested.
	Status int `json:"status,omitempty"`
	// Bytes (answered) is the number of bytes of the body that were read.
	Bytes int64 `json:"bytes,omitempty"`
	// Took (answered) is the time from the start of the request to the end of the body.
	Took time.Duration `json:"-"`
	// Date (answered) is the value of the Date header of the response, which is the server's clock.
	// It is zero if the response has no valid Date, or has an Age because a cache has kept it.
	Date time.Time `json:"date,omitzero"`
	// Remote (answered) is the address and port of the server or proxy that got the request. It is
	// "" if the transport does not report it.
	Remote string `json:"remote,omitempty"`
	// Signed (answered) says that the request was sent with a signature of SignRequests.
	Signed bool `json:"signed,omitempty"`
	// Err (answered, unsent, robots, sitemap, refused, unrecorded) says what went wrong. In denied events
	// it is the reason, if Decision is nil.
	Err error `json:"-"`

	// Decision (denied, started) says why the request is denied or allowed. In denied events it is
	// nil if the request was denied for another reason; see Err. In started events it is nil for
	// robots.txt and sitemaps, and if there was no listener when the request was about to start.
	Decision *Decision `json:"decision,omitempty"`

	// Tags (tags) has the rules of the page. Those in meta elements are missing without
	// EnforceNofollow.
	Tags robotstags.Tags `json:"tags,omitempty"`

	// Count is the number of pages that wait for the host (waiting), of entries that were read
	// (sitemap), of requests that the host has refused in a row (refused), or of events that were
	// dropped (missed).
	Count int `json:"count,omitempty"`
	// OnDisk (waiting) says that the page waits in the urlstore.Store of the option Frontier. Count then
	// includes the pages of the host that wait there.
	OnDisk bool `json:"on_disk,omitempty"`
	// Until (waiting) is the time before which no request to the host starts, or zero if that is
	// not known. In slowed events it is the time until which a Retry-After holds back all requests.
	// In refused events it is the time of the next try if the host is stopped, and otherwise zero.
	Until time.Time `json:"until,omitzero"`

	// RobotsStatus (robots) says which rules apply to the site now.
	RobotsStatus RobotsStatus `json:"robots_status,omitempty"`
	// Option (robots) is the name of the option that decides in place of the robots.txt of the site
	// or of the dialect, as in Decision. Under "RobotsTxt", Hash and Body are those of the option.
	Option string `json:"option,omitempty"`
	// Fetched (robots) is the time at which robots.txt was read or confirmed, or at which the last
	// attempt failed. It is earlier than Time if Stored is set.
	Fetched time.Time `json:"fetched,omitzero"`
	// Stored (robots) says that the file was read from the Store and not fetched.
	Stored bool `json:"stored,omitempty"`
	// Hash (robots) has the first 32 hexadecimal digits of the SHA-256 of the file. It is "" if
	// there are no rules.
	Hash string `json:"hash,omitempty"`
	// Body (robots) is the file as it was read. It is nil if there are no rules, or if the file has
	// not changed.
	Body []byte `json:"-"`
	// Change (robots) has the differences from the file before. It is nil if there are none, or if
	// the file was read for the first time.
	Change *RobotsChange `json:"change,omitempty"`
}
