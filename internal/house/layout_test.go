package house

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// maxEntries is the number of files and folders that the root folder may have. Files and folders
// whose names begin with a dot do not count. Lower it if the folder has fewer, and do not raise it.
const maxEntries = 58

// rootTests are the files with tests in the root folder: the introduction to the package, its
// examples, and what needs unexported names. All other tests of the plugin are in internal/e2e.
var rootTests = []string{
	"example_test.go", "internal_test.go", "plugin_test.go",
}

// TestRootFolder checks that the root folder stays small.
func TestRootFolder(t *testing.T) {
	entries, err := os.ReadDir(".")
	must(t, err)
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		names = append(names, entry.Name())
		if strings.HasSuffix(entry.Name(), "_test.go") && !slices.Contains(rootTests, entry.Name()) {
			t.Errorf("%s: a test of the public API belongs to a package of internal/e2e", entry.Name())
		}
	}
	if len(names) > maxEntries {
		t.Errorf("the root folder has %d entries, want at most %d: %s", len(names), maxEntries, strings.Join(names, " "))
	}
}
