package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

func TestProve(t *testing.T) {
	dir := t.TempDir()
	forge(t, dir, events(t)...)
	forgeMore(t, dir)
	key := strings.TrimSpace(read(t, dir, "key.pub"))
	for e, err := range audit.Entries(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Index%50 > 3 && e.Index < 600 {
			continue
		}
		proof, err := audit.Prove(dir, e.Index)
		if err != nil {
			t.Fatal(err)
		}
		got, err := audit.CheckProof(proof, key)
		if err != nil || got.Salt != e.Salt || got.Index != e.Index {
			t.Errorf("entry %d: got %+v, %v", e.Index, got, err)
		}
		if !bytes.HasSuffix(proof, []byte(read(t, dir, "checkpoint"))) {
			t.Errorf("the proof does not end with the checkpoint:\n%s", proof)
		}
		for i := 0; i < len(proof); i += 41 {
			changed := bytes.Clone(proof)
			changed[i] ^= 1
			if got, err := audit.CheckProof(changed, key); err == nil && got.Salt != e.Salt {
				t.Errorf("the proof of entry %d is valid after a change of byte %d", e.Index, i)
			}
		}
	}
	if _, err := audit.Prove(dir, 1_000_000); err == nil {
		t.Error("an entry that does not exist was proved")
	}
	if _, err := audit.Prove(t.TempDir(), 0); err == nil {
		t.Error("an entry of an empty folder was proved")
	}
}

// TestErase checks that the text of an erased entry is gone, and that the rest of the log can still
// be verified and continued.
func TestErase(t *testing.T) {
	for _, more := range []bool{false, true} {
		dir := t.TempDir()
		forge(t, dir, events(t)...)
		if more {
			forgeMore(t, dir)
		}
		var erased uint64
		for e, err := range audit.Entries(dir) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Event != nil && e.Event.URL == "http://shop.test/2" && e.Event.Kind == "waiting" {
				erased = e.Index
				break
			}
		}
		if erased == 0 {
			t.Fatal("there is no such entry")
		}
		l := mustOpen(t, dir)
		if err := audit.Erase(dir, erased); err == nil {
			t.Error("an entry of an open log was erased")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := audit.Erase(dir, erased); err != nil {
			t.Fatal(err)
		}
		if err := audit.Erase(dir, 1_000_000); err == nil {
			t.Error("an entry that does not exist was erased")
		}
		for range 2 {
			r, faults := verify(t, dir)
			if r.OK() || len(faults) > 0 || r.Logs[0].Erased != 1 {
				t.Errorf("%+v, %q", r.Logs[0], faults)
			}
			for e := range audit.Entries(dir) {
				if e.Index == erased {
					t.Error("the entry is still there")
				}
			}
			if err := mustOpen(t, dir).Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := audit.CheckProof(must(audit.Prove(dir, erased)), read(t, dir, "key.pub")); err == nil {
			t.Error("the proof of an erased entry has an entry")
		}
	}
}

// TestEraseHidesNothing erases the entries of the faults of a log. Verify says of each check that needs
// these entries that it could not be made.
func TestEraseHidesNothing(t *testing.T) {
	dir := t.TempDir()
	varied(t, dir, collyrobots.DryRun())
	r, faults := verify(t, dir)
	if r.OK() {
		t.Fatal("a dry run has no faults")
	}
	for range 10 { // the entries after those of the faults may have faults then
		for _, f := range r.Findings {
			err := audit.Erase(dir, f.Entry)
			if err != nil {
				t.Fatal(err)
			}
		}
		r, faults = verify(t, dir)
	}
	if r.OK() || len(faults) > 0 {
		t.Errorf("OK is %t, faults %q", r.OK(), faults)
	}
	var text strings.Builder
	err := r.WriteText(&text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		result := "not checkable"
		erased := int(r.Logs[0].Erased)
		if c.Check == audit.CheckTree {
			result = "ok"
			erased = 0
		}
		if c.Faults > 0 || c.Erased != erased || c.Unchecked < erased || !strings.Contains(text.String(), fmt.Sprintf("\n%-9s %-13s ", c.Check, result)) {
			t.Errorf("%+v of a log with %d erased entries, and the report is\n%s", c, erased, &text)
		}
	}
	s, err := audit.Site("shop.test", dir)
	if err != nil {
		t.Fatal(err)
	}
	if last := s.Sentences(); s.OK || s.Erased == 0 || !strings.HasPrefix(last[len(last)-1], "The verification of the log found no faults, but ") {
		t.Errorf("OK is %t, %d entries are erased, and the report is\n%s", s.OK, s.Erased, strings.Join(last, "\n"))
	}
}

// TestErasePage erases the entries of a page. The others have no faults.
func TestErasePage(t *testing.T) {
	for _, kinds := range [][]report.EventKind{
		{report.EventStarted, report.EventAnswered}, {report.EventStarted}, {report.EventAnswered},
	} {
		dir := t.TempDir()
		forge(t, dir, events(t)...)
		for e := range audit.Entries(dir) {
			if e.Event == nil || e.Event.URL != "http://shop.test/2" || !slices.Contains(kinds, e.Event.Kind) {
				continue
			}
			err := audit.Erase(dir, e.Index)
			if err != nil {
				t.Fatal(err)
			}
		}
		r, faults := verify(t, dir)
		if r.OK() || len(faults) > 0 || int(r.Logs[0].Erased) != len(kinds) {
			t.Errorf("%v: OK is %t, %d entries are erased, faults %q", kinds, r.OK(), r.Logs[0].Erased, faults)
		}
	}
}

// TestEntriesReportsTheEnd checks that Entries reports faults after the last entry that it can read.
func TestEntriesReportsTheEnd(t *testing.T) {
	for _, test := range []struct {
		name string
		gone []string // files that are removed
		want string   // the only error
	}{
		{"all entries are missing", []string{"tile/entries", "tile/0"}, "the entries 0 to"},
		{"a tile above the entries is missing", []string{"tile/1"}, "tile/1/000.p/2 is missing"},
	} {
		dir := t.TempDir()
		forge(t, dir, events(t)...)
		forgeMore(t, dir)
		for _, name := range test.gone {
			err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
		}
		var faults []string
		for _, err := range audit.Entries(dir) {
			if err != nil {
				faults = append(faults, err.Error())
			}
		}
		if len(faults) != 1 || !strings.Contains(faults[0], test.want) {
			t.Errorf("%s: got the errors %q, want one with %q", test.name, faults, test.want)
		}
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

func FuzzCheckProof(f *testing.F) {
	f.Add([]byte("c2sp.org/tlog-proof@v1\nextra e30=\nindex 0\n\nx\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— x AAAA\n"))
	const key = "example.com/log+00000000+x"
	f.Fuzz(func(t *testing.T, proof []byte) {
		if _, err := audit.CheckProof(proof, key); err == nil {
			t.Error("a proof with a malformed key is valid")
		}
	})
}
