package dialect

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
)

// A Schedule holds the Request-rate and Visit-time lines of a group. The sources of their syntax
// are Seznam's help ("Crawling control", section "Request-rate directive") and, for Visit-time and
// for other dialects, "An Extended Standard for Robot Exclusion" (Sean Conner, version 2.0). A
// Schedule is immutable and safe for concurrent use.
type Schedule struct {
	Rates  []Rate  // the Request-rate lines; at any time, the slowest of those in force applies
	Visits []Visit // the Visit-time lines; if there are any, no request may start outside of them
}

// A Rate is a Request-rate line. The zero value is no rate.
type Rate struct {
	Delay  time.Duration // from the start of a request to the start of the next: a minute for "1/1m"
	Window Window        // when the rate is in force
	Line   int           // line number in the file, starting at 1
}

// A Visit is a Visit-time line.
type Visit struct {
	Window Window // when requests may start
	Line   int    // line number in the file, starting at 1
}

// A Window is a part of each day in UTC. It begins at From and ends before To. If To is less than
// From, the window spans midnight. The zero value is the whole day.
type Window struct {
	From time.Duration // since midnight, in whole minutes
	To   time.Duration // since midnight, in whole minutes, at most 24 hours
}

// Contains reports whether t is in the window.
func (w Window) Contains(t time.Time) bool {
	_, now := sinceMidnight(t)
	switch {
	case w == Window{}:
		return true
	case w.From < w.To:
		return w.From <= now && now < w.To
	}
	return w.From <= now || now < w.To
}

// next returns the first time after t at which the window begins or ends. It returns the zero time
// for the whole day.
func (w Window) next(t time.Time) time.Time {
	if w == (Window{}) {
		return time.Time{}
	}
	return earlier(nextTimeOfDay(t, w.From), nextTimeOfDay(t, w.To))
}

// nextTimeOfDay returns the first time after t that is d after a midnight in UTC.
func nextTimeOfDay(t time.Time, d time.Duration) time.Time {
	midnight, now := sinceMidnight(t)
	if d %= day; d <= now {
		d += day
	}
	return midnight.Add(d)
}

const day = 24 * time.Hour

// sinceMidnight returns the last midnight in UTC, and the time from then until t.
func sinceMidnight(t time.Time) (midnight time.Time, d time.Duration) {
	midnight = t.UTC().Truncate(day)
	return midnight, t.Sub(midnight)
}

// earlier returns the earlier of two times. The zero time counts as later than all others.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// At returns the slowest rate that is in force at t, or the zero Rate if there is none, and whether
// requests may start at t. until is the first time after t at which this may change, or the zero
// time if it never changes.
func (s *Schedule) At(t time.Time) (rate Rate, open bool, until time.Time) {
	for _, r := range s.Rates {
		until = earlier(until, r.Window.next(t))
		if r.Window.Contains(t) && r.Delay > rate.Delay {
			rate = r
		}
	}
	open = len(s.Visits) == 0
	for _, v := range s.Visits {
		until = earlier(until, v.Window.next(t))
		open = open || v.Window.Contains(t)
	}
	return rate, open, until
}

// Schedule returns the schedule of the group as the dialect interprets it. It returns nil if there
// are no such lines or if the dialect does not support them. Only Seznam has a Request-rate, and no
// dialect has a Visit-time.
func (g *Group) Schedule() *Schedule {
	if !g.dialect.variant().rates {
		return nil
	}
	s := g.WrittenSchedule()
	if s == nil || len(s.Rates) == 0 {
		return nil
	}
	s.Visits = nil
	return s
}

// WrittenSchedule returns the schedule of the group as it is written, for crawlers that obey it
// although the dialect does not support it. It omits lines that cannot be read, and all lines after
// the first 64. WrittenSchedule returns nil if there are no such lines. For [Temoto], it
// always returns nil.
func (g *Group) WrittenSchedule() *Schedule {
	if !g.hasSchedule {
		return nil
	}
	extra := g.rules.Extra()
	if g.hasDelay {
		extra = extra[delaySize:]
	}
	lines, _ := cutSchedule(extra)
	s := &Schedule{}
	for ; lines != ""; lines = lines[scheduleLineSize:] {
		l := unpackScheduleLine(lines)
		if l.delay == 0 {
			s.Visits = append(s.Visits, Visit{Window: l.window, Line: int(l.line)})
		} else {
			s.Rates = append(s.Rates, Rate{Delay: l.delay, Window: l.window, Line: int(l.line)})
		}
	}
	return s
}

// A scheduleLine is a Request-rate or a Visit-time line. In Group.rules it takes scheduleLineSize
// bytes: eight for the delay, four for the line, and two for each end of the window.
type scheduleLine struct {
	delay  time.Duration // 0 for a Visit-time
	line   uint32
	window Window
}

