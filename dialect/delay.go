package dialect

import (
	"math"
	"time"
)

// A delayReading is how a dialect interprets Crawl-delay.
type delayReading uint8

const (
	noDelay        delayReading = iota // the line is not supported
	exactDelay                         // decimal seconds as written
	upToTenSeconds                     // whole seconds, rounded up, at most 10
)

// read returns the delay that is in effect for a delay as it is written. It returns false if there
// is no delay or if the dialect does not support Crawl-delay.
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

// parseDelay parses a Crawl-delay value in seconds: ASCII digits with at most one decimal point. It
// returns -1 for any other value. If the delay does not fit into a Duration, parseDelay returns the
// longest Duration (292 years). A fraction of a nanosecond is rounded up, so that the result is
// never shorter than the written delay.
func parseDelay(s string) time.Duration {
	const longest = time.Duration(math.MaxInt64)
	d := time.Duration(0)
	unit := time.Second
	digits := false // there is at least one digit
	point := false  // the decimal point has been read
	rest := false   // there is a fraction of a nanosecond
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
		case !point && d > longest/10:
			d = longest
		case !point:
			d = add(10*d, time.Duration(c-'0')*time.Second)
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

// add returns a+b, or the longest Duration if the sum overflows.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
