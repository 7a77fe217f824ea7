// Package seconds encodes durations in JSON as numbers of seconds, as jq, pandas and DuckDB expect
// them.
package seconds

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// A Duration is a time.Duration that is a number of seconds in JSON, such as 0.000875. The number
// is exact: it has up to nine decimal places. It never has an exponent, so a program that reads it
// as text can rely on its form.
type Duration time.Duration

// Std returns d as a time.Duration, for templates.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	return d.Append(make([]byte, 0, len("-9223372036.854775808"))), nil
}

// Append appends the number to b.
func (d Duration) Append(b []byte) []byte {
	rest := uint64(d)
	if d < 0 {
		b = append(b, '-')
		rest = -rest
	}
	b = strconv.AppendUint(b, rest/1e9, 10)
	point := len(b)
	b = strconv.AppendUint(b, 1e9+rest%1e9, 10) // the 1 makes room for the point
	b[point] = '.'
	return bytes.TrimSuffix(bytes.TrimRight(b, "0"), []byte{'.'})
}

// UnmarshalJSON implements json.Unmarshaler. It accepts every number, because other programs write
// exponents. The longest and the shortest Duration stand for numbers that are out of range. A
// program that uses floating point may have rounded these two to such a number.
func (d *Duration) UnmarshalJSON(b []byte) error {
	text := string(b)
	if text == "null" {
		return nil
	}
	if exact, err := time.ParseDuration(text + "s"); err == nil {
		*d = Duration(exact)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return fmt.Errorf("collyrobots: %s is not a number of seconds", text)
	}
	*d = fromFloat(f * 1e9)
	return nil
}

// fromFloat rounds a number of nanoseconds.
func fromFloat(ns float64) Duration {
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	}
	return Duration(math.Round(ns))
}
