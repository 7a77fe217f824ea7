package crawl

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/reasons"
	"github.com/collyrobots/collyrobots/report"
)

// A summary collects the results of a crawl. Several goroutines may add to it at once.
type summary struct {
	mu       sync.Mutex
	denials  map[string]collyrobots.Decision // by URL
	failures map[string]failure              // by URL
	robots   map[string]robotsFile           // by URL
	statuses map[int]int                     // the number of responses of each status; 0 means none
	ending   ending                          // Worked and Robots are set by end
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
		denials:  make(map[string]collyrobots.Decision),
		failures: make(map[string]failure),
		robots:   make(map[string]robotsFile),
		statuses: make(map[int]int),
		ending:   ending{Began: time.Now(), MaxPerHost: j.maxPerHost, StopAfterRefusals: j.stopAfterRefusals},
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
			r.ending.Left = append(r.ending.Left, leftHost{Host: h.Host, Pages: n})
		}
	}
	slices.SortStableFunc(r.ending.Left, func(a, b leftHost) int { return cmp.Compare(b.Pages, a.Pages) })
}

// failStart records that a start URL could not be fetched.
func (r *summary) failStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending.StartFailed = true
}

// addRobots records a robots.txt that was read.
func (r *summary) addRobots(e *collyrobots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.robots[e.URL] = robotsFile{
		URL: e.URL, Host: e.Host, Status: e.Status, RobotsStatus: e.RobotsStatus, Fetched: e.Fetched, Stored: e.Stored,
	}
}

// finish completes the report when the crawl has ended.
func (r *summary) finish(stats collyrobots.Stats, interrupted, full bool) {
	r.ending.Stats = stats
	r.ending.Interrupted = interrupted
	r.ending.Full = full
	r.ending.Ended = time.Now()
}

// worked reports whether each start URL was fetched or was denied, and the crawl was not
// interrupted.
func (r *summary) worked() bool { return !r.ending.StartFailed && !r.ending.Interrupted }

// age returns the age of the oldest robots.txt of a host.
func (r *summary) age(host string) (age time.Duration, known bool) {
	for _, f := range r.robots {
		if f.Host == host && !f.Fetched.IsZero() {
			age = max(age, r.ending.Ended.Sub(f.Fetched))
			known = true
		}
	}
	return age, known
}

// An ending is what the last JSON line says about the crawl.
type ending struct {
	Worked            bool              `json:"worked"` // see summary.worked
	Interrupted       bool              `json:"interrupted"`
	Full              bool              `json:"full"` // the limit of -max was reached
	StartFailed       bool              `json:"start_failed"`
	MaxPerHost        int               `json:"max_per_host,omitempty"`
	StopAfterRefusals int               `json:"stop_after_refusals,omitempty"`
	Began             time.Time         `json:"began"`
	Ended             time.Time         `json:"ended"`
	Left              []leftHost        `json:"left,omitempty"` // the pages that waited at the interruption, by host, the most pages first
	Robots            []robotsFile      `json:"robots"`         // sorted by URL
	Stats             collyrobots.Stats `json:"stats"`
}

// end returns the contents of the last JSON line.
func (r *summary) end() *ending {
	r.ending.Worked = r.worked()
	r.ending.Robots = sorted(r.robots)
	return &r.ending
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
	switch d.Reason {
	case report.ReasonDelay:
		return fmt.Sprintf("its Crawl-delay of %v is longer than -skip-crawl-delay-above", d.CrawlDelay)
	case report.ReasonUsage:
		return "its owner excludes it from -purpose"
	case report.ReasonRefused:
		return "its host has refused other pages"
	case report.ReasonBudget:
		return "over -max-per-host"
	}
	return reasons.Of(d)
}
