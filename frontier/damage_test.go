package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// crawled returns a folder with 20,000 pages of 50 hosts, and the URLs of those that are not done.
// 5,000 pages are done. Most records are in tables, and some are only in the log of changes.
func crawled(t *testing.T) (dir string, urls map[string]bool) {
	t.Helper()
	const pages, ended = 20_000, 5000
	dir = t.TempDir()
	f := open(t, dir)
	urls = make(map[string]bool)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range pages {
		request := make([]byte, 800)
		for j := range request {
			request[j] = byte(random.Uint32())
		}
		p := &urlstore.Page{URL: fmt.Sprintf("http://host%d.test/%d", i%50, i), Request: request}
		if added, err := f.Add(p); !added || err != nil {
			t.Fatal(added, err)
		}
		urls[p.URL] = true
	}
	for range ended {
		p, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Pace(p.Host, time.Now(), false)
		finish(t, f, p, urlstore.Done)
		delete(urls, p.URL)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, urls
}

// TestDamage changes, shortens and removes files at random. Open must refuse the folder, or find the
// pages in the other files. It must never find other pages or wait forever.
func TestDamage(t *testing.T) {
	if raceEnabled {
		t.Skip("TestDamageIsNoticed does the same with fewer pages")
	}
	dir, urls := crawled(t)
	rounds := int(numberIn(t, "COLLYROBOTS_DAMAGE", 6))
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		what := harm(t, copied, random)
		f, err := frontier.Open(copied, frontier.Logger(quiet), frontier.Window(1<<20))
		if err != nil {
			t.Logf("%d: %s: %v", seed, what, err)
			if !errors.Is(err, frontier.ErrDamaged) {
				t.Errorf("%d: %s: %v, want ErrDamaged", seed, what, err)
			}
			continue
		}
		found := collect(t, f, urls)
		t.Logf("%d: %s: %d of %d pages", seed, what, found, len(urls))
		if found < len(urls)/4 && strings.Contains(what, "changed") {
			t.Errorf("%d: %s: only %d of %d pages were found", seed, what, found, len(urls))
		}
		if err := f.Close(); err != nil {
			t.Errorf("%d: %s: %v", seed, what, err)
		}
		if err := os.RemoveAll(copied); err != nil {
			t.Error(err)
		}
	}
}

// harm damages a random file, and says how.
func harm(t *testing.T, dir string, random *rand.Rand) string {
	t.Helper()
	kinds := []string{"*.sst", "*.sst", "*.log", "*.log", "MANIFEST-*", "*"}
	files, err := filepath.Glob(filepath.Join(dir, "pages", kinds[random.IntN(len(kinds))]))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	name := files[random.IntN(len(files))]
	if strings.HasSuffix(name, ".log") {
		name = files[len(files)-1] // the others are kept to be used again
	}
	base := filepath.Base(name)
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	switch kind := random.IntN(6); {
	case kind == 0:
		err = os.Remove(name)
		base += " removed"
	case kind == 1 && len(content) > 0:
		err = os.Truncate(name, random.Int64N(int64(len(content))))
		base += " shortened"
	case len(content) > 0:
		at := random.IntN(len(content))
		for i := range content[at:min(at+1+random.IntN(5000), len(content))] {
			content[at+i] = byte(random.Uint32())
		}
		err = os.WriteFile(name, content, 0o600)
		base += " changed"
	}
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// collect takes all pages and returns their number. They must be among those that were added.
func collect(t *testing.T, f *frontier.Frontier, urls map[string]bool) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a busy machine needs more than one
	defer cancel()
	found := 0
	for {
		p, err := f.Next(ctx)
		if p == nil {
			if ctx.Err() != nil {
				t.Errorf("Next: %v, %+v", err, f.Stats())
			}
			return found
		}
		if urls[p.URL] {
			found++
		} else if !strings.HasPrefix(p.URL, "http://host") {
			t.Fatalf("%s was not added", p.URL)
		}
		f.Pace(p.Host, time.Now(), false)
		finish(t, f, p, urlstore.Done)
	}
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
