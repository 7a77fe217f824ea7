package main

import (
	"math"
	"time"

	"github.com/collyrobots/collyrobots/examples/internal/term"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A host is what is known of one.
type host struct {
	Host  string `json:"host"`
	URL   string `json:"url,omitempty"`
	Error string `json:"error,omitempty"` // why nothing is known; "": it has answered

	Robots   string    `json:"robots,omitempty"`
	Status   int       `json:"status,omitempty"`   // with which robots.txt was answered
	Dialects []reading `json:"dialects,omitempty"` // the one that the crawl obeys first

	Listed int     `json:"listed"`           // pages that its sitemaps list
	Denied int     `json:"denied"`           // of these, by robots.txt
	Old    int     `json:"old"`              // of the others, not changed since -since
	Pages  int     `json:"pages"`            // to be crawled
	Recent changes `json:"recent"`           // of the pages that are not denied
	Unread string  `json:"unread,omitempty"` // why there may be more pages
	Faults int     `json:"faults"`           // what could not be read of the sitemaps
	Fault  string  `json:"fault,omitempty"`  // the first of these

	Delay term.Seconds `json:"delay"`          // between two requests
	Asked bool         `json:"asked"`          // for by robots.txt
	Line  int          `json:"line,omitempty"` // of robots.txt that asks for it
	Time  term.Seconds `json:"time"`           // for all pages

	allowed int
}

// A reading is what one dialect makes of the host's robots.txt.
type reading struct {
	Dialect string       `json:"dialect"`
	Allowed bool         `json:"allowed"` // the page that the host was looked at for
	Reason  string       `json:"reason"`  // a collyrobots.Reason
	Rule    string       `json:"rule,omitempty"`
	Group   string       `json:"group,omitempty"`
	Delay   term.Seconds `json:"crawl_delay"`
	Line    int          `json:"line,omitempty"` // of the delay
	Denied  int          `json:"denied"`         // of the pages listed
}

// changes are how many pages have changed within which time, as their sitemaps have it.
type changes struct {
	Day   int `json:"day"`
	Week  int `json:"week"`
	Month int `json:"month"` // 30 days
	Dated int `json:"dated"` // pages whose lastmod is known
}

// count counts a page that may be crawled.
func (h *host) count(e sitemap.Entry, now, since time.Time) {
	h.allowed++
	if e.LastMod.IsZero() {
		return
	}
	h.Recent.Dated++
	age := now.Sub(e.LastMod)
	for _, c := range []struct {
		within time.Duration
		n      *int
	}{{day, &h.Recent.Day}, {7 * day, &h.Recent.Week}, {30 * day, &h.Recent.Month}} {
		if age <= c.within {
			*c.n++
		}
	}
	if e.LastMod.Before(since) {
		h.Old++
	}
}

const day = 24 * time.Hour

// reckon works out what follows for the crawl.
func (h *host) reckon(j *job) {
	h.Delay = term.Seconds(j.minDelay)
	if len(h.Dialects) > 0 && h.Dialects[0].Delay > h.Delay {
		h.Delay, h.Asked, h.Line = h.Dialects[0].Delay, true, h.Dialects[0].Line
	}
	h.Pages = h.allowed - h.Old
	if j.max > 0 {
		h.Pages = min(h.Pages, j.max)
	}
	h.Time = term.Seconds(times(h.Pages, time.Duration(h.Delay)))
}

// isDenied reports whether robots.txt denies all that is known of the host.
func (h *host) isDenied() bool {
	return h.Error == "" && h.allowed == 0 && !h.Dialects[0].Allowed
}

// times is n*d, or the longest Duration.
func times(n int, d time.Duration) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return time.Duration(n) * d
}

// plus is a+b, or the longest Duration.
func plus(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
