package seconds

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// encodings have a duration and its JSON.
var encodings = []struct {
	d    time.Duration
	json string
}{
	{0, "0"},
	{1, "0.000000001"},
	{875 * time.Microsecond, "0.000875"},
	{100 * time.Millisecond, "0.1"},
	{1500 * time.Millisecond, "1.5"},
	{10 * time.Second, "10"},
	{time.Minute + 1, "60.000000001"},
	{26*time.Hour + 123456789, "93600.123456789"},
	{1000 * 24 * time.Hour, "86400000"},
	{1000*24*time.Hour + 1, "86400000.000000001"}, // more digits than a float64 has
	{-500 * time.Millisecond, "-0.5"},
	{-1, "-0.000000001"},
	{math.MaxInt64, "9223372036.854775807"},
	{math.MinInt64, "-9223372036.854775808"},
}

func TestDurationsSurviveARoundTrip(t *testing.T) {
	for _, tc := range encodings {
		text, err := json.Marshal(Duration(tc.d))
		if err != nil || string(text) != tc.json {
			t.Errorf("%v: got %s (%v), want %s", tc.d, text, err, tc.json)
		}
		var back Duration
		if err := json.Unmarshal(text, &back); err != nil || time.Duration(back) != tc.d {
			t.Errorf("%s: got %v (%v), want %v", text, time.Duration(back), err, tc.d)
		}
	}
}

// Other programs write numbers in other ways, and may round them to a float64.
func TestNumbersOfOtherPrograms(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"8.75e-4":            875 * time.Microsecond,
		"1e-06":              time.Microsecond,
		"1E3":                1000 * time.Second,
		"1.0":                time.Second,
		"0.0000000001":       0,
		"-2.5e0":             -2500 * time.Millisecond,
		"9223372036.854776":  math.MaxInt64,
		"-9223372036.854776": math.MinInt64,
		"1e300":              math.MaxInt64,
		"1e999":              math.MaxInt64,
		"null":               7,
	} {
		got := Duration(7)
		if err := json.Unmarshal([]byte(text), &got); err != nil || time.Duration(got) != want {
			t.Errorf("%s: got %v (%v), want %v", text, time.Duration(got), err, want)
		}
	}
	for _, text := range []string{`"1.5s"`, `"1"`, `""`, "true", "[1]", "{}"} {
		var d Duration
		want := "collyrobots: " + text + " is not a number of seconds"
		if err := json.Unmarshal([]byte(text), &d); err == nil || err.Error() != want {
			t.Errorf("%s: got %v (%v), want error %s", text, time.Duration(d), err, want)
		}
	}
}
