package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
)

// A window has the hours of the day when the planned crawl sends requests, as the option CrawlHours.
// A nil window is the whole day.
type window struct {
	input.Hours
	opens, closes time.Duration // since midnight; they differ
}

// newWindow returns the window of hours that the option CrawlHours accepts. It returns nil if there are
// none.
func newWindow(h input.Hours) *window {
	if h == (input.Hours{}) {
		return nil
	}
	return &window{Hours: h, opens: sinceMidnight(h.From), closes: sinceMidnight(h.To)}
}

// sinceMidnight returns a time of day such as 06:30 as a duration.
func sinceMidnight(clock string) time.Duration {
	t, _ := time.Parse("15:04", clock) // CrawlHours has parsed it before
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

// String returns the window with its time zone.
func (w *window) String() string {
	if w == nil {
		return ""
	}
	return fmt.Sprintf("%s-%s %s", w.From, w.To, w.Zone)
}

// mostDays is the number of windows that lasts computes. A longer crawl counts as endless.
const mostDays = 36_500

// lasts returns how long work takes from the time start on if it is done only in the window.
func (w *window) lasts(start time.Time, work time.Duration) time.Duration {
	if w == nil || work == 0 {
		return work
	}
	today := start.In(w.Zone)
	for day := -1; day < mostDays; day++ { // the window of yesterday may span midnight
		opens := w.at(today, day, w.opens)
		closes := w.at(today, day, w.closes)
		if w.closes < w.opens {
			closes = w.at(today, day+1, w.closes)
		}
		if opens.Before(start) {
			opens = start
		}
		if spare := closes.Sub(opens); spare >= work {
			return opens.Add(work).Sub(start)
		} else if spare > 0 {
			work -= spare
		}
	}
	return math.MaxInt64
}

// at returns the time at which the clock shows a time of day, a number of days after today.
func (w *window) at(today time.Time, days int, clock time.Duration) time.Time {
	return time.Date(today.Year(), today.Month(), today.Day()+days, 0, int(clock/time.Minute), 0, 0, w.Zone)
}
