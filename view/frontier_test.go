package view

import (
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/store/urlstore"
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

// TestFrontierOf checks that a urlstore.Store without pages has no card. The journal of collyrobots crawl is
// such a store: its pages wait in the plugin.
func TestFrontierOf(t *testing.T) {
	for _, test := range []struct {
		name  string
		stats *urlstore.Stats
		want  bool
	}{
		{"no store", nil, false},
		{"an empty store", &urlstore.Stats{}, false},
		{"a store whose pages do not wait", &urlstore.Stats{Out: 3, Duplicates: 7}, false},
		{"a page waits", &urlstore.Stats{Waiting: 1, Hosts: 1}, true},
		{"all pages are done", &urlstore.Stats{Done: 5}, true},
		{"a page was denied", &urlstore.Stats{Denied: 1}, true},
		{"a page has failed", &urlstore.Stats{Failed: 1}, true},
		{"a page is over the budget", &urlstore.Stats{OverBudget: 1}, true},
		{"a page is not recorded", &urlstore.Stats{Unrecorded: 1, Error: "disk full"}, true},
	} {
		got := frontierOf(test.stats, nil)
		if (got != nil) != test.want || got != nil && got.Stats != *test.stats {
			t.Errorf("%s: got %+v", test.name, got)
		}
	}
}
