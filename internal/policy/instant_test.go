package policy

import (
	"testing"
	"time"
)

// TestInstant: times as they are, as far as an instant reaches, and what is beyond it stays on its
// side.
func TestInstant(t *testing.T) {
	if instantOf(time.Time{}) != 0 || !instant(0).time().IsZero() {
		t.Error("never is not never")
	}
	at := time.Date(2026, 11, 21, 1, 2, 3, 4, time.UTC)
	if got := instantOf(at).time(); !got.Equal(at) {
		t.Errorf("%v, want %v", got, at)
	}
	for year, want := range map[int]instant{2: earliest, 1969: earliest, 2263: latest, 9999: latest} {
		got := instantOf(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		if got != want || instantOf(got.time()) != got {
			t.Errorf("the year %d is %v, and then %v", year, got.time(), instantOf(got.time()).time())
		}
	}
	if got := instantOf(at).add(forever).add(forever).add(forever); got != latest {
		t.Errorf("in 300 years it is %v", got.time())
	}
	if got := instantOf(at).add(time.Hour).time(); !got.Equal(at.Add(time.Hour)) {
		t.Errorf("in an hour it is %v", got)
	}
}
