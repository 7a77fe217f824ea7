package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/audit/internal/tiles"
	"github.com/collyrobots/collyrobots/report"
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
	var file bytes.Buffer
	audit.ExportWARC(&file, dir)
	_, err = readWARC(file.Bytes())
	if err != nil {
		t.Errorf("the WARC is malformed: %v", err)
	}
}

// writePending writes the entries of a log that has no checkpoint, in the format of the pending file
// of package tiles.
func writePending(t *testing.T, dir string, entries [][]byte) {
	var records []byte
	for _, entry := range entries[:min(len(entries), tiles.Width)] {
		entry = entry[:min(len(entry), tiles.MaxEntry)]
		records = binary.BigEndian.AppendUint32(records, crc32.ChecksumIEEE(entry))
		records = binary.BigEndian.AppendUint16(records, uint16(len(entry)))
		records = append(records, entry...)
	}
	err := os.WriteFile(filepath.Join(dir, "pending-0"), records, 0o600)
	if err != nil {
		t.Fatal(err)
	}
}

// seedEvents returns the events of a crawl, and their robots.txt.
func seedEvents(f *testing.F) (lines [][]byte, robotsTxt []byte) {
	text, err := os.ReadFile("testdata/events.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(text), []byte("\n")), []byte("User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n")
}

// encodeLine returns the entry of an event, which is a line of JSON, with a fixed salt. It returns
// nil if the line is no event, or if the event cannot be encoded.
func encodeLine(line, robotsTxt []byte) []byte {
	e := new(report.Event)
	if json.Unmarshal(line, &e) != nil {
		return nil
	}
	entry := audit.Entry{Event: e}
	if e.Kind == report.EventRobots {
		entry.Body = fmt.Sprintf("%x", sha256.Sum256(robotsTxt))
	}
	text, err := audit.EncodeFixed(entry)
	if err != nil {
		return nil
	}
	return text
}

// robotsFolder returns a folder with a robots.txt, and without entries.
func robotsFolder(f *testing.F, robotsTxt []byte) (dir string) {
	dir = f.TempDir()
	name := filepath.Join(dir, "robots", fmt.Sprintf("%x", sha256.Sum256(robotsTxt)))
	err := os.Mkdir(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, robotsTxt, 0o600)
	}
	if err != nil {
		f.Fatal(err)
	}
	return dir
}

// FuzzEntries verifies logs that have any lines as their entries.
func FuzzEntries(f *testing.F) {
	f.Add([]byte("{}\n{\"event\":{},\"salt\":\"\",\"v\":1}\n" + strings.Repeat("[", 100)))
	f.Add([]byte(`{"event":{"kind":"started","time":"2000-01-01T00:00:00Z","decision":{"reason":"rule"}},"salt":"","v":1}`))
	f.Add([]byte(`{"log":{"kind":"opened","time":"2026-01-01T00:00:00Z","clock":"a"},"salt":"","v":1}`))
	lines, robotsTxt := seedEvents(f)
	for _, line := range lines {
		f.Add(encodeLine(line, robotsTxt))
	}
	dir := robotsFolder(f, robotsTxt)
	f.Fuzz(func(t *testing.T, text []byte) {
		writePending(t, dir, bytes.Split(text, []byte("\n")))
		readAll(t, dir)
	})
}

// FuzzEvents verifies logs with any events, which are lines of JSON. Verify must be able to read
// the entry of each event.
func FuzzEvents(f *testing.F) {
	lines, robotsTxt := seedEvents(f)
	for i := range lines {
		f.Add(lines[i])
		f.Add(bytes.Join(lines[:i+1], []byte("\n")))
	}
	dir := robotsFolder(f, robotsTxt)
	f.Fuzz(func(t *testing.T, text []byte) {
		var entries [][]byte
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			entry := encodeLine(line, robotsTxt)
			if entry != nil && len(entry) <= tiles.MaxEntry {
				entries = append(entries, entry)
			}
		}
		writePending(t, dir, entries)
		for e, err := range audit.Entries(dir) {
			if err != nil {
				t.Errorf("entry %d, %s: %v", e.Index, entries[e.Index], err)
			}
		}
		readAll(t, dir)
	})
}

// FuzzFiles verifies a log in which a file was replaced.
func FuzzFiles(f *testing.F) {
	names := []string{"checkpoint", "key.pub", "tile/entries/000", "tile/entries/001.p/34", "tile/0/000", "tile/1/000.p/1", "pending-1", "robots"}
	dir := f.TempDir()
	w, err := tiles.Open(dir, tlog.Tree{})
	if err != nil {
		f.Fatal(err)
	}
	for n := range 290 {
		w.Append(fmt.Append(nil, "entry ", n))
	}
	err = errors.Join(w.Checkpoint(mustSign(f, dir)), w.Close())
	if err != nil {
		f.Fatal(err)
	}
	contents := make(map[string][]byte) // of the files that exist
	for i, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			contents[name] = content
		}
		f.Add(uint(i), []byte("\x00\x05entry"))
		f.Add(uint(i), content)
	}
	f.Fuzz(func(t *testing.T, i uint, content []byte) {
		name := names[i%uint(len(names))]
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, content, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, dir)
		if before, exists := contents[name]; exists {
			err = os.WriteFile(path, before, 0o600)
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
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
