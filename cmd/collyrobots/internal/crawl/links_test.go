package crawl

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// TestResumeLinks kills a crawl that follows links. The next run must request all pages that the
// first one has not done, also on a host that a redirect of the start page has led to.
func TestResumeLinks(t *testing.T) {
	t.Parallel()
	const pages = 30
	running := make(chan *os.Process, 1)
	var requests atomic.Int32
	site := robotstest.Site{"/robots.txt": 404}
	for i := range pages {
		site[fmt.Sprint("/", i)] = func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) == pages/2 {
				(<-running).Kill()
				<-r.Context().Done()
			}
			fmt.Fprintf(w, `<a href="/%d">x</a> <a href="/%d">y</a>`, 2*i+1, 2*i+2) // a binary tree
		}
	}
	web := tooltest.New(t, robotstest.Sites{"www.a.test": site, "a.test": {"/": robotstest.Redirect("http://www.a.test/0")}})
	args := []string{"-cache", t.TempDir(), "-delay=10ms", "-depth=0", "-sitemaps=false", "http://a.test/"}
	first := start(t, web.Command(t, args...))
	running <- first.cmd.Process
	first.end()
	status, out, progress := web.Run(t, "", append([]string{"-resume"}, args...)...)
	if status != 0 {
		t.Errorf("status %d\n%s", status, out)
	}
	wantMatches(t, "the progress", progress, `(?m)^Continuing with \d+ pages of the last run\.$`)
	repeated := 0
	seen := pagesOf(web, "www.a.test")
	for i := range pages {
		n := seen[fmt.Sprint("/", i)]
		repeated += max(n-1, 0)
		if n == 0 {
			t.Errorf("/%d was not requested", i)
		}
	}
	if repeated > 64 { // the pages that the frontier hands out at once
		t.Errorf("%d pages were requested again, want at most 64: %v", repeated, seen)
	}
}

// TestKilledAgainAndAgain kills a crawl at ten random moments and continues it each time. No page is
// lost, and each kill repeats at most the pages that the frontier hands out at once.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const pages, kills, window = 400, 10, 8 * 4
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	site := robotstest.Site{"/robots.txt": 404}
	for i := range pages {
		site[fmt.Sprint("/", i)] = robotstest.Page(fmt.Sprint("/", 2*i+1), fmt.Sprint("/", 2*i+2))
	}
	web := tooltest.New(t, robotstest.Sites{"a.test": site})
	args := []string{"-cache", t.TempDir(), "-resume", "-delay=5ms", "-depth=0", "-max=0", "-parallelism=4", "-sitemaps=false", "http://a.test/0"}
	killed := 0
	for killed < kills {
		c := web.Command(t, args...)
		var progress strings.Builder
		c.Stderr = &progress
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(100*time.Millisecond+time.Duration(random.Int64N(int64(600*time.Millisecond))), func() { c.Process.Kill() })
		err := c.Wait()
		if kill.Stop() { // the crawl has ended
			if err != nil {
				t.Fatalf("seed %d: after %d kills: %v\n%s", seed, killed, err, progress.String())
			}
			break
		}
		killed++
	}
	if status, out, _ := web.Run(t, "", args...); killed == kills && status != 0 {
		t.Errorf("seed %d: status %d\n%s", seed, status, out)
	}
	seen := pagesOf(web, "a.test")
	repeated := 0
	for i := range pages {
		n := seen[fmt.Sprint("/", i)]
		repeated += max(n-1, 0)
		if n == 0 {
			t.Errorf("seed %d: /%d was not requested", seed, i)
		}
	}
	t.Logf("seed %d: %d kills, %d pages, %d requests repeated", seed, killed, len(seen), repeated)
	if repeated > killed*window {
		t.Errorf("seed %d: %d requests repeated after %d kills, want at most %d", seed, repeated, killed, killed*window)
	}
}

// TestFailedThrice checks that a page that fails in three runs has failed for good.
func TestFailedThrice(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for run := range 3 {
		p := openCache(t, cache, true)
		if run == 0 {
			p.Add(&urlstore.Page{URL: "http://a.test/"})
		} else if p.left != 1 {
			t.Fatalf("run %d: %d pages are left, want 1", run, p.left)
		}
		page, err := p.Next(t.Context())
		if err != nil || page.Attempts != run {
			t.Fatalf("run %d: %+v, %v", run, page, err)
		}
		p.End(page, urlstore.Failed)
		p.Close()
	}
	p := openCache(t, cache, true)
	defer p.Close()
	if p.left != 0 {
		t.Errorf("%d pages are left, want 0", p.left)
	}
	if added, err := p.Add(&urlstore.Page{URL: "http://a.test/"}); !added || err != nil {
		t.Errorf("after a complete run: added %t, error %v; want a new frontier", added, err)
	}
}

func openCache(t *testing.T, cache string, resume bool) *pages {
	t.Helper()
	p, err := openPages(cache, resume, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestKilledWhileRemoving checks that a crawl can begin after a process was killed while it removed the
// frontier of the crawl before.
func TestKilledWhileRemoving(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	openCache(t, cache, true).Close()
	dir := filepath.Join(cache, "frontier")
	removeOneFile := func(path string) error { return os.RemoveAll(filepath.Join(path, "pages", "MANIFEST-000001")) }
	if err := discard(dir, removeOneFile); err != nil {
		t.Fatal(err)
	}
	openCache(t, cache, true).Close()
	if _, err := os.Stat(dir + ".old"); !os.IsNotExist(err) {
		t.Error("the old folder was kept:", err)
	}
}
