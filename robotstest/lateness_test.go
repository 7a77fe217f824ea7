package robotstest

import (
	"slices"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestTolerated checks which gaps Verify accepts on the loopback interface, without and with a busy
// machine.
func TestTolerated(t *testing.T) {
	v := &verifier{late: new(lateness)}
	for late, want := range map[time.Duration]time.Duration{
		0:                      800 * time.Millisecond,
		100 * time.Millisecond: 400 * time.Millisecond,
		time.Second:            0,
	} {
		v.late.longest.Store(int64(late))
		if got := v.tolerated(time.Second); got != want {
			t.Errorf("%v late: gaps from %v on are accepted, want %v", late, got, want)
		}
	}
}

// TestEditions checks that on the loopback interface both the old and the new robots.txt count for
// 100 milliseconds after a change, and that in a bubble the new one counts at once.
func TestEditions(t *testing.T) {
	a := dialect.Authority{Scheme: "http", Host: "a.test"}
	began := time.Now()
	changed := began.Add(time.Second)
	said := map[dialect.Authority][]edition{a: {{from: began, closed: 1}, {from: changed, closed: 2}}}
	for _, test := range []struct {
		bubble bool
		after  time.Duration // the time of the request after the change
		want   []time.Duration
	}{
		{false, -time.Millisecond, []time.Duration{1}},
		{false, 0, []time.Duration{1, 2}},
		{false, onItsWay, []time.Duration{1, 2}},
		{false, onItsWay + 1, []time.Duration{2}},
		{true, -1, []time.Duration{1}},
		{true, 1, []time.Duration{2}},
	} {
		v := &verifier{bubble: test.bubble, said: said}
		var got []time.Duration
		editions, _ := v.editions(a, changed.Add(test.after))
		for _, e := range editions {
			got = append(got, e.closed)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("bubble %t, %v after the change: the editions %v count, want %v", test.bubble, test.after, got, test.want)
		}
	}
}
