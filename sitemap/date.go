package sitemap

import (
	"bytes"
	"strings"
	"time"
)

// parseTime parses a date of a sitemap or feed. It accepts a W3C datetime, the common deviations
// from it, and the date of RFC 822 and its successors. It returns false for anything else and for
// the first instant of the year 1, which programs write for "never".
func parseTime(b []byte) (time.Time, bool) {
	t, ok := parseW3C(b)
	if !ok {
		t, ok = parseRFC822(b)
	}
	return t, ok && !t.IsZero()
}

// digits cuts a number of at most hi digits from the front of b. It returns false if there are
// fewer than lo digits.
func digits(b []byte, lo, hi int) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(b) && i < hi && '0' <= b[i] && b[i] <= '9' {
		n = 10*n + int(b[i]-'0')
		i++
	}
	return n, b[i:], i >= lo
}

// after cuts c from the front of b and reports whether b began with c.
func after(b []byte, c byte) ([]byte, bool) {
	if len(b) == 0 || b[0] != c {
		return b, false
	}
	return b[1:], true
}

// parseW3C parses YYYY[-M[-D[[(T| )h:mm[:ss[.frac]]][zone]]]].
func parseW3C(b []byte) (time.Time, bool) {
	month, day := 1, 1
	year, b, ok := digits(b, 4, 4)
	rest, more := after(b, '-')
	if ok && more {
		month, b, ok = digits(rest, 1, 2)
	}
	rest, more = after(b, '-')
	if ok && more {
		day, b, ok = digits(rest, 1, 2)
	}
	if !ok || !isDate(year, month, day) {
		return time.Time{}, false
	}
	if len(b) == 0 {
		return instant(year, month, day, 0), true
	}
	if !more {
		return time.Time{}, false
	}
	clock, ok1 := time.Duration(0), true
	switch b[0] {
	case 'T', 't', ' ':
		clock, b, ok1 = parseClock(b[1:])
	case 'Z', 'z', '+', '-': // a date with a zone: midnight in that zone
	default:
		return time.Time{}, false
	}
	east, ok2 := parseZone(b)
	return instant(year, month, day, clock-east), ok1 && ok2
}

// instant returns the time that is d after the beginning of a day in UTC. The day must be valid
// according to isDate. instant takes a third of the time of time.Date.
func instant(year, month, day int, d time.Duration) time.Time {
	if month < 3 { // let years begin in March, so that a leap day is the last day of a year
		year--
		month += 12
	}
	days := 365*year + year/4 - year/100 + year/400 + (153*month-457)/5 + day - 1
	const epoch = 719468 // 1970-01-01, counted from 0000-03-01
	return time.Unix(int64(days-epoch)*86400+int64(d/time.Second), int64(d%time.Second)).UTC()
}

func isDate(year, month, day int) bool {
	last := 31
	switch month {
	case 4, 6, 9, 11:
		last = 30
	case 2:
		last = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			last = 29
		}
	}
	return year >= 1 && 1 <= month && month <= 12 && 1 <= day && day <= last
}

// parseClock cuts h:mm[:ss[.frac]] from the front of b. It accepts the second 60 for leap seconds,
// and 24:00:00 for the end of a day.
func parseClock(b []byte) (d time.Duration, rest []byte, ok bool) {
	if after, ok := bytes.CutPrefix(b, []byte("24:00:00")); ok {
		return 24 * time.Hour, after, true
	}
	hour, b, ok1 := digits(b, 1, 2)
	b, ok2 := after(b, ':')
	minute, b, ok3 := digits(b, 2, 2)
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 {
		return 0, b, false
	}
	d = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	rest, more := after(b, ':')
	if !more {
		return d, b, true
	}
	second, b, ok := digits(rest, 2, 2)
	if !ok || second > 60 {
		return 0, b, false
	}
	d += time.Duration(second) * time.Second
	if len(b) > 0 && (b[0] == '.' || b[0] == ',') {
		frac, rest, ok := parseFraction(b[1:])
		return d + frac, rest, ok
	}
	return d, b, true
}

// parseFraction cuts the digits of a fraction of a second from the front of b. It accepts any
// number of digits and ignores those below a nanosecond.
func parseFraction(b []byte) (d time.Duration, rest []byte, ok bool) {
	i := 0
	unit := time.Second
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		unit /= 10
		d += time.Duration(b[i]-'0') * unit
	}
	return d, b[i:], i > 0
}

// parseZone parses the rest of a date: nothing, Z, +hh:mm, +hhmm, +hh, or one of the names of RFC
// 822, with or without spaces before it.
func parseZone(b []byte) (east time.Duration, ok bool) {
	b = bytes.TrimLeft(b, " ")
	if len(b) == 0 || len(b) == 1 && lower(b[0]) == 'z' {
		return 0, true
	}
	if b[0] != '+' && b[0] != '-' {
		hours, ok := zoneNames[strings.ToUpper(string(b))]
		return time.Duration(hours) * time.Hour, ok
	}
	hour, rest, ok := digits(b[1:], 2, 2)
	minute := 0
	if ok && len(rest) > 0 {
		rest, _ = after(rest, ':')
		minute, rest, ok = digits(rest, 2, 2)
	}
	if !ok || len(rest) > 0 || hour > 23 || minute > 59 {
		return 0, false
	}
	east = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	if b[0] == '-' {
		east = -east
	}
	return east, true
}

// zoneNames are the zones of RFC 822, section 5, in hours east of UTC.
var zoneNames = map[string]int{
	"UTC": 0, "UT": 0, "GMT": 0,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}

// parseRFC822 parses [day-name,] D Mon YYYY [h:mm[:ss] [zone]].
func parseRFC822(b []byte) (time.Time, bool) {
	if len(b) > 64 {
		return time.Time{}, false
	}
	f := strings.Fields(string(b))
	if len(f) > 0 && (f[0][0] < '0' || f[0][0] > '9') {
		f = f[1:]
	}
	if len(f) < 3 || len(f) > 5 {
		return time.Time{}, false
	}
	year, month, day := parseDay(f[0], f[1], f[2])
	var clock, east time.Duration
	ok := isDate(year, month, day)
	if ok && len(f) > 3 {
		var rest []byte
		clock, rest, ok = parseClock([]byte(f[3]))
		ok = ok && len(rest) == 0
	}
	if ok && len(f) > 4 {
		east, ok = parseZone([]byte(f[4]))
	}
	if !ok {
		return time.Time{}, false
	}
	return instant(year, month, day, clock-east), true
}

// parseDay parses the day, the month and the year of a date. A year of two digits is between 1950
// and 2049 (RFC 2822, section 4.3). If a part is invalid, the returned month is 0.
func parseDay(d, m, y string) (year, month, day int) {
	day, rest, ok1 := digits([]byte(d), 1, 2)
	year, left, ok2 := digits([]byte(y), 2, 4)
	if !ok1 || !ok2 || len(rest)+len(left) > 0 || len(y) == 3 || len(m) < 3 {
		return 0, 0, 0
	}
	if len(y) == 2 {
		year += 1900
		if year < 1950 {
			year += 100
		}
	}
	if i := strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(m[:3])); i%3 == 0 {
		month = i/3 + 1
	}
	return year, month, day
}
