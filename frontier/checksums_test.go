package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A crawlState has the URLs of the pages of a folder, by what has become of them.
type crawlState struct {
	waiting, done map[string]bool
}

// smallCrawl closes a frontier in order and returns its folder. Some of its records are in tables,
// and the newest are only in the log of changes.
func smallCrawl(t *testing.T) (dir string, s crawlState) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	s = crawlState{waiting: make(map[string]bool), done: make(map[string]bool)}
	for round := range 2 {
		f, err := frontier.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			p := &urlstore.Page{URL: fmt.Sprintf("http://host%d.test/%d/%d", i%20, round, i)}
			if added, err := f.Add(p); !added || err != nil {
				t.Fatal(added, err)
			}
			s.waiting[p.URL] = true
		}
		for range 150 {
			p, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.Pace(p.Host, time.Now(), false)
			finish(t, f, p, urlstore.Done)
			delete(s.waiting, p.URL)
			s.done[p.URL] = true
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir, s
}

// lost returns how many pages of s a frontier has forgotten.
func (s crawlState) lost(t *testing.T, f *frontier.Frontier) int {
	t.Helper()
	lost := 0
	for url := range s.done {
		if added, err := f.Add(&urlstore.Page{URL: url}); added || err != nil {
			lost++
		}
	}
	found := handedOut(t, f)
	for url := range s.waiting {
		if found[url] == 0 {
			lost++
		}
	}
	return lost
}

// An errorCounter counts the messages that say that something is lost.
type errorCounter struct {
	slog.Handler
	errors *atomic.Int64
}

func countErrors() (*slog.Logger, *atomic.Int64) {
	n := new(atomic.Int64)
	return slog.New(errorCounter{Handler: slog.DiscardHandler, errors: n}), n
}

func (c errorCounter) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

func (c errorCounter) Handle(context.Context, slog.Record) error {
	c.errors.Add(1)
	return nil
}

// TestDamageIsNoticed flips single bits in the files of a folder that was closed in order. Pages
// may be lost, but Open or a message must say so, and most pages are found if the engine can be opened.
func TestDamageIsNoticed(t *testing.T) {
	dir, state := smallCrawl(t)
	random := rand.New(rand.NewPCG(7, 7))
	kinds := []string{"pages/*.log", "pages/MANIFEST-*", "pages/*.sst", "pages/OPTIONS-*", "pages/checksums", "waiting.jsonl", "collyrobots-frontier"}
	refused := make(map[string]int)
	for i := range 3 * len(kinds) {
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		kind := kinds[i%len(kinds)]
		what := flip(t, copied, kind, random)
		log, messages := countErrors()
		f, err := frontier.Open(copied, frontier.Logger(log), frontier.Window(1<<20))
		if err != nil {
			refused[kind]++
			if !errors.Is(err, frontier.ErrDamaged) && !errors.Is(err, frontier.ErrVersion) {
				t.Errorf("%s: Open: %v, want ErrDamaged or ErrVersion", what, err)
			}
			continue
		}
		lost := state.lost(t, f)
		if err := f.Close(); err != nil {
			t.Errorf("%s: Close: %v", what, err)
		}
		if lost > 0 && messages.Load() == 0 {
			t.Errorf("%s: %d pages were lost without a word", what, lost)
		}
		if most := (len(state.waiting) + len(state.done)) / 2; lost > most {
			t.Errorf("%s: %d pages were lost, want at most %d", what, lost, most)
		}
	}
	for _, harmless := range kinds[3:6] {
		if refused[harmless] > 0 {
			t.Errorf("Open refused the folder because of %s, which has no pages", harmless)
		}
	}
}

// flip flips a bit of a file whose name matches a pattern, and says which one.
func flip(t *testing.T, dir, pattern string, random *rand.Rand) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		return "no file " + pattern
	}
	name := files[random.IntN(len(files))]
	if strings.HasSuffix(name, ".log") {
		name = files[len(files)-1] // the others are kept to be used again
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) == 0 {
		return "empty file " + name
	}
	at := random.IntN(len(content))
	bit := random.IntN(8)
	content[at] ^= 1 << bit
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("bit %d of byte %d of %s", bit, at, filepath.Base(name))
}

// TestDamageIsExplained reads the error of Open for a damaged log of changes, and does what it says.
func TestDamageIsExplained(t *testing.T) {
	dir, state := smallCrawl(t)
	logs, err := filepath.Glob(filepath.Join(dir, "pages", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	newest := logs[len(logs)-1]
	flipAt(t, newest, 10)
	before := contents(t, dir)
	_, err = frontier.Open(dir, frontier.Logger(quiet))
	want := "frontier: " + dir + ": damaged, or not a frontier: " + filepath.Join("pages", filepath.Base(newest)) + " is not as it was written; " +
		"restore the folder from a copy, or remove it to begin again, or remove " + filepath.Join("pages", "checksums") + " to continue with what can be read"
	if !errors.Is(err, frontier.ErrDamaged) || err.Error() != want {
		t.Fatalf("Open: %v\nwant %s", err, want)
	}
	if after := contents(t, dir); !maps.Equal(after, before) {
		t.Error("Open has changed a file")
	}
	if err := os.Remove(filepath.Join(dir, "pages", "checksums")); err != nil {
		t.Fatal(err)
	}
	f, err := frontier.Open(dir, frontier.Logger(quiet))
	if errors.Is(err, frontier.ErrDamaged) {
		return // the engine also sees the damage, which depends on how the log was divided into writes
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if lost := state.lost(t, f); lost != 300 {
		t.Errorf("%d pages were lost, want 300", lost)
	}
}

// TestMissingLogIsNoticed removes the newest log of changes of a folder that was closed in order.
func TestMissingLogIsNoticed(t *testing.T) {
	dir, _ := smallCrawl(t)
	logs, err := filepath.Glob(filepath.Join(dir, "pages", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	if err := os.Remove(logs[len(logs)-1]); err != nil {
		t.Fatal(err)
	}
	rejects(t, dir, frontier.ErrDamaged)
}

// TestDamageAfterAKill damages the log of a process that was killed, where it had reached the disk.
// Without damage, no moment of the kill counts as damage.
func TestDamageAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir)
		for i := range 30 {
			add(t, f, fmt.Sprintf("http://a.test/%d", i))
			time.Sleep(137 * time.Millisecond)
			if s := open(t, killed(t, dir)).Stats(); s.Waiting != i+1 {
				t.Fatalf("after %d pages, %+v", i+1, s)
			}
		}
		left := killed(t, dir)
		logs, err := filepath.Glob(filepath.Join(left, "pages", "*.log"))
		if err != nil || len(logs) == 0 {
			t.Fatal(logs, err)
		}
		flipAt(t, logs[len(logs)-1], 500)
		rejects(t, left, frontier.ErrDamaged)
	})
}

// contents returns the contents of the files in a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// flipAt flips a bit of a byte of a file.
func flipAt(t *testing.T, name string, at int) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	content[at] ^= 4
	write(t, name, string(content))
}

// handedOut takes all pages and returns how often each URL came.
func handedOut(t *testing.T, f *frontier.Frontier) map[string]int {
	t.Helper()
	urls := make(map[string]int)
	for {
		p, err := f.Next(t.Context())
		if p == nil {
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
			return urls
		}
		urls[p.URL]++
		f.Pace(p.Host, time.Now(), false)
		finish(t, f, p, urlstore.Done)
	}
}