const (
	scheduleLineSize = 8 + 4 + 2*2
	maxScheduleLines = 64 // bounds the time that Schedule.At takes
)

// parseScheduleLine parses the value of a Request-rate or a Visit-time line.
func parseScheduleLine(rec record, value string) (l scheduleLine, ok bool) {
	l.line = rec.line
	if rec.kind == rateLine {
		var r Rate
		r, ok = parseRate(value)
		l.delay = r.Delay
		l.window = r.Window
		return l, ok
	}
	l.window, ok = parseWindow(value)
	return l, ok
}

// appendSchedule appends the number of schedule lines and the lines to the extra text of a group.
// It appends nothing if there are none.
func (c *compiler) appendSchedule(b []byte) []byte {
	if len(c.schedule) == 0 {
		return b
	}
	b = append(b, byte(len(c.schedule)))
	for _, l := range c.schedule {
		b = binary.LittleEndian.AppendUint64(b, uint64(l.delay))
		b = binary.LittleEndian.AppendUint32(b, l.line)
		b = binary.LittleEndian.AppendUint16(b, uint16(l.window.From/time.Minute))
		b = binary.LittleEndian.AppendUint16(b, uint16(l.window.To/time.Minute))
	}
	return b
}

// cutSchedule cuts the schedule lines off an extra text that begins with their number.
func cutSchedule(extra string) (lines, rest string) {
	size := int(extra[0]) * scheduleLineSize
	return extra[1 : 1+size], extra[1+size:]
}

func unpackScheduleLine(s string) scheduleLine {
	ends := load32(s[12:])
	return scheduleLine{
		delay: time.Duration(load64(s)),
		line:  load32(s[8:]),
		window: Window{
			From: time.Duration(ends&math.MaxUint16) * time.Minute,
			To:   time.Duration(ends>>16) * time.Minute,
		},
	}
}

// parseRate parses a Request-rate value: a number of documents, a slash, a time, and optionally a
// window. The unit of the time is s, m, h or d; without a unit, it is seconds. The delay is rounded
// up to a nanosecond.
func parseRate(value string) (r Rate, ok bool) {
	rate, window := value, ""
	if i := strings.IndexAny(value, " \t"); i >= 0 {
		rate, window = value[:i], trimLeft(value[i:])
	}
	documents, period, _ := strings.Cut(rate, "/")
	unit := time.Second
	if n := len(period); n > 0 {
		if u := unitOf(lower(period[n-1])); u > 0 {
			unit = u
			period = period[:n-1]
		}
	}
	count, ok1 := parseCount(documents)
	length, ok2 := parseCount(period)
	if !ok1 || !ok2 {
		return Rate{}, false
	}
	if window != "" {
		r.Window, ok = parseWindow(window)
		if !ok {
			return Rate{}, false
		}
	}
	r.Delay = spread(length, unit, count)
	return r, true
}

// unitOf returns the length of a unit of time, or 0 if there is no such unit.
func unitOf(letter byte) time.Duration {
	switch letter {
	case 's':
		return time.Second
	case 'm':
		return time.Minute
	case 'h':
		return time.Hour
	case 'd':
		return day
	}
	return 0
}

// parseCount parses a positive number of ASCII digits. A number above a billion counts as a
// billion.
func parseCount(s string) (n int64, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(10*n+int64(s[i]-'0'), 1e9)
	}
	return n, n > 0
}

// spread returns length units divided by count, rounded up. If the units do not fit into a
// Duration, they count as the longest.
func spread(length int64, unit time.Duration, count int64) time.Duration {
	period := time.Duration(math.MaxInt64)
	if length <= math.MaxInt64/int64(unit) {
		period = time.Duration(length) * unit
	}
	delay := period / time.Duration(count)
	if period%time.Duration(count) != 0 {
		delay++
	}
	return delay
}

// parseWindow parses a window such as 0600-1459, from the beginning of the first minute to the end
// of the last one. There may be white space around the hyphen.
func parseWindow(value string) (w Window, ok bool) {
	from, to, _ := strings.Cut(value, "-")
	first, ok1 := parseTimeOfDay(trimRight(from))
	last, ok2 := parseTimeOfDay(trimLeft(to))
	if !ok1 || !ok2 || first == day {
		return Window{}, false
	}
	w = Window{From: first, To: min(last+time.Minute, day)}
	if w.From == w.To%day {
		return Window{}, true // the whole day
	}
	return w, true
}

// parseTimeOfDay parses four digits, hours and minutes. 2400 is the end of the day.
func parseTimeOfDay(s string) (d time.Duration, ok bool) {
	if len(s) != 4 {
		return 0, false
	}
	n, ok := parseCount("1" + s)
	hours, minutes := (n-10000)/100, n%100
	if !ok || minutes > 59 || hours > 24 || hours == 24 && minutes > 0 {
		return 0, false
	}
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute, true
}
