package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
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
	if raceEnabled {
		t.Skip("has one goroutine")
	}
	accepted := 0
	for _, e := range events(t) {
		text, err := audit.EncodeFixed(audit.Entry{Event: e, Body: "0123abcd"})
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

// TestAnyText logs events that have odd bytes in each of their texts, and reads them back.
func TestAnyText(t *testing.T) {
	for _, text := range []string{"\xff", `\ufffd\\ufffd\` + "\xff\\", "\u2028<&>\u2029", "\x00\x7f\"\n", "\xed\xa0\x80"} {
		e := &report.Event{Kind: report.EventDenied, Time: time.Now(), Decision: &report.Decision{Reason: report.ReasonUsage}}
		for _, value := range []reflect.Value{reflect.ValueOf(e).Elem(), reflect.ValueOf(e.Decision).Elem()} {
			for i := range value.NumField() {
				if f := value.Field(i); f.Kind() == reflect.String && f.String() == "" {
					f.SetString(text)
				}
			}
		}
		mustBeLogged(t, e, text)
		e = &report.Event{Kind: report.EventDenied, Time: time.Now()}
		length := 80_000
		if raceEnabled {
			length = 800
		}
		long := strings.Repeat(text, length)
		e.URL, e.From = long, long
		e.Decision = &report.Decision{Reason: report.ReasonUsage, URL: long, LinkedFrom: long, Group: long}
		mustBeLogged(t, e, long)
	}
}

// mustBeLogged logs an event with a text in its errors and its rule, and reads it back.
func mustBeLogged(t *testing.T, e *report.Event, text string) {
	t.Helper()
	e.Err = errors.New(text)
	e.Decision.Err = e.Err
	e.Decision.Rule.Pattern = text
	dir := t.TempDir()
	forge(t, dir, e)
	r, faults := verify(t, dir)
	if !r.OK() || r.Logs[0].Denied != 1 {
		t.Errorf("%.20q: %+v, faults %q", text, r.Logs[0], faults)
	}
}
