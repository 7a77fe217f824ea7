package readings

import (
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// hours returns a window as a text such as "06:00 to 14:59", or "" for the whole day.
func hours(w dialect.Window) string {
	if w == (dialect.Window{}) {
		return ""
	}
	last := (w.To + 24*time.Hour - time.Minute) % (24 * time.Hour)
	return clock(w.From) + " to " + clock(last)
}

// clock returns a time since midnight, such as "06:00".
func clock(t time.Duration) string {
	minutes := int(t / time.Minute)
	return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)
}
