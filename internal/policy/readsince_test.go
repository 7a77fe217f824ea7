package policy

import (
	"testing"
	"time"
)

// TestReadSince checks which expired policies decide about a request whose turn came at a time.
func TestReadSince(t *testing.T) {
	turn := time.Unix(1000, 0)
	read := func(at time.Time) *Policy { return &Policy{copy: &goodCopy{class: ok, fetched: instantOf(at)}} }
	unanswered := &Policy{failure: &failure{last: instantOf(turn), unanswered: &unanswered{}}}
	for _, test := range []struct {
		name  string
		p     *Policy
		since time.Time
		want  bool
	}{
		{"read before", read(turn.Add(-1)), turn, false},
		{"read then", read(turn), turn, true},
		{"read later", read(turn.Add(time.Hour)), turn, true},
		{"failed later", &Policy{failure: &failure{last: instantOf(turn.Add(1))}}, turn, true},
		{"no answer, which holds for one way only", unanswered, turn, false},
		{"no turn", read(turn), time.Time{}, false},
		{"no policy", nil, turn, false},
	} {
		if got := test.p.ReadSince(test.since); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
