package audit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots/audit"
)

// An attack changes a log in a way that a random change does not find.
type attack struct {
	name string
	run  func(t *testing.T, dir string)
	// plain, key and checkpoint say whether Verify finds it: without options, with the key of the log,
	// and with the key and a checkpoint that another party holds.
	plain, key, checkpoint bool
}

// TestAttacks checks which attacks Verify finds, and what it has to know for that. The attacker may
// be the operator, who has the key of the log.
func TestAttacks(t *testing.T) {
	sound := filepath.Join(t.TempDir(), "sound")
	varied(t, sound)
	before := copyOf(t, sound)
	forgeMore(t, sound)
	public := strings.TrimSpace(read(t, sound, "key.pub"))
	held := []byte(read(t, sound, "checkpoint"))
	name, _, _ := strings.Cut(public, "+")
	newKey, newPublic, err := note.GenerateKey(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	last := len(rawEntries(t, sound)) - 10 // one of the entries that are about no request
	swap := func(e [][]byte) [][]byte {
		e[last], e[last+1] = e[last+1], e[last]
		return e
	}
	remove := func(e [][]byte) [][]byte { return slices.Delete(e, last, last+1) }
	insert := func(e [][]byte) [][]byte {
		return slices.Insert(e, last, bytes.Replace(e[last], []byte("shop.test"), []byte("food.test"), 1))
	}
	double := func(e [][]byte) [][]byte { return slices.Insert(e, last, e[last]) }
	byOperator := func(change func([][]byte) [][]byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) { rewrite(t, dir, "", change) }
	}
	byStranger := func(change func([][]byte) [][]byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			rewrite(t, dir, newKey, change)
			mustWrite(t, filepath.Join(dir, "key.pub"), newPublic+"\n")
		}
	}
	for _, a := range []attack{
		{"two entries change places, new tree, new key", byStranger(swap), false, true, true},
		{"an entry is removed, new tree, new key", byStranger(remove), false, true, true},
		{"an entry is inserted, new tree, new key", byStranger(insert), false, true, true},
		{"an entry is doubled, new tree, new key", byStranger(double), false, true, true},
		{"two entries change places, new tree, key of the log", byOperator(swap), false, false, true},
		{"an entry is removed, new tree, key of the log", byOperator(remove), false, false, true},
		{"an entry is inserted, new tree, key of the log", byOperator(insert), false, false, true},
		{"an entry is doubled, new tree, key of the log", byOperator(double), false, false, true},
		{"a new tree, and the old checkpoint", func(t *testing.T, dir string) {
			rewrite(t, dir, "", swap)
			mustWrite(t, filepath.Join(dir, "checkpoint"), string(held))
		}, true, true, true},
		{"a new tree with a new key, and the old public key", func(t *testing.T, dir string) { rewrite(t, dir, newKey, swap) }, true, true, true},
		{"another log with its own key", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			writeLog(t, dir, 5)
		}, false, true, true},
		{"the log of an earlier time", func(t *testing.T, dir string) { replaceBy(t, dir, before) }, false, false, true},
		{"an earlier checkpoint, all entries are there", func(t *testing.T, dir string) {
			mustWrite(t, filepath.Join(dir, "checkpoint"), read(t, before, "checkpoint"))
		}, false, false, true},
		{"the last bundle is removed", func(t *testing.T, dir string) {
			bundles, _ := filepath.Glob(filepath.Join(dir, "tile/entries/*.p"))
			if err := os.RemoveAll(bundles[len(bundles)-1]); err != nil {
				t.Fatal(err)
			}
		}, true, true, true},
		{"two robots.txt files change places", func(t *testing.T, dir string) {
			bodies, _ := filepath.Glob(filepath.Join(dir, "robots/*"))
			one, two := read(t, bodies[0], ""), read(t, bodies[1], "")
			mustWrite(t, bodies[0], two)
			mustWrite(t, bodies[1], one)
		}, true, true, true},
		{"a robots.txt is removed", func(t *testing.T, dir string) {
			bodies, _ := filepath.Glob(filepath.Join(dir, "robots/*"))
			if err := os.Remove(bodies[0]); err != nil {
				t.Fatal(err)
			}
		}, true, true, true},
		{"all requests of the log are removed, new tree, key of the log", byOperator(func(e [][]byte) [][]byte {
			return slices.DeleteFunc(e, func(entry []byte) bool { return bytes.Contains(entry, []byte(`"kind":"started"`)) })
		}), true, true, true},
		{"a denied request is said to be allowed, new tree, key of the log", byOperator(func(e [][]byte) [][]byte {
			for i := range e {
				e[i] = bytes.Replace(e[i], []byte(`"allowed":false`), []byte(`"allowed":true`), 1)
			}
			return e
		}), true, true, true},
	} {
		dir := copyOf(t, sound)
		a.run(t, dir)
		for _, test := range []struct {
			knows string
			v     audit.Verifier
			found bool
		}{
			{"nothing", audit.Verifier{}, a.plain},
			{"the key", audit.Verifier{Keys: []string{public}}, a.key},
			{"a checkpoint", audit.Verifier{Checkpoints: [][]byte{held}}, a.checkpoint},
			{"the key and a checkpoint", audit.Verifier{Keys: []string{public}, Checkpoints: [][]byte{held}}, a.checkpoint},
		} {
			r, err := test.v.Verify(dir)
			if err != nil {
				t.Fatal(err)
			}
			if r.OK() == test.found {
				t.Errorf("%s: who knows %s finds it: %t, want %t: %v", a.name, test.knows, !r.OK(), test.found, r.Findings)
			}
		}
	}
}

func mustWrite(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaceBy replaces a log by another one.
func replaceBy(t *testing.T, dir, other string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(other))); err != nil {
		t.Fatal(err)
	}
}
