package view

import (
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
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

// TestFrontierOf checks that a URLStore without pages has no card. The journal of collyrobots crawl is
// such a store: its pages wait in the plugin.
func TestFrontierOf(t *testing.T) {
	for _, test := range []struct {
		name  string
		stats *collyrobots.FrontierStats
		want  bool
	}{
		{"no store", nil, false},
		{"an empty store", &collyrobots.FrontierStats{}, false},
		{"a store whose pages do not wait", &collyrobots.FrontierStats{Out: 3, Duplicates: 7}, false},
		{"a page waits", &collyrobots.FrontierStats{Waiting: 1, Hosts: 1}, true},
		{"all pages are done", &collyrobots.FrontierStats{Done: 5}, true},
		{"a page was denied", &collyrobots.FrontierStats{Denied: 1}, true},
		{"a page has failed", &collyrobots.FrontierStats{Failed: 1}, true},
		{"a page is over the budget", &collyrobots.FrontierStats{OverBudget: 1}, true},
		{"a page is not recorded", &collyrobots.FrontierStats{Unrecorded: 1, Error: "disk full"}, true},
	} {
		got := frontierOf(test.stats, nil)
		if (got != nil) != test.want || got != nil && got.FrontierStats != *test.stats {
			t.Errorf("%s: got %+v", test.name, got)
		}
	}
}
