package audit_test

import (
	"bytes"
	"encoding/json"
	"reflect"
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

// TestDecodeAsJSON checks that a changed entry is accepted exactly if package json reads the same
// entry from it, and the form is right.
func TestDecodeAsJSON(t *testing.T) {
	accepted := 0
	for i := range events(t) {
		e := events(t)[i]
		text, err := audit.EncodeFixed(audit.Entry{Event: &e, Body: "0123abcd"})
		if err != nil {
			t.Fatal(err)
		}
		texts := [][]byte{text, bytes.Replace(text, []byte(`"0123`), []byte(`"\u0030123`), 1)}
		for at := range text {
			for _, b := range []byte(`"\{},:x0 `) {
				changed := bytes.Clone(text)
				changed[at] = b
				texts = append(texts, changed)
			}
			texts = append(texts, text[:at])
		}
		for _, text := range texts {
			got, want, gotErr, wantErr := audit.DecodeEntry(text)
			switch {
			case (gotErr == nil) != (wantErr == nil):
				t.Fatalf("%s: error %v, want %v", text, gotErr, wantErr)
			case gotErr != nil:
			case !reflect.DeepEqual(got, want):
				t.Fatalf("%s:\n%+v, want\n%+v", text, got, want)
			default:
				accepted++
			}
		}
	}
	if accepted == 0 {
		t.Error("no entry was accepted")
	}
	t.Logf("%d texts accepted", accepted)
}
