package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
)

// rewrite replaces the entries of a log as the holder of its key can do it: it builds a new tree and
// signs it. If key is not "", it is the new key of the log.
func rewrite(t *testing.T, dir, key string, change func(entries [][]byte) [][]byte) {
	t.Helper()
	entries := change(rawEntries(t, dir))
	if key == "" {
		key = strings.TrimSpace(read(t, dir, "key"))
	}
	signer, err := note.NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	pending, _ := filepath.Glob(filepath.Join(dir, "pending-*"))
	for _, name := range append(pending, filepath.Join(dir, "tile"), filepath.Join(dir, "checkpoint")) {
		err = errors.Join(err, os.RemoveAll(name))
	}
	w, openErr := tiles.Open(dir, tlog.Tree{})
	err = errors.Join(err, openErr)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		_, appendErr := w.Append(e)
		err = errors.Join(err, appendErr)
	}
	err = errors.Join(err, w.Checkpoint(func(size uint64, root tlog.Hash) ([]byte, error) {
		return note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", signer.Name(), size, root)}, signer)
	}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
}

// rawEntries returns the entries that the checkpoint of a log covers.
func rawEntries(t *testing.T, dir string) (entries [][]byte) {
	t.Helper()
	lines := strings.Split(read(t, dir, "checkpoint"), "\n")
	var signed tlog.Tree
	_, err := fmt.Sscan(lines[1], &signed.N)
	hash, hashErr := tlog.ParseHash(lines[2])
	if err = errors.Join(err, hashErr); err != nil {
		t.Fatal(err)
	}
	signed.Hash = hash
	for item := range tiles.NewReader(dir).Scan(signed, nil, func(_ uint64, text string) { t.Error(text) }) {
		entries = append(entries, bytes.Clone(item.Entry))
	}
	return entries
}
