package audit_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

// rudeStarts returns requests to one host without a decision.
func rudeStarts(n int) (all []*report.Event) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		all = append(all, &report.Event{Kind: report.EventStarted, Time: now.Add(time.Duration(i) * time.Second), Host: "a.test",
			URL: fmt.Sprintf("http://a.test/%d", i), RequestKind: report.RequestPage, Request: uint32(i)})
	}
	return all
}

// TestFindingsInOrder checks that faults of the tree and of the requests are in the order of the
// entries, although entries are decoded before the earlier ones are checked.
func TestFindingsInOrder(t *testing.T) {
	dir := t.TempDir()
	forge(t, dir, rudeStarts(600)...)
	damaged := []string{"tile/entries/000", "tile/entries/001"}
	for _, name := range damaged {
		name = filepath.Join(dir, name)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)/2] ^= 1
		err = os.WriteFile(name, text, 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	r, _ := verify(t, dir)
	if !slices.IsSortedFunc(r.Findings, func(a, b audit.Finding) int { return cmp.Compare(a.Entry, b.Entry) }) {
		t.Error("the findings are not in the order of the entries")
	}
	var at []int
	for i, f := range r.Findings {
		if f.Check == audit.CheckTree {
			at = append(at, i)
		}
	}
	if len(at) != len(damaged) || at[0] < 100 || at[1] < at[0]+100 {
		t.Errorf("the faults of the tree are the findings %v of %d", at, len(r.Findings))
	}
}

// TestScanStops checks that no goroutine stays when the caller does not read all entries, or when
// one of two logs cannot be read.
func TestScanStops(t *testing.T) {
	dir := t.TempDir()
	forge(t, dir, rudeStarts(600)...)
	for _, most := range []int{1, 255, 256, 257, 600} {
		n := 0
		for range audit.Entries(dir) {
			n++
			if n == most {
				break
			}
		}
		if n != most {
			t.Errorf("got %d entries, want %d", n, most)
		}
	}
	_, err := audit.Verify(dir, filepath.Join(dir, "missing"))
	if err == nil {
		t.Error("a missing folder is no error")
	}
}

// TestFilesVanish removes files of a log after the first 100 entries were checked. Each missing file
// is found if it was needed later.
func TestFilesVanish(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault bool // of the tree
	}{
		{"checkpoint", false}, // it was read before
		{"key.pub", false},
		{"tile/entries/001", true},
		{"tile/0/001", true},
		{"tile/entries/002.p", true},
		{"tile/0/002.p", true},
		{"tile/1", true},
		{"tile", true},
		{".", true},
	} {
		dir := filepath.Join(t.TempDir(), "log")
		forge(t, dir, rudeStarts(600)...)
		n := 0
		r, err := audit.VerifyEach(dir, func() {
			n++
			if n != 100 {
				return
			}
			err := os.RemoveAll(filepath.Join(dir, test.name))
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, f := range r.Findings {
			if f.Check == audit.CheckTree {
				found++
			}
		}
		if (found > 0) != test.fault || found > 5 {
			t.Errorf("%s: %d faults of the tree", test.name, found)
		}
	}
}
