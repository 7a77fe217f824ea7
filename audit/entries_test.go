package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/audit"
)

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
