package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestMain builds the program with http instead of https, because the sites of the tests have no
// certificates, and with a short delay.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "resume")
	if err != nil {
		panic(err)
	}
	source := strings.NewReplacer("https://example.com/\"", "http://example.com/\"", "time.Second", "5*time.Millisecond").Replace(read("main.go"))
	here, _ := filepath.Abs("main.go")
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{here: filepath.Join(dir, "main.go")}})
	os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600)
	os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	os.Setenv("GOFLAGS", "-overlay="+filepath.Join(dir, "overlay.json"))
	defer os.RemoveAll(dir)
	tooltest.Main(m)
}

func read(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestExisting checks that the program is that of examples/existing with the lines that are marked
// with "new": the import, the call of Open with its error and Close, and the option.
func TestExisting(t *testing.T) {
	code := func(name string) (lines []string) {
		_, text, _ := strings.Cut(read(name), "\npackage main\n")
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, " // new")
			lines = append(lines, strings.TrimSpace(line))
		}
		return lines
	}
	added := []string{
		`"github.com/collyrobots/collyrobots/frontier"`,
		`f, err := frontier.Open("crawl-state")`, `if err != nil {`, `log.Fatal(err)`, `}`, `defer f.Close()`,
		`collyrobots.Frontier(f),`,
	}
	got := code("main.go")
	for _, line := range added {
		i := slices.Index(got, line)
		if i < 0 {
			t.Fatalf("the program has no line %s", line)
		}
		got = slices.Delete(got, i, i+1)
	}
	want := code("../../existing/main.go")
	slices.Sort(got) // the deleted lines may be equal to others
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the other lines differ from examples/existing:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestKill kills the program again and again until a run ends by itself. All pages must then have
// been requested, and only the pages that were under way may have been requested twice.
func TestKill(t *testing.T) {
	const pages = 60
	const perRun = 25
	running := make(chan *os.Process, 1)
	var requests atomic.Int32
	site := robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /7\n", "/": robotstest.Page("/0")}
	for i := range pages {
		site[fmt.Sprint("/", i)] = func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1)%perRun == 0 {
				(<-running).Kill()
				<-r.Context().Done()
			}
			fmt.Fprintf(w, `<a href="/%d">x</a> <a href="/%d">y</a> <a href="/">z</a>`, 2*i+1, 2*i+2)
		}
	}
	web := tooltest.New(t, robotstest.Sites{"example.com": site})
	dir := t.TempDir()
	kills := 0
	for {
		cmd := web.Command(t)
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-running: // the run before was not killed
		default:
		}
		running <- cmd.Process
		if cmd.Wait() == nil {
			break
		}
		kills++
		if kills > pages {
			t.Fatal("the crawl does not end")
		}
	}
	counts := make(map[string]int)
	for _, r := range web.Log("example.com") {
		counts[r.URI]++
	}
	want := reachable(pages)
	for _, page := range want {
		switch n := counts[page]; {
		case n == 0:
			t.Errorf("%s was not requested", page)
		case n > 1+kills:
			t.Errorf("%s was requested %d times, with %d kills", page, n, kills)
		}
		delete(counts, page)
	}
	delete(counts, "/robots.txt")
	for page := range counts {
		if strings.HasPrefix(page, "/7") {
			t.Errorf("%s was requested, which robots.txt denies", page)
		}
	}
	if kills == 0 {
		t.Error("no run was killed")
	}
	t.Logf("%d kills, %d pages, %d requests for pages", kills, len(want), requests.Load())
}

// reachable returns the pages that robots.txt allows and that allowed pages lead to.
func reachable(pages int) (paths []string) {
	var visit func(i int)
	visit = func(i int) {
		path := fmt.Sprint("/", i)
		if i >= pages || strings.HasPrefix(path, "/7") {
			return
		}
		paths = append(paths, path)
		visit(2*i + 1)
		visit(2*i + 2)
	}
	visit(0)
	return append(paths, "/")
}
