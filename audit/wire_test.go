package audit_test

import (
	"encoding/json"
	"testing"

	"github.com/collyrobots/collyrobots/audit"
)

// TestEntriesAreEvents checks that an entry has the fields that the JSON methods of Event and
// Decision write, and that Entries returns the events that were logged.
func TestEntriesAreEvents(t *testing.T) {
	dir := t.TempDir()
	all := events(t)
	forge(t, dir, all...)
	var got []json.RawMessage
	for e, err := range audit.Entries(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event != nil {
			text, err := json.Marshal(e.Event)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
	}
	if len(got) != len(all) {
		t.Fatalf("%d events, want %d", len(got), len(all))
	}
	for i, e := range all {
		want, err := json.Marshal(e)
		if err != nil || string(got[i]) != string(want) {
			t.Errorf("event %d is\n%s\nwant\n%s", i, got[i], want)
		}
	}
}
