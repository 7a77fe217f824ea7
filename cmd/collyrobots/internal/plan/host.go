package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A host is the result of the check of a host.
type host struct {
	Host  string `json:"host"`
	URL   string `json:"url,omitempty"`
	Error string `json:"error,omitempty"` // why the check failed; empty if the host has answered

	Robots  string `json:"robots,omitempty"`
	Status  int    `json:"status,omitempty"` // the status of the response to the request for robots.txt
	Allowed bool   `json:"allowed"`          // the decision about the start page
	Reason  string `json:"reason,omitempty"` // the reason for this decision, in words

	Waiting int    `json:"waiting,omitempty"` // the number of pages that wait in the frontier
	Listed  int    `json:"listed"`            // the number of pages in the sitemaps
	Denied  int    `json:"denied"`            // the number of these that robots.txt denies
	Old     int    `json:"old"`               // the number of the others that have not changed in the last 7 days
	Pages   int    `json:"pages"`             // the number of pages to crawl
	Unread  string `json:"unread,omitempty"`  // why not all pages were counted
	Faults  int    `json:"faults"`            // the number of errors in the sitemaps
	Fault   string `json:"fault,omitempty"`   // the first of these errors

	Group string       `json:"group,omitempty"` // the name of the hosts that share one pace; empty if the host is alone
	Delay term.Seconds `json:"delay"`           // between two requests to the host or its group
	Asked bool         `json:"asked"`           // the delay comes from robots.txt
	Line  int          `json:"line,omitempty"`  // the line of robots.txt with the delay
	Time  term.Seconds `json:"time"`            // the time for all pages, with the hours when the crawl is closed

	asks     time.Duration // the crawl delay of its robots.txt
	asksLine int           // the line of robots.txt with this delay
	allowed  int           // the number of pages that robots.txt allows
	shares   string        // how the host shares its pace; "" if it is alone
	slowest  string        // the host of the group that asks for the delay; "" if it is this one
}

// count counts a page that robots.txt allows.
func (h *host) count(e sitemap.Entry, now time.Time) {
	h.allowed++
	if !e.LastMod.IsZero() && now.Sub(e.LastMod) > 7*24*time.Hour {
		h.Old++
	}
}

// computeTime sets the delay, the number of pages to crawl, and the time for them.
func (h *host) computeTime(j *job) {
	h.Delay = term.Seconds(j.pace.Delay)
	if h.asks > j.pace.Delay {
		h.Delay = term.Seconds(h.asks)
		h.Asked = true
		h.Line = h.asksLine
	}
	h.Pages = h.allowed
	if j.max > 0 {
		h.Pages = min(h.Pages, j.max)
	}
	h.setTime(j)
}

// setTime computes the time for the pages with the delay.
func (h *host) setTime(j *job) {
	h.Time = term.Seconds(j.lasts(j.timeFor(h.Pages, time.Duration(h.Delay))))
}

// timeFor returns the time for a number of pages of a host with this delay. The gap between two requests
// is longer than the delay by half of -jitter on average.
func (j *job) timeFor(pages int, delay time.Duration) time.Duration {
	if delay < math.MaxInt64/2 {
		delay += time.Duration(j.pace.Jitter / 2 * float64(delay))
	}
	return times(pages, delay)
}

// lasts returns how long work takes if it is done only in the hours when the crawl sends requests.
func (j *job) lasts(work time.Duration) time.Duration { return j.hours.lasts(j.began, work) }

// isCounted reports whether the number of pages is known, perhaps in part.
func (h *host) isCounted() bool { return h.Listed > 0 || h.Waiting > 0 }

// isUnknown reports whether the host may have pages that are not known: it has not answered, its
// sitemaps were not read to their end, or they list no pages. A host whose robots.txt denies all
// pages is known.
func (h *host) isUnknown() bool {
	return h.Error != "" || h.Unread != "" || !h.isCounted() && !h.isDenied()
}

// delaySource says where the delay comes from.
func (h *host) delaySource() string {
	switch {
	case !h.Asked:
		return "-delay"
	case h.slowest != "":
		return "the robots.txt of " + h.slowest
	case h.Line == 0:
		return "its robots.txt"
	}
	return fmt.Sprintf("line %d of its robots.txt", h.Line)
}

// isDenied reports whether robots.txt denies all known pages of the host.
func (h *host) isDenied() bool {
	return h.Error == "" && h.allowed == 0 && !h.Allowed
}

// times returns n*d, or the longest Duration if that overflows.
func times(n int, d time.Duration) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return time.Duration(n) * d
}

// plus returns a+b, or the longest Duration if that overflows.
func plus(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
