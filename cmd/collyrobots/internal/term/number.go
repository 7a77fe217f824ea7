package term

import (
	"math"
	"strconv"
	"time"
)

// Seconds is a time.Duration that is a number of seconds in JSON, such as 0.25.
type Seconds time.Duration

// MarshalJSON implements json.Marshaler. The number has no exponent.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler, for numbers without an exponent.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	d, err := time.ParseDuration(string(b) + "s")
	*s = Seconds(d)
	return err
}

// Duration returns d in its two largest units: "250ms", "1.5s", "1m40s", "39h54m", "12d6h",
// "1y35d". A year has 365 days.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Duration(-max(d, -math.MaxInt64))
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(100*time.Millisecond) < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d.Round(time.Second) < time.Hour:
		return inUnits(d, time.Minute, "m", time.Second, "s")
	case d.Round(time.Minute) < 2*day:
		return inUnits(d, time.Hour, "h", time.Minute, "m")
	case d < 365*day-time.Hour/2:
		return inUnits(d, day, "d", time.Hour, "h")
	}
	return inUnits(d, 365*day, "y", day, "d")
}

// Delay returns d like Duration, or "" if there is no delay.
func Delay(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return Duration(d)
}

// inUnits returns d in two units. It leaves out the smaller one if its number is zero.
func inUnits(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	d = d.Round(small)
	text := strconv.FormatInt(int64(d/large), 10) + largeName
	if rest := d % large; rest != 0 {
		text += strconv.FormatInt(int64(rest/small), 10) + smallName
	}
	return text
}

// Count returns n with commas: "12,345".
func Count(n int) string {
	if n < 0 {
		return "-" + Count(-n)
	}
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Number returns "1 page" or "12 pages".
func Number(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return Count(n) + " " + what
}
