package feed

import (
	"sync/atomic"
	"testing"

	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/store"
)

// TestDelivery checks what the results of a page that was handed on mean: its slot is free after the
// first one, Unfinished ends the walk, and the next run tries the page again unless it is done.
func TestDelivery(t *testing.T) {
	for _, test := range []struct {
		name    string
		results []Result
		stops   bool
		again   bool
	}{
		{name: "done", results: []Result{Done}},
		{name: "failed", results: []Result{Failed}, again: true},
		{name: "skipped", results: []Result{Skipped}, again: true},
		{name: "unfinished", results: []Result{Unfinished}, stops: true, again: true},
		{name: "silent", results: []Result{Silent}, again: true},
		{name: "unsent", results: []Result{Unsent}, again: true},
		{name: "done late", results: []Result{Silent, Done}},
		{name: "done late, and not sent before", results: []Result{Unsent, Done}},
		{name: "failed late", results: []Result{Unsent, Failed}, again: true},
		{name: "silent twice", results: []Result{Silent, Silent, Done}},
		{name: "done only at first", results: []Result{Done, Failed, Unfinished, Silent}},
		{name: "failed at first", results: []Result{Failed, Done}, again: true},
		{name: "unfinished late", results: []Result{Silent, Unfinished}, stops: true, again: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := New(Options{Resume: true, Store: store.NewMemory()})
			slots := new(Slots)
			s := &share{slots: slots}
			if err := s.enter(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			at := resume.Place{Checkpoint: f.journal.NewCheckpoint("map.xml", "a.test")}
			ticket, _ := f.journal.Claim(1, false, at)
			d := &delivery{feed: f, stop: new(atomic.Bool), share: s, ticket: ticket}
			for _, r := range test.results {
				d.finish(r)
				if slots.held != 0 {
					t.Errorf("%d slots are held after result %d", slots.held, r)
				}
			}
			if d.stop.Load() != test.stops {
				t.Errorf("stop is %v, want %v", d.stop.Load(), test.stops)
			}
			if again := !at.Passed(); again != test.again {
				t.Errorf("the page is tried again: %v, want %v", again, test.again)
			}
		})
	}
}
