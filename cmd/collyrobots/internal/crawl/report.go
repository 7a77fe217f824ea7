package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
)

// A summary collects the results of a crawl. Several goroutines may add to it at once.
type summary struct {
	mu          sync.Mutex
	denials     map[string]collyrobots.Decision // by URL
	failures    map[string]failure              // by URL
	robots      map[string]robotsFile           // by URL
	statuses    map[int]int                     // the number of responses of each status; 0 means none
	began       time.Time
	left        []leftHost // the pages that were waiting at the interruption
	startFailed bool
	interrupted bool
	full        bool // the limit of -max was reached
	maxPerHost  int  // -max-per-host
	stopRefused int  // -stop-refused
	stats       collyrobots.Stats
	ended       time.Time
}

// A leftHost has the number of pages of a host that were waiting when the crawl was interrupted.
type leftHost struct {
	Host  string `json:"host"`
	Pages int    `json:"pages"`
}

// A failure is a page that failed.
type failure struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"` // 0 if there was no response
	Error  string `json:"error,omitempty"`  // empty if it is the text of the status
}

// A robotsFile is a robots.txt that the crawl obeyed.
type robotsFile struct {
	URL          string              `json:"url"`
	Host         string              `json:"host"`
	Status       int                 `json:"status,omitempty"` // the status of the last response; 0 if there was none
	RobotsStatus report.RobotsStatus `json:"robots_status"`
	Fetched      time.Time           `json:"fetched"` // when it was fetched, or when the last attempt failed
	Stored       bool                `json:"stored"`  // it was read from the cache
}

func newReport(j *job) *summary {
	return &summary{
		denials:     make(map[string]collyrobots.Decision),
		failures:    make(map[string]failure),
		robots:      make(map[string]robotsFile),
		statuses:    make(map[int]int),
		began:       time.Now(),
		maxPerHost:  j.maxPerHost,
		stopRefused: j.stopRefused,
	}
}

// page counts a page that was fetched.
func (r *summary) page(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses[status]++
}

// deny records a page that is denied. It reports whether it is the first denial of the page.
func (r *summary) deny(d collyrobots.Decision) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.denials[d.URL]
	r.denials[d.URL] = d
	return !known
}

func (r *summary) fail(f failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[f.URL] = f
}

// pages returns the number of pages that were fetched.
func (r *summary) pages() (n int) {
	for _, count := range r.statuses {
		n += count
	}
	return n
}

// setLeft records the pages that are waiting when the crawl is interrupted.
func (r *summary) setLeft(s collyrobots.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range s.Hosts {
		if n := h.Waiting + h.OnDisk; n > 0 {
			r.left = append(r.left, leftHost{Host: h.Host, Pages: n})
		}
	}
	slices.SortStableFunc(r.left, func(a, b leftHost) int { return cmp.Compare(b.Pages, a.Pages) })
}

// failStart records that a start URL could not be fetched.
func (r *summary) failStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startFailed = true
}

// addRobots records a robots.txt that was read.
func (r *summary) addRobots(e collyrobots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.robots[e.URL] = robotsFile{
		URL: e.URL, Host: e.Host, Status: e.Status, RobotsStatus: e.RobotsStatus, Fetched: e.Fetched, Stored: e.Stored,
	}
}

// finish completes the report when the crawl has ended.
func (r *summary) finish(stats collyrobots.Stats, interrupted, full bool) {
	r.stats = stats
	r.interrupted = interrupted
	r.full = full
	r.ended = time.Now()
}

// worked reports whether each start URL was fetched or was denied, and the crawl was not
// interrupted.
func (r *summary) worked() bool { return !r.startFailed && !r.interrupted }

// age returns the age of the oldest robots.txt of a host.
func (r *summary) age(host string) (age time.Duration, known bool) {
	for _, f := range r.robots {
		if f.Host == host && !f.Fetched.IsZero() {
			age = max(age, r.ended.Sub(f.Fetched))
			known = true
		}
	}
	return age, known
}

// An ending is what the last JSON line says about the crawl.
type ending struct {
	Worked      bool              `json:"worked"` // see report.worked
	Interrupted bool              `json:"interrupted"`
	Full        bool              `json:"full"` // the limit of -max was reached
	StartFailed bool              `json:"start_failed"`
	MaxPerHost  int               `json:"max_per_host,omitempty"`
	StopRefused int               `json:"stop_refused,omitempty"`
	Began       time.Time         `json:"began"`
	Ended       time.Time         `json:"ended"`
	Left        []leftHost        `json:"left,omitempty"` // the pages that waited at the interruption, by host, the most pages first
	Robots      []robotsFile      `json:"robots"`         // sorted by URL
	Stats       collyrobots.Stats `json:"stats"`
}

func (r *summary) ending() *ending {
	return &ending{
		Worked:      r.worked(),
		Interrupted: r.interrupted,
		Full:        r.full,
		StartFailed: r.startFailed,
		MaxPerHost:  r.maxPerHost,
		StopRefused: r.stopRefused,
		Began:       r.began,
		Ended:       r.ended,
		Left:        r.left,
		Robots:      sorted(r.robots),
		Stats:       r.stats,
	}
}

// sorted returns the values of m in the order of their keys. It never returns nil, so that the JSON
// is a list.
func sorted[V any](m map[string]V) []V {
	values := []V{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[key])
	}
	return values
}

// why returns the reason for a failure in words.
func (f failure) why() string {
	if f.Status == 0 {
		return f.Error
	}
	return strings.TrimRight(fmt.Sprintf("%d %s", f.Status, cmp.Or(f.Error, http.StatusText(f.Status))), " ")
}

// why returns the reason for a denial in words.
func why(d collyrobots.Decision) string {
	var request *url.Error // its text repeats the URL of robots.txt
	switch {
	case d.Reason == report.ReasonRule && d.Rule.Line > 0:
		return fmt.Sprintf("line %d: Disallow: %s", d.Rule.Line, d.Rule.Pattern)
	case d.Reason == report.ReasonDelay:
		return fmt.Sprintf("its Crawl-delay of %v is longer than -skip-above", d.CrawlDelay)
	case d.Reason == report.ReasonUsage:
		return "its owner excludes it from -purpose"
	case d.Reason == report.ReasonRefused:
		return "its host has refused other pages"
	case d.Reason == report.ReasonBudget:
		return "over -max-per-host"
	case errors.As(d.Err, &request):
		return fmt.Sprintf("%s: %v", d.Reason, request.Err)
	case d.Err != nil:
		return fmt.Sprintf("%s: %v", d.Reason, d.Err)
	}
	return string(d.Reason)
}
