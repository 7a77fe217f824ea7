package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/audit/internal/tiles"
)

// mustSign returns a function that signs checkpoints, and writes its public key into a folder.
func mustSign(t testing.TB, dir string) func(size uint64, root tlog.Hash) ([]byte, error) {
	t.Helper()
	private, public, err := note.GenerateKey(nil, "example.com/log")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "key.pub"), []byte(public), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	return func(size uint64, root tlog.Hash) ([]byte, error) {
		return note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", signer.Name(), size, root)}, signer)
	}
}

// readAll calls the functions that read a log. They must not panic.
func readAll(t *testing.T, dir string) {
	r, err := audit.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = r.WriteText(&bytes.Buffer{})
	if err != nil {
		t.Error(err)
	}
	for range audit.Entries(dir) {
	}
	for index := range uint64(3) {
		audit.Prove(dir, index)
	}
	var file bytes.Buffer
	audit.ExportWARC(&file, dir)
	_, err = readWARC(file.Bytes())
	if err != nil {
		t.Errorf("the WARC is malformed: %v", err)
	}
}

// eventLines returns the events of a crawl as lines of JSON.
func eventLines(f *testing.F) []byte {
	text, err := os.ReadFile("testdata/events.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// FuzzEntries verifies logs that have any lines as their entries.
func FuzzEntries(f *testing.F) {
	f.Add([]byte("{}\n{\"event\":{},\"salt\":\"\",\"v\":1}\n" + strings.Repeat("[", 100)))
	f.Add([]byte(`{"event":{"kind":"started","time":"2000-01-01T00:00:00Z","decision":{"reason":"rule"}},"salt":"","v":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		w, err := tiles.Open(dir, tlog.Tree{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			w.Append(line)
		}
		err = w.Checkpoint(mustSign(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, dir)
	})
}

// FuzzEvents verifies logs with any events, which are lines of JSON.
func FuzzEvents(f *testing.F) {
	f.Add(eventLines(f))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			l := mustOpen(t, dir)
			for line := range bytes.SplitSeq(text, []byte("\n")) {
				var e collyrobots.Event
				if json.Unmarshal(line, &e) != nil {
					continue
				}
				if e.Kind == collyrobots.EventRobots {
					e.Body = []byte("User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n")
				}
				l.Event(e)
			}
			err := l.Close()
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, dir)
		})
	})
}

// FuzzFiles verifies a log in which a file was replaced.
func FuzzFiles(f *testing.F) {
	names := []string{"checkpoint", "key.pub", "tile/entries/000", "tile/entries/001.p/34", "tile/0/000", "tile/1/000.p/1", "pending-1", "robots"}
	for i := range names {
		f.Add(uint(i), []byte("\x00\x05entry"))
	}
	f.Fuzz(func(t *testing.T, i uint, content []byte) {
		dir := t.TempDir()
		w, err := tiles.Open(dir, tlog.Tree{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 290 {
			w.Append(fmt.Append(nil, "entry ", n))
		}
		err = w.Checkpoint(mustSign(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		name := filepath.Join(dir, names[i%uint(len(names))])
		err = os.WriteFile(name, content, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, dir)
	})
}

// TestHostileCheckpoint verifies a checkpoint of a tree that is much larger than the log. Verify must
// not look for each of the missing files.
func TestHostileCheckpoint(t *testing.T) {
	dir := t.TempDir()
	checkpoint, err := mustSign(t, dir)(1<<62, tlog.Hash{})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "checkpoint"), checkpoint, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, faults := verify(t, dir)
	if r.OK() || len(faults) > 5 {
		t.Errorf("the faults are %q", faults)
	}
	readAll(t, dir)
}

// TestHugeFiles verifies a log whose files are too large to be read. They have no content, so they
// take no space on the disk.
func TestHugeFiles(t *testing.T) {
	for _, name := range []string{"checkpoint", "key.pub", "pending-0", "tile/entries/000", "tile/0/000"} {
		dir := filepath.Join(t.TempDir(), "log")
		forge(t, dir, events(t)...)
		forgeMore(t, dir)
		err := os.Truncate(filepath.Join(dir, name), 1<<36)
		if os.IsNotExist(err) {
			err = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
			if err == nil {
				err = os.Truncate(filepath.Join(dir, name), 1<<36)
			}
		}
		if err != nil {
			t.Skip("the file system has no files with holes: ", err)
		}
		if r, _ := verify(t, dir); r.OK() && name != "pending-0" { // the bundle 0 is full, so its pending file is not read
			t.Errorf("%s: the report is OK", name)
		}
	}
}

// TestDeepEntry verifies an entry that is nested as deeply as an entry can be.
func TestDeepEntry(t *testing.T) {
	dir := t.TempDir()
	w, err := tiles.Open(dir, tlog.Tree{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, err = w.Append([]byte(`{"event":` + strings.Repeat("[", 60_000)))
	if err == nil {
		err = w.Checkpoint(mustSign(t, dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := verify(t, dir); r.OK() {
		t.Error("the report is OK")
	}
	readAll(t, dir)
}
