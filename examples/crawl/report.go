package main

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
)

// A report collects the results of a crawl. Several goroutines may add to it at once.
type report struct {
	mu          sync.Mutex
	denials     map[string]collyrobots.Decision // by URL
	failures    map[string]failure              // by URL
	robots      map[string]robotsFile           // by URL
	startFailed bool
	interrupted bool
	full        bool // the limit of -max was reached
	maxPerHost  int  // -max-per-host
	stopRefused int  // -stop-refused
	stats       collyrobots.Stats
	ended       time.Time
}

// A failure is a page that failed.
type failure struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"` // 0 if there was no response
	Error  string `json:"error,omitempty"`  // empty if it is the text of the status
}

// A robotsFile is a robots.txt that the crawl obeyed.
type robotsFile struct {
	URL          string                   `json:"url"`
	Host         string                   `json:"host"`
	Status       int                      `json:"status,omitempty"` // the status of the last response; 0 if there was none
	RobotsStatus collyrobots.RobotsStatus `json:"robots_status"`
	Fetched      time.Time                `json:"fetched"` // when it was fetched, or when the last attempt failed
	Stored       bool                     `json:"stored"`  // it was read from the cache
}

func newReport(j *job) *report {
	return &report{
		denials:     make(map[string]collyrobots.Decision),
		failures:    make(map[string]failure),
		robots:      make(map[string]robotsFile),
		maxPerHost:  j.maxPerHost,
		stopRefused: j.stopRefused,
	}
}

func (r *report) deny(d collyrobots.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denials[d.URL] = d
}

func (r *report) fail(f failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[f.URL] = f
}

// failStart records that a start URL got no response.
func (r *report) failStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startFailed = true
}

// addRobots records a robots.txt that was read.
func (r *report) addRobots(e collyrobots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.robots[e.URL] = robotsFile{
		URL: e.URL, Host: e.Host, Status: e.Status, RobotsStatus: e.RobotsStatus, Fetched: e.Fetched, Stored: e.Stored,
	}
}

// finish completes the report when the crawl has ended.
func (r *report) finish(stats collyrobots.Stats, interrupted, full bool) {
	r.stats = stats
	r.interrupted = interrupted
	r.full = full
	r.ended = time.Now()
}

// worked reports whether each start URL got a response or was denied, and the crawl was not
// interrupted.
func (r *report) worked() bool { return !r.startFailed && !r.interrupted }

// age returns the age of the oldest robots.txt of a host.
func (r *report) age(host string) (age time.Duration, known bool) {
	for _, f := range r.robots {
		if f.Host == host && !f.Fetched.IsZero() {
			age = max(age, r.ended.Sub(f.Fetched))
			known = true
		}
	}
	return age, known
}

// A reportJSON is the JSON of a report. Its lists are sorted by URL.
type reportJSON struct {
	Worked      bool                   `json:"worked"` // see report.worked
	Interrupted bool                   `json:"interrupted"`
	Full        bool                   `json:"full"` // the limit of -max was reached
	Ended       time.Time              `json:"ended"`
	Denied      []collyrobots.Decision `json:"denied"`
	Failed      []failure              `json:"failed"`
	Robots      []robotsFile           `json:"robots"`
	Stats       collyrobots.Stats      `json:"stats"`
}

func (r *report) json() reportJSON {
	return reportJSON{
		Worked:      r.worked(),
		Interrupted: r.interrupted,
		Full:        r.full,
		Ended:       r.ended,
		Denied:      sorted(r.denials),
		Failed:      sorted(r.failures),
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
	case d.Reason == collyrobots.ReasonRule && d.Rule.Line > 0:
		return fmt.Sprintf("line %d: Disallow: %s", d.Rule.Line, d.Rule.Pattern)
	case d.Reason == collyrobots.ReasonDelay:
		return fmt.Sprintf("its Crawl-delay of %v is longer than -skip-above", d.CrawlDelay)
	case d.Reason == collyrobots.ReasonRefused:
		return "its host has refused other pages"
	case d.Reason == collyrobots.ReasonBudget:
		return "over -max-per-host"
	case errors.As(d.Err, &request):
		return fmt.Sprintf("%s: %v", d.Reason, request.Err)
	case d.Err != nil:
		return fmt.Sprintf("%s: %v", d.Reason, d.Err)
	}
	return string(d.Reason)
}
