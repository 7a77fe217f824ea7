package input

import (
	"fmt"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

// Dialect parses the value of the flag -dialect.
func Dialect(value string) (dialect.Dialect, error) {
	d, known := dialect.ByName(value)
	if !known {
		return d, fmt.Errorf("-dialect %s: unknown dialect; use one of %s", term.Safe(value), term.List(dialect.All()))
	}
	return d, nil
}

// Names returns the names in a list that are separated by commas, blanks or both.
func Names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Grouping parses the value of the flag -pace-by.
func Grouping(value string) (collyrobots.Grouping, error) {
	for _, g := range []collyrobots.Grouping{collyrobots.ByHost, collyrobots.ByDomain, collyrobots.ByAddress} {
		if g.String() == value {
			return g, nil
		}
	}
	return collyrobots.ByHost, fmt.Errorf("-pace-by %s: use host, domain or address", term.Safe(value))
}

// Hours has the arguments of the option CrawlHours. The zero value has none.
type Hours struct {
	From, To string // the option checks that they are times of day
	Zone     *time.Location
}

// ParseHours parses the values of the flags -hours and -zone, such as "22:00-06:00" and
// "Europe/Berlin". If hours is empty, it returns the zero Hours.
func ParseHours(hours, zone string) (Hours, error) {
	if hours == "" {
		return Hours{}, nil
	}
	from, to, ok := strings.Cut(hours, "-")
	if !ok {
		return Hours{}, malformedHours(hours)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return Hours{}, fmt.Errorf("-zone %s: %w", term.Safe(zone), err)
	}
	return Hours{From: from, To: to, Zone: loc}, nil
}

func malformedHours(hours string) error {
	return fmt.Errorf("-hours %s: want a window such as 22:00-06:00", term.Safe(hours))
}

// String returns the value of the flag -hours.
func (h Hours) String() string { return h.From + "-" + h.To }

// SinceMidnight returns From and To as the times since midnight. The error is the same as that of
// [ParseHours] if one of them is not a time of day, or if they are equal.
func (h Hours) SinceMidnight() (from, to time.Duration, err error) {
	opens, openErr := time.Parse("15:04", h.From)
	closes, closeErr := time.Parse("15:04", h.To)
	if openErr != nil || closeErr != nil || opens.Equal(closes) {
		return 0, 0, malformedHours(h.String())
	}
	midnight := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	return opens.Sub(midnight), closes.Sub(midnight), nil
}
