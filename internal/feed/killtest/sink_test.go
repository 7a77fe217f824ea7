package killtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/robotstest"
)

// mostSunk is the largest number of pages that a Sink gets again after a crash, according to the
// doc comment of Feed.Resume. One more page may be in flight for each site.
const mostSunk = 10_000 + 8

// TestKilledSink kills a spider with a fast Sink several times, each time in the Sink, and lets the
// last one run to its end. The Sink must get every page, and each kill may repeat at most mostSunk
// pages. The test has more pages than that, so that it fails if nothing is recorded.
func TestKilledSink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SIGKILL is not available on this system")
	}
	const files, perFile, kills = 2, 40_000, 4
	web := httptest.NewServer(bigSite(files, perFile))
	defer web.Close()
	folder := t.TempDir()
	s := spider{
		HTTP:    web.Listener.Addr().String(),
		Seeds:   []string{"http://big.test/"},
		Store:   filepath.Join(folder, "store"),
		Results: filepath.Join(folder, "results"),
		Way:     "list",
	}
	again := 0
	before := make(map[string]bool)
	for ; s.Life <= kills; s.Life++ {
		s.KilledAt = 0
		if s.Life < kills {
			s.KilledAt = 10_500 + rand.IntN(6_000)
		}
		s.MaxURLs = 10 * files * perFile
		s.live(t)
		got := s.sunk(t)
		again = len(got)
		clear(before)
		for _, loc := range got {
			before[loc] = true
		}
		again -= len(before)
		t.Logf("life %d: the Sink has got %d pages, %d of them again", s.Life, len(got), again)
		if again > min(s.Life, kills)*mostSunk {
			t.Errorf("the Sink got %d pages again after %d kills", again, s.Life)
		}
	}
	if len(before) != files*perFile {
		t.Errorf("the Sink got %d pages, want %d", len(before), files*perFile)
	}
}

// live runs the spider until it ends or kills itself.
func (s *spider) live(t *testing.T) {
	t.Helper()
	job, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), spiderVariable+"="+string(job))
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && !exit.Exited()
	if killed != (s.KilledAt > 0) || err != nil && !killed {
		t.Fatalf("life %d: %v\n%s", s.Life, err, output)
	}
}

// sunk returns the pages that the Sink has got so far.
func (s *spider) sunk(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(s.Results)
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for loc := range strings.Lines(string(text)) {
		if strings.Contains(loc, "/page") {
			pages = append(pages, strings.TrimSpace(loc))
		}
	}
	return pages
}

// bigSite serves a site with large sitemaps.
func bigSite(files, perFile int) http.Handler {
	mux := http.NewServeMux()
	robots := "User-agent: *\nDisallow: /private\n"
	for i := range files {
		name := fmt.Sprintf("/map%d.xml", i)
		robots += "Sitemap: http://big.test" + name + "\n"
		var locs []string
		for n := range perFile {
			locs = append(locs, fmt.Sprintf("http://big.test/page%d/%d", i, n))
		}
		text := robotstest.Sitemap(locs...)
		mux.HandleFunc("GET "+name, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	mux.HandleFunc("GET /robots.txt", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, robots) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "seed") })
	return mux
}
