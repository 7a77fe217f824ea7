package judge

import (
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// A CrawlHours is the schedule of the option CrawlHours. It implements pace.Schedule.
type CrawlHours struct {
	Opens, Closes time.Duration // since midnight; they differ
	Loc           *time.Location
}

// At implements pace.Schedule.
func (h *CrawlHours) At(t time.Time) pace.Slot {
	t = t.In(h.Loc)
	open := h.isOpen(t)
	until := h.nextChange(t)
	for h.isOpen(until) == open { // the UTC offset changes, but the host stays open or closed
		until = h.nextChange(until)
	}
	return pace.Slot{Closed: !open, Until: until}
}

// isOpen reports whether the host is open at t, a time in h.loc.
func (h *CrawlHours) isOpen(t time.Time) bool {
	now := SinceMidnight(t)
	if h.Opens < h.Closes {
		return h.Opens <= now && now < h.Closes
	}
	return h.Opens <= now || now < h.Closes
}

// nextChange returns the next time after t when the clock in h.loc shows opens or closes. If the
// UTC offset in h.loc changes earlier, it returns the time of that change.
func (h *CrawlHours) nextChange(t time.Time) time.Time {
	const day = 24 * time.Hour
	next := day
	for _, at := range [...]time.Duration{h.Opens, h.Closes} {
		wait := at - SinceMidnight(t)
		if wait <= 0 {
			wait += day
		}
		next = min(next, wait)
	}
	change := t.Add(next)
	_, set := t.ZoneBounds()
	if !set.IsZero() && set.Before(change) {
		return set.In(h.Loc)
	}
	return change
}

// SinceMidnight returns the time of day that a clock shows at t.
func SinceMidnight(t time.Time) time.Duration {
	hour, minute, second := t.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute +
		time.Duration(second)*time.Second + time.Duration(t.Nanosecond())
}
