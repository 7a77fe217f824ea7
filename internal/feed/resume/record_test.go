package resume

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/store"
)

// leftOf returns a record whose runs are encoded from arbitrary numbers.
func leftOf(numbers ...uint64) string {
	var b []byte
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	text, err := json.Marshal(map[string]any{"Version": recordVersion, "Left": b})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestBrokenRecords checks that records of another version, and values that are not records, are
// ignored.
func TestBrokenRecords(t *testing.T) {
	for _, broken := range []string{
		`{"Sum":"qg==","Passed":2,"Done":true}`, "", "{", "[]", "\x00", `{"Version":1}`, `{"Version":2}`, `{"Version":4}`,
		`{"Version":3,"Next":{"Pos":-1}}`, `{"Version":3,"Left":[{"Pos":5,"Len":1}]}`, `{"Version":3,"Left":"?"}`,
		leftOf(0), leftOf(5), leftOf(0, 0), leftOf(1, 2), leftOf(1<<63-1, 3), leftOf(1<<64-1, 3),
	} {
		var log bytes.Buffer
		j := NewJournal(Options{Store: store.NewMemory(), Log: slog.New(slog.NewTextHandler(&log, nil)), Scope: "ScopeHost"})
		write := func([]byte) ([]byte, error) { return []byte(broken), nil }
		if err := j.options.Store.Update(t.Context(), "sitemap ScopeHost a.test a.test/index.xml", 0, write); err != nil {
			t.Fatal(err)
		}
		c := j.Recall(t.Context(), "a.test/index.xml", "a.test")
		if c.level() != Fresh || c.passed(Mark{}) || c.passed(Mark{Pos: 5}) {
			t.Errorf("%q is used: %+v", broken, c.record)
		}
		if got := strings.Count(log.String(), "record cannot be used"); got != 1 {
			t.Errorf("%q: %d lines in the log, want 1", broken, got)
		}
	}
}

// TestFit checks that a record with too many runs makes the next run examine the rest again.
func TestFit(t *testing.T) {
	var left runs
	for i := range mostRuns + 10 {
		left = append(left, run{Pos: 2 * i, Len: 1})
	}
	r := record{Version: recordVersion, Whole: true, Next: lastMark, Left: left}
	newest := r
	newest.Newest = true
	r.fit()
	newest.fit()
	if r.Whole || r.Next != (Mark{Pos: 2 * mostRuns}) || len(r.Left) != mostRuns {
		t.Errorf("whole %v, next %v, %d runs", r.Whole, r.Next, len(r.Left))
	}
	if newest.Whole || newest.Next != (Mark{}) || len(newest.Left) != 0 {
		t.Errorf("newest first: whole %v, next %v, %d runs", newest.Whole, newest.Next, len(newest.Left))
	}
}

func FuzzRuns(f *testing.F) {
	f.Add([]byte{3, 1, 2, 7, 7, 0, 255, 254})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var r runs
		naive := make(map[int]int)
		for _, op := range ops {
			pos := int(op >> 2)
			if op&1 == 0 {
				tries, ok := naive[pos]
				if got, found := r.remove(pos); got != tries || found != ok {
					t.Fatalf("remove(%d) of %v: %d %v, want %d %v", pos, r, got, found, tries, ok)
				}
				delete(naive, pos)
			} else if _, ok := naive[pos]; !ok {
				naive[pos] = int(op >> 1 & 1)
				r.add(pos, naive[pos])
			}
			if !areRuns(r) {
				t.Fatalf("%v is not valid", r)
			}
			var again runs
			text, err := json.Marshal(r)
			if err == nil {
				err = json.Unmarshal(text, &again)
			}
			if err != nil || !slices.Equal(again, r) {
				t.Fatalf("%v became %s and then %v, %v", r, text, again, err)
			}
			for i := range 64 {
				if _, found := r.find(i); found != has(naive, i) {
					t.Fatalf("find(%d) of %v: %v", i, r, found)
				}
			}
		}
	})
}

func has(m map[int]int, i int) bool { _, ok := m[i]; return ok }

// FuzzRecord checks that a record that can be read is written and read again without a change.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(leftOf(1, 7, 0, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again record
		if r.decode(b) != nil {
			return
		}
		val, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.decode(val); err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
			t.Errorf("%+v, %v, want %+v", again, err, r)
		}
	})
}
