package dialect

import (
	"math"
	"time"
)

// A delayReading is what a dialect makes of Crawl-delay.
type delayReading uint8

const (
	noDelay        delayReading = iota // the line is not supported
	exactDelay                         // decimal seconds as written
	upToTenSeconds                     // whole seconds, rounded up, at most 10
)

// read returns the delay to keep for a delay as it is written.
func (r delayReading) read(written time.Duration) (time.Duration, bool) {
	switch {
	case written < 0 || r == noDelay:
		return 0, false
	case r == exactDelay:
		return written, true
	case written > 10*time.Second:
		return 10 * time.Second, true
	}
	return (written + time.Second - 1).Truncate(time.Second), true
}

// parseDelay reads a Crawl-delay value: ASCII digits with at most one decimal
// point, in seconds. A number of nanoseconds that does not fit is the longest
// Duration (292 years), and a fraction of a nanosecond is rounded up, so that
// nobody comes sooner than asked. Anything else is -1.
func parseDelay(s string) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	d, unit := time.Duration(0), time.Second
	digits, point, rest := false, false, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			return -1
		}
		digits = true
		switch {
		case !point && d > (longest-9*time.Second)/10:
			d = longest
		case !point:
			d = 10*d + time.Duration(c-'0')*time.Second
		case unit > 1:
			unit /= 10
			d = add(d, time.Duration(c-'0')*unit)
		default:
			rest = rest || c != '0'
		}
	}
	if !digits {
		return -1
	}
	if rest {
		d = add(d, 1)
	}
	return d
}

// add is a+b, or the longest Duration.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
