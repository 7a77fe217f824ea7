package collyrobots

import (
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// CrawlHours lets the requests to each host start only in some hours of each day: from the time of
// day from until the time of day to, on a clock in loc. The times are written as "22:00". The
// window may span midnight: CrawlHours("22:00", "06:00", loc) starts requests from ten in the
// evening until six in the morning. Without CrawlHours, requests start at any time.
//
//   - At other times, pages and sitemaps wait, and only robots.txt is requested. A redirect of a
//     collector that would have to wait long fails with [ErrRedirectWait]. A request that is in
//     flight when the window ends is not interrupted.
//   - CrawlHours also applies if robots.txt is ignored. If a Visit-time is honored as well,
//     requests start only when both allow it.
//   - The window follows the local time in loc. If daylight saving time skips the time from, the
//     window begins at the change of the clock. If it skips the whole window, there is none on that
//     day. If the clock is set back and shows the time from or to twice, the host opens or closes
//     each time.
//
// A waiting page usually holds no slot of a LimitRule. It holds one only if it got the slot before
// the window ended and has not started. A host with CrawlHours should therefore not share a
// LimitRule with hosts that are crawled at any time.
//
// It is an error if from or to is not a time of day, if they are equal, or if loc is nil.
// time.LoadLocation returns nil if it does not find the time zone.
func CrawlHours(from, to string, loc *time.Location) Option {
	opens, opensOK := timeOfDay(from)
	closes, closesOK := timeOfDay(to)
	const malformed = `%q is not a time of day: want "00:00" to "23:59"`
	return hostOption("CrawlHours", func(s *hostSettings) {
		s.pace.Hours = &crawlHours{opens: opens, closes: closes, loc: loc}
	},
		faultIf(!opensOK, "CrawlHours", malformed, from),
		faultIf(!closesOK, "CrawlHours", malformed, to),
		faultIf(opensOK && closesOK && opens == closes, "CrawlHours", "the window from %s to %s is empty", from, to),
		faultIf(loc == nil, "CrawlHours", "the location is nil: check the error of time.LoadLocation"))
}

// timeOfDay parses a time such as "22:00", and returns the time since midnight.
func timeOfDay(s string) (d time.Duration, ok bool) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, false
	}
	return sinceMidnight(t), true
}

// A crawlHours is the schedule of the option CrawlHours. It implements pace.Schedule.
type crawlHours struct {
	opens, closes time.Duration // since midnight; they differ
	loc           *time.Location
}

// At implements pace.Schedule.
func (h *crawlHours) At(t time.Time) pace.Slot {
	t = t.In(h.loc)
	open := h.isOpen(t)
	until := h.nextChange(t)
	for h.isOpen(until) == open { // the UTC offset changes, but the host stays open or closed
		until = h.nextChange(until)
	}
	return pace.Slot{Closed: !open, Until: until}
}

// isOpen reports whether the host is open at t, a time in h.loc.
func (h *crawlHours) isOpen(t time.Time) bool {
	now := sinceMidnight(t)
	if h.opens < h.closes {
		return h.opens <= now && now < h.closes
	}
	return h.opens <= now || now < h.closes
}

// nextChange returns the next time after t when the clock in h.loc shows opens or closes. If the
// UTC offset in h.loc changes earlier, it returns the time of that change.
func (h *crawlHours) nextChange(t time.Time) time.Time {
	const day = 24 * time.Hour
	next := day
	for _, at := range [...]time.Duration{h.opens, h.closes} {
		wait := at - sinceMidnight(t)
		if wait <= 0 {
			wait += day
		}
		next = min(next, wait)
	}
	change := t.Add(next)
	_, set := t.ZoneBounds()
	if !set.IsZero() && set.Before(change) {
		return set.In(h.loc)
	}
	return change
}

// sinceMidnight returns the time of day that a clock shows at t.
func sinceMidnight(t time.Time) time.Duration {
	hour, minute, second := t.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute +
		time.Duration(second)*time.Second + time.Duration(t.Nanosecond())
}
