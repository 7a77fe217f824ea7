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
//   - At other times, pages and sitemaps wait, and only robots.txt is requested. A redirect that
//     would have to wait for more than a minute fails with [ErrRedirectWait]. A request that is in
//     flight when the window ends is not interrupted.
//   - CrawlHours also applies if robots.txt is ignored. If a Visit-time is honored as well,
//     requests start only when both allow it.
//   - Only what the clock shows counts. If the clock is set forward over from, the window begins at
//     that moment, and if it skips the whole window, there is none on that day. If the clock is set
//     back over from or to, it shows that time twice, and the host opens or closes each time.
//
// A page that waits holds no slot of a LimitRule, except if it has had its turn but has not started
// when the window ends. A host with CrawlHours should therefore not share a LimitRule with hosts
// that are crawled at any time.
//
// The option has a fault if a time is not a time of day, if the times are the same, or if loc is
// nil, which is what time.LoadLocation returns if it does not find the time zone.
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
	for h.isOpen(until) == open { // the clock was set, which has not opened or closed the host
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

// nextChange returns the next time after t at which the clock in h.loc shows opens or closes, or at
// which the clock is set, if that is earlier.
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
