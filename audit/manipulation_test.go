package audit_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

var manipulations = flag.Int("manipulations", 200, "TestVerifyManipulations: number of manipulations")

// copyOf returns a copy of a log.
func copyOf(t *testing.T, dir string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "log")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestVerifyManipulations changes a random byte of a random file of a log, removes a file, or cuts
// one. Each change must be found, except of files that do not matter.
func TestVerifyManipulations(t *testing.T) {
	sound := filepath.Join(t.TempDir(), "sound")
	varied(t, sound)
	forgeMore(t, sound)
	if r, faults := verify(t, sound); !r.OK() {
		t.Fatalf("the log is not sound: %q", faults)
	}
	random := rand.New(rand.NewPCG(1, 2))
	count := *manipulations
	if raceEnabled {
		count /= 10
	}
	for n := range count {
		dir := copyOf(t, sound)
		what := manipulate(t, dir, random)
		r, _ := verify(t, dir)
		if r.OK() {
			t.Errorf("manipulation %d was not found: %s", n, what)
		}
	}
}

// forgeMore makes a log longer than two bundles.
func forgeMore(t *testing.T, dir string) {
	t.Helper()
	l := mustOpen(t, dir)
	at := time.Now()
	for n := range 600 {
		l.Event(&report.Event{Kind: report.EventWaiting, Time: at, URL: fmt.Sprint("http://shop.test/", n)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// manipulate changes something in a log.
func manipulate(t *testing.T, dir string, random *rand.Rand) (what string) {
	t.Helper()
	var files []string
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case e.IsDir(), name == "key", name == "lock", strings.HasPrefix(name, "pending-"):
		default:
			files = append(files, path)
		}
		return err
	})
	name := files[random.IntN(len(files))]
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := random.IntN(len(text))
	way := random.IntN(4)
	if strings.Contains(name, ".p"+string(filepath.Separator)) && !isLastPartial(name) {
		way = 1 + random.IntN(3) // a partial tile of an earlier checkpoint may be missing
	}
	switch way {
	case 0:
		err = os.Remove(name)
		what = "removed"
	case 1:
		err = os.WriteFile(name, text[:at], 0o600)
		what = fmt.Sprint("cut at ", at)
	case 2:
		err = os.WriteFile(name, slices.Insert(text, at, 'x'), 0o600)
		what = fmt.Sprint("inserted a byte at ", at)
	default:
		text[at] ^= 1 << random.IntN(8)
		err = os.WriteFile(name, text, 0o600)
		what = fmt.Sprint("changed byte ", at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return what + " of " + name
}

// isLastPartial reports whether a partial tile or bundle is the widest one.
func isLastPartial(path string) bool {
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	most := 0
	for _, other := range others {
		var width int
		fmt.Sscan(filepath.Base(other), &width)
		most = max(most, width)
	}
	return filepath.Base(path) == fmt.Sprint(most)
}
