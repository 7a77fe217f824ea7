// Package house tests the text of the repository: its imports, its words and its layout.
package house

import (
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

// TestMain runs the tests in the root of the module, so that the names of files are relative to it.
func TestMain(m *testing.M) {
	root, err := filepath.Abs("../..")
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		log.Fatal(err)
	}
	leaktest.Main(m)
}

// must ends the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
