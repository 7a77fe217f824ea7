package policy

import (
	"testing"
	"time"
)

// TestInstant checks that an instant has the time that it was made from, or the earliest or latest
// instant for a time outside of its range.
func TestInstant(t *testing.T) {
	if instantOf(time.Time{}) != 0 || !instant(0).time().IsZero() {
		t.Error("the zero time and the zero instant differ")
	}
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	if got := instantOf(at).time(); !got.Equal(at) {
		t.Errorf("got %v, want %v", got, at)
	}
	for year, want := range map[int]instant{2: earliest, 1969: earliest, 2263: latest, 9999: latest} {
		got := instantOf(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		if got != want || instantOf(got.time()) != got {
			t.Errorf("year %d: got %v, want %v; converted again %v", year, got.time(), want.time(), instantOf(got.time()).time())
		}
	}
	if got := instantOf(at).add(forever).add(forever).add(forever); got != latest {
		t.Errorf("300 years later: got %v, want %v", got.time(), latest.time())
	}
	if got := instantOf(at).add(time.Hour).time(); !got.Equal(at.Add(time.Hour)) {
		t.Errorf("an hour later: got %v, want %v", got, at.Add(time.Hour))
	}
}
