package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/audit"
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

func FuzzCheckProof(f *testing.F) {
	f.Add([]byte("c2sp.org/tlog-proof@v1\nextra e30=\nindex 0\n\nx\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— x AAAA\n"))
	const key = "example.com/log+00000000+x"
	f.Fuzz(func(t *testing.T, proof []byte) {
		if _, err := audit.CheckProof(proof, key); err == nil {
			t.Error("a proof with a malformed key is valid")
		}
	})
}
