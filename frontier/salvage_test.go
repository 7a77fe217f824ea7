package frontier_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
)

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
		finish(t, f, p, collyrobots.PageDone)
	}
}

// remove removes the files in the folder of the engine that match a pattern, except the first ones.
func remove(t *testing.T, dir, pattern string, except int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "pages", pattern))
	if err != nil || len(files) <= except {
		t.Fatal(files, err)
	}
	for _, file := range files[except:] {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSalvageWithoutList removes the list of tables. All records are in the tables and logs.
func TestSalvageWithoutList(t *testing.T) {
	dir, urls := crawled(t)
	remove(t, dir, "MANIFEST-*", 0)
	f := open(t, dir, frontier.Logger(quiet))
	if s := f.Stats(); s.Waiting != len(urls) || s.Done != 5000 || s.Hosts != 50 {
		t.Errorf("%d pages wait and %d are done, of %d hosts, want %d, 5000 and 50", s.Waiting, s.Done, s.Hosts, len(urls))
	}
	if _, err := os.Stat(filepath.Join(dir, "pages.damaged-1", "OPTIONS-000003")); err != nil {
		t.Errorf("the damaged files are not kept: %v", err)
	}
	for url, n := range handedOut(t, f) {
		if n != 1 || !urls[url] {
			t.Fatalf("%s was handed out %d times, and must be handed out: %v", url, n, urls[url])
		}
		delete(urls, url)
	}
	if len(urls) > 0 {
		t.Errorf("%d pages are lost", len(urls))
	}
}

// TestSalvageOfFewTables removes most of the tables and all logs. Pages that are lost can be added
// again.
func TestSalvageOfFewTables(t *testing.T) {
	dir, urls := crawled(t)
	remove(t, dir, "*.log", 0)
	remove(t, dir, "*.sst", 2)
	f := open(t, dir, frontier.Logger(quiet))
	left := f.Stats().Waiting
	if left == 0 || left >= len(urls) {
		t.Fatalf("%d pages wait, want some of %d", left, len(urls))
	}
	for url := range urls {
		if _, err := f.Add(&collyrobots.Page{URL: url}); err != nil {
			t.Fatal(err)
		}
	}
	got := handedOut(t, f)
	for url := range urls {
		if got[url] == 0 {
			t.Fatalf("%s was added again and not handed out", url)
		}
	}
}

// TestSalvageInterrupted opens a folder after a kill between the two steps that replace the damaged
// folder.
func TestSalvageInterrupted(t *testing.T) {
	dir, urls := crawled(t)
	pages := filepath.Join(dir, "pages")
	if err := os.Rename(pages, pages+".salvaged"); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir, frontier.Logger(quiet))
	if got := f.Stats().Waiting; got != len(urls) {
		t.Errorf("%d pages wait, want %d", got, len(urls))
	}
}
