package view

import (
	"testing"
	"time"
)

func TestGrowth(t *testing.T) {
	var g growth
	began := time.Now()
	for _, step := range []struct {
		at   time.Duration
		n    int
		want float64 // -1 means not known
	}{
		{0, 100, -1},
		{1 * time.Second, 100, -1},
		{2 * time.Second, 110, 300},
		{30 * time.Second, 400, 600},
		{60 * time.Second, 700, 600},
		{90 * time.Second, 400, 0}, // compared with the number after 30 seconds
		{10 * time.Minute, 400, 0},
		{11 * time.Minute, 340, -60},
	} {
		got := g.add(began.Add(step.at), step.n)
		switch {
		case step.want == -1 && got == nil:
		case step.want != -1 && got != nil && *got == step.want:
		default:
			t.Errorf("after %v: growth %v, want %v", step.at, got, step.want)
		}
	}
	for i := range 10_000 {
		g.add(began.Add(time.Hour+time.Duration(i)*time.Millisecond), i)
	}
	if len(g.marks) > 70 {
		t.Errorf("%d marks are kept", len(g.marks))
	}
}
