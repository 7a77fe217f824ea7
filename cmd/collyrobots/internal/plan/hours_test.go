package plan

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
)

// TestWindow checks how long work takes that is done only at some hours, also across midnight and
// on days on which the clock is set.
func TestWindow(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for _, test := range []struct {
		hours, zone, start string
		work, want         time.Duration
	}{
		{"", "UTC", "2026-11-22T12:00:00Z", 30 * h, 30 * h},
		{"22:00-06:00", "UTC", "2026-11-22T12:00:00Z", 8 * h, 18 * h},
		{"22:00-06:00", "UTC", "2026-11-22T12:00:00Z", 8*h + 1, 34*h + 1},
		{"22:00-06:00", "UTC", "2026-11-22T23:00:00Z", 2 * h, 2 * h},
		{"22:00-06:00", "UTC", "2026-11-22T05:00:00Z", 2 * h, 18 * h},
		{"22:00-06:00", "UTC", "2026-11-22T12:00:00Z", 0, 0},
		{"09:00-17:00", "UTC", "2026-11-22T12:00:00Z", 8 * h, 24 * h},
		{"09:00-17:00", "Europe/Berlin", "2026-11-22T12:00:00Z", 4 * h, 4 * h},
		{"09:00-17:00", "Europe/Berlin", "2026-11-22T12:00:00Z", 5 * h, 21 * h},
		{"00:00-06:00", "Europe/Berlin", "2026-03-28T12:00:00Z", 5 * h, 16 * h}, // 5 hours in this night
		{"00:00-06:00", "Europe/Berlin", "2026-10-24T12:00:00Z", 7 * h, 17 * h}, // 7 hours in this night
		{"00:00-00:01", "UTC", "2026-11-22T12:00:00Z", math.MaxInt64, math.MaxInt64},
	} {
		var w *window
		if from, to, ok := strings.Cut(test.hours, "-"); ok {
			zone, err := time.LoadLocation(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			w = newWindow(input.Hours{From: from, To: to, Zone: zone})
		}
		start, err := time.Parse(time.RFC3339, test.start)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.lasts(start, test.work); got != test.want {
			t.Errorf("%s %s, %v of work from %s: %v, want %v", test.hours, test.zone, test.work, test.start, got, test.want)
		}
	}
}
