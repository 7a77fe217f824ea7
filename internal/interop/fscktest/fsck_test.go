// Package fscktest checks logs of package audit with fsck of Tessera, an independent implementation
// of the same formats.
package fscktest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
)

// check runs fsck on a log.
func check(dir string) error {
	public, err := os.ReadFile(filepath.Join(dir, "key.pub"))
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(string(public)))
	if err != nil {
		return err
	}
	f := fsck.New(verifier.Name(), verifier, client.FileFetcher{Root: dir}, leafHashes, fsck.Opts{N: 2})
	return f.Check(context.Background())
}

// leafHashes returns the hashes of the entries of a bundle (tlog-tiles, "Log Entries").
func leafHashes(bundle []byte) (hashes [][]byte, err error) {
	for len(bundle) > 0 {
		if len(bundle) < 2 {
			return nil, errors.New("the length of an entry is cut off")
		}
		size := int(binary.BigEndian.Uint16(bundle))
		if len(bundle) < 2+size {
			return nil, errors.New("an entry is cut off")
		}
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(bundle[2:2+size]))
		bundle = bundle[2+size:]
	}
	return hashes, nil
}

// write writes a log with n entries, in several runs. The first and the last entry of a run are
// notices.
func write(t *testing.T, dir string, runs ...int) {
	t.Helper()
	for _, n := range runs {
		l, err := audit.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		addEvents(l, n-2)
		err = l.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// addEvents adds n events to a log.
func addEvents(l *audit.Log, n int) {
	for i := range n {
		l.Event(&report.Event{Kind: report.EventWaiting, Time: time.Now(), URL: fmt.Sprint("http://shop.test/", i)})
	}
}

// TestFsckAccepts checks logs of sizes around the limits of bundles and tiles. With 256 full tiles
// (65,536 entries) the tree has a full tile of level 1.
func TestFsckAccepts(t *testing.T) {
	for _, runs := range [][]int{{2}, {255}, {256}, {257}, {100, 156, 256, 3}, {5000}, {65_536}, {65_536 + 256 + 7}} {
		dir := t.TempDir()
		write(t, dir, runs...)
		err := check(dir)
		if err != nil {
			t.Errorf("a log with runs of %d entries: %v", runs, err)
		}
	}
}

// TestFsckRejects checks that fsck reads the files that the log consists of: it finds a changed
// byte in each of them.
func TestFsckRejects(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1000)
	for _, name := range []string{"tile/entries/000", "tile/entries/003.p/232", "tile/0/001", "tile/0/003.p/232", "tile/1/000.p/3", "checkpoint"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(sound)
		damaged[len(damaged)/2] ^= 1
		err = os.WriteFile(path, damaged, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if check(dir) == nil {
			t.Errorf("fsck accepts a changed byte in %s", name)
		}
		if r, err := audit.Verify(dir); err != nil || r.OK() {
			t.Errorf("Verify accepts a changed byte in %s: %v", name, err)
		}
		err = os.WriteFile(path, sound, 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := check(dir); err != nil {
		t.Errorf("the restored log: %v", err)
	}
}
