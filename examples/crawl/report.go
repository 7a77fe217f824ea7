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

// A report is what the user wants to know in the end. It may be added to by any number of
// goroutines.
type report struct {
	mu          sync.Mutex
	denials     map[string]collyrobots.Decision // by URL
	failures    map[string]failure              // by URL
	robots      map[string]robotsFile           // by URL
	startFailed bool
	interrupted bool
	full        bool // as many pages were asked for as may be
	stats       collyrobots.Stats
	ended       time.Time
}

// A failure is a page that was not answered as it should be.
type failure struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"` // 0: there was no answer
	Error  string `json:"error,omitempty"`  // if the status does not say it all
}

// A robotsFile is a robots.txt that the crawl obeyed.
type robotsFile struct {
	URL          string                   `json:"url"`
	Host         string                   `json:"host"`
	Status       int                      `json:"status,omitempty"` // of the last answer; 0: there was none
	RobotsStatus collyrobots.RobotsStatus `json:"robots_status"`
	Fetched      time.Time                `json:"fetched"` // or the last try failed
	Stored       bool                     `json:"stored"`  // it was in the cache
}

func newReport() *report {
	return &report{denials: make(map[string]collyrobots.Decision), failures: make(map[string]failure), robots: make(map[string]robotsFile)}
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

// failStart notes that a URL which the user gave was not answered.
func (r *report) failStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.startFailed = true
}

// read notes a robots.txt that was read.
func (r *report) read(e collyrobots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.robots[e.URL] = robotsFile{e.URL, e.Host, e.Status, e.RobotsStatus, e.Fetched, e.Stored}
}

func (r *report) finish(stats collyrobots.Stats, interrupted, full bool) {
	r.stats, r.interrupted, r.full, r.ended = stats, interrupted, full, time.Now()
}

// worked reports whether the crawl did what it was asked for.
func (r *report) worked() bool { return !r.startFailed && !r.interrupted }

// age returns how old the oldest robots.txt of a host is.
func (r *report) age(host string) (age time.Duration, known bool) {
	for _, f := range r.robots {
		if f.Host == host && !f.Fetched.IsZero() {
			age, known = max(age, r.ended.Sub(f.Fetched)), true
		}
	}
	return age, known
}

// A reportJSON is a report for programs.
type reportJSON struct {
	Worked      bool                   `json:"worked"` // every start URL was answered or denied, and nobody interrupted the crawl
	Interrupted bool                   `json:"interrupted"`
	Full        bool                   `json:"full"` // as many pages were asked for as may be
	Ended       time.Time              `json:"ended"`
	Denied      []collyrobots.Decision `json:"denied"` // by URL, as what follows
	Failed      []failure              `json:"failed"`
	Robots      []robotsFile           `json:"robots"`
	Stats       collyrobots.Stats      `json:"stats"`
}

func (r *report) json() reportJSON {
	return reportJSON{r.worked(), r.interrupted, r.full, r.ended, sorted(r.denials), sorted(r.failures), sorted(r.robots), r.stats}
}

// sorted returns the values of m by their keys, an empty list if there are none.
func sorted[V any](m map[string]V) []V {
	values := []V{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		values = append(values, m[key])
	}
	return values
}

// why says in a few words what became of a page.
func (f failure) why() string {
	if f.Status == 0 {
		return f.Error
	}
	return strings.TrimRight(fmt.Sprintf("%d %s", f.Status, cmp.Or(f.Error, http.StatusText(f.Status))), " ")
}

// why says in a few words what denied a URL.
func why(d collyrobots.Decision) string {
	var request *url.Error // says the URL of robots.txt once more
	switch {
	case d.Reason == collyrobots.ReasonRule && d.Rule.Line > 0:
		return fmt.Sprintf("line %d: Disallow: %s", d.Rule.Line, d.Rule.Pattern)
	case d.Reason == collyrobots.ReasonDelay:
		return fmt.Sprintf("it asks for %v between two requests, more than -skip-above", d.CrawlDelay)
	case errors.As(d.Err, &request):
		return fmt.Sprintf("%s: %v", d.Reason, request.Err)
	case d.Err != nil:
		return fmt.Sprintf("%s: %v", d.Reason, d.Err)
	}
	return string(d.Reason)
}
