package crawl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

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
	if repeated > 8 { // the number of requests in flight
		t.Errorf("%d pages were requested again, want at most 8: %v", repeated, seen)
	}
}

// TestJournal checks what the next run finds in the journal of a run that has ended at any moment.
func TestJournal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "links.jsonl")
	first, err := openLinks(file, true)
	if err != nil {
		t.Fatal(err)
	}
	var pages []*urlstore.Page
	for _, path := range []string{"done", "denied", "failed", "out", "returned"} {
		p := &urlstore.Page{URL: "http://a.test/" + path, Host: "a.test", Depth: 2, Request: []byte(path)}
		if added, err := first.Add(p); !added || err != nil || !first.Take(p) {
			t.Fatalf("%s: added %t, error %v", path, added, err)
		}
		pages = append(pages, p)
	}
	for i, result := range []urlstore.Result{urlstore.Done, urlstore.Denied, urlstore.Failed} {
		if err := first.End(pages[i], result); err != nil {
			t.Fatal(err)
		}
	}
	first.End(pages[4], urlstore.Returned)
	if added, _ := first.Add(&urlstore.Page{URL: "http://a.test/done"}); added {
		t.Error("a page that is done was added again")
	}
	if s := first.Stats(); s.Out != 1 || s.Duplicates != 1 {
		t.Errorf("stats %+v, want one page out and one duplicate", s)
	}
	first.close()
	cut, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	cut.WriteString(`{"page":{"URL":"http://a.test/cut`) // a kill has cut this line
	cut.Close()

	second, err := openLinks(file, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"failed", "out", "returned"} {
		p, err := second.Next(context.Background())
		if err != nil || p.URL != "http://a.test/"+want || p.Depth != 2 || string(p.Request) != want {
			t.Fatalf("Next: %+v, %v; want %s", p, err, want)
		}
		if err := second.End(p, urlstore.Done); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := second.Next(context.Background()); err != io.EOF {
		t.Errorf("Next: %+v, %v; want io.EOF", p, err)
	}
	second.close()

	third, err := openLinks(file, true)
	if err != nil {
		t.Fatal(err)
	}
	defer third.close()
	if added, err := third.Add(&urlstore.Page{URL: "http://a.test/done"}); !added || err != nil {
		t.Errorf("after a complete run: added %t, error %v; want a new journal", added, err)
	}
}

// TestFailedThrice checks that a page that fails in three runs has ended.
func TestFailedThrice(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "links.jsonl")
	for run := range 3 {
		l, err := openLinks(file, true)
		if err != nil {
			t.Fatal(err)
		}
		if run == 0 {
			l.Add(&urlstore.Page{URL: "http://a.test/"})
		} else if l.left() != 1 {
			t.Fatalf("run %d: %d pages are left, want 1", run, l.left())
		}
		l.End(&urlstore.Page{URL: "http://a.test/", ID: 1}, urlstore.Failed)
		l.close()
	}
	l, err := openLinks(file, true)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if l.left() != 0 {
		t.Errorf("%d pages are left, want 0", l.left())
	}
}
