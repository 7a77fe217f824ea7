package view

import (
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A recorder records the latest starts, denials, sitemaps and robots.txt files, which Stats only
// counts. Its memory is bounded for any number of hosts and any length of names.
type recorder struct {
	// mu protects the fields below it.
	mu        sync.Mutex
	starts    starts
	denials   recent[denialKey, *denial]
	sitemaps  recent[string, *sitemapFile]
	files     files
	rules     recent[ruleKey, *deniedRule]
	failures  recent[failureKey, *failedReason]
	faults    recent[string, *robotsFault] // by host
	counts    counts
	series    series
	throttled rate                  // responses with status 429 and 503
	notSent   map[report.Ending]int // pages that were not sent because of a limit of their host
	heard     uint64                // the number of events
	deniedBy  map[string]int        // the number of denials for each reason
	lists     uint64                // the number of changes of denials and sitemaps
	missed    int                   // the number of events that were dropped because this recorder was too slow
}

const (
	maxDenials  = 200  // entries; one entry counts all requests that one rule denies
	maxSitemaps = 200  // files
	maxText     = 2000 // bytes of a URL, a pattern or an error
)

func newRecorder() *recorder {
	return &recorder{
		deniedBy: make(map[string]int),
		notSent:  make(map[report.Ending]int),
		rules:    newRecent[ruleKey, *deniedRule](maxRules),
		failures: newRecent[failureKey, *failedReason](maxReasons),
		faults:   newRecent[string, *robotsFault](maxFaults),
		counts:   counts{byHost: make(map[string]statuses)},
		starts:   starts{hosts: newRecent[string, *hostStarts](maxHistory / hostCost)},
		denials:  newRecent[denialKey, *denial](maxDenials),
		sitemaps: newRecent[string, *sitemapFile](maxSitemaps),
		files:    newFiles(maxBodies),
	}
}

// hear is the plugin's listener.
func (r *recorder) hear(e *report.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard++
	if e.Failed {
		r.failed(e)
	}
	switch e.Kind {
	case report.EventStarted:
		r.starts.started(e)
		r.series.at(e.Time.Unix()).starts++
	case report.EventAnswered:
		r.starts.answered(e)
		r.answered(e)
	case report.EventDenied:
		r.denied(e)
	case report.EventSitemap:
		r.sitemap(e)
	case report.EventRobots:
		r.files.put(e)
		r.robotsRead(e)
	case report.EventMissed:
		r.missed += e.Count
	}
}

// answered counts the response.
func (r *recorder) answered(e *report.Event) {
	r.counts.answered(e)
	if outcomeOf(e) == throttled {
		r.throttled.count(e.Time)
	}
}

// endingOf returns the reason why the page of a denied event is left, or "" if a rule or another
// property of the page is the reason.
func endingOf(e *report.Event) report.Ending {
	switch d := e.Decision; {
	case d == nil:
		return ""
	case d.Reason == report.ReasonBudget:
		return report.EndingBudget
	case d.Reason == report.ReasonRefused:
		return report.EndingRefused
	}
	return ""
}

// other is the reason of a denial that was not caused by robots.txt.
const other = "other"

// A denial is a rule or another reason why requests to a host were not sent.
type denial struct {
	Host      string    `json:"host"`
	RobotsURL string    `json:"robots_url,omitempty"`
	Reason    string    `json:"reason"` // the Reason of a Decision, or "other" if robots.txt was not the reason; see Error
	Allow     bool      `json:"allow,omitempty"`
	Pattern   string    `json:"pattern,omitempty"`
	Line      int       `json:"line,omitempty"`
	Group     string    `json:"group,omitempty"`
	Dialect   string    `json:"dialect,omitempty"`
	Option    string    `json:"option,omitempty"` // as in Decision
	Status    int       `json:"status,omitempty"`
	Error     string    `json:"error,omitempty"`
	Count     int       `json:"count"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	URLs      []string  `json:"urls"` // the latest ones, newest first
}

type denialKey struct {
	host, robotsURL, reason, pattern, group, err string
	line                                         int
}

// maxExamples is the number of URLs that a denial and a reason of failed pages keep.
const maxExamples = 3

func (r *recorder) denied(e *report.Event) {
	r.robotsDenied(e)
	if why := endingOf(e); why != "" {
		r.notSent[why]++
	}
	d := denial{Host: clip(e.Host), Reason: other, First: e.Time}
	if e.Err != nil {
		d.Error = clip(e.Err.Error())
	}
	if v := e.Decision; v != nil {
		d.RobotsURL = clip(v.RobotsURL)
		d.Reason = string(v.Reason)
		d.Dialect = v.Dialect.String()
		d.Option = v.Option
		d.Status = v.Status
		d.Allow = v.Rule.Allow
		d.Pattern = clip(v.Rule.Pattern)
		d.Line = v.Rule.Line
		d.Group = clip(v.Group)
		switch {
		case v.Err != nil:
			d.Error = clip(v.Err.Error())
		case v.Reason == report.ReasonUsage:
			d.Error = clip(v.Usage.Disallowed())
		}
	}
	key := denialKey{host: d.Host, robotsURL: d.RobotsURL, reason: d.Reason, pattern: d.Pattern, group: d.Group, err: d.Error, line: d.Line}
	if d.Reason == other {
		key.err = "" // the error contains the URL, so each would be a new entry
	}
	known, _ := r.denials.touch(key, func() *denial { return &d })
	r.lists++
	r.deniedBy[d.Reason]++
	known.Count++
	known.Last, known.Error = e.Time, d.Error
	known.URLs = withLatest(known.URLs, clip(e.URL))
	r.deniedByRule(known, e.Time)
}

// withLatest returns a new slice with a URL and the latest ones of others, because a page may be reading
// the old slice.
func withLatest(others []string, url string) []string {
	urls := []string{url}
	for _, u := range others {
		if u != url && len(urls) < maxExamples {
			urls = append(urls, u)
		}
	}
	return urls
}

// A sitemapFile is a sitemap that the crawl has read.
type sitemapFile struct {
	URL     string    `json:"url"`
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`
	Status  int       `json:"status,omitempty"`
	Entries int       `json:"entries"`
	Error   string    `json:"error,omitempty"`
}

func (r *recorder) sitemap(e *report.Event) {
	f, _ := r.sitemaps.touch(clip(e.URL), func() *sitemapFile { return &sitemapFile{URL: clip(e.URL), Host: clip(e.Host)} })
	r.lists++
	f.Time = e.Time
	f.Status = e.Status
	f.Entries = e.Count
	f.Error = ""
	if e.Err != nil {
		f.Error = clip(e.Err.Error())
	}
}

// clip returns a copy of s, truncated to maxText bytes. A truncated text ends in an ellipsis.
func clip(s string) string { return clipTo(s, maxText) }

// clipTo is like clip, with another limit.
func clipTo(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.Clone(s)
}

// count returns the number of events so far.
func (r *recorder) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}
