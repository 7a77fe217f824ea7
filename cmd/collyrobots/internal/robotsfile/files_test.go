package robotsfile_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/robotsfile"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestFiles checks that Files keeps the text of robots.txt files, also after redirects, and of
// nothing else.
func TestFiles(t *testing.T) {
	long := strings.Repeat("# a comment\n", dialect.SizeLimit/10)
	web := robotstest.New(t, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: a\n", "/": "a page", "/robots.txt?x": "another"},
		"b.test": {"/robots.txt": robotstest.Redirect("https://c.test/robots?b"), "/1": robotstest.Redirect("/2")},
		"c.test": {"/robots.txt": robotstest.Redirect("/"), "/robots?b": "User-agent: b\n", "/": robotstest.Redirect("/loop"), "/loop": 404},
		"d.test": {"/robots.txt": long},
	})
	files := robotsfile.New(web.Transport())
	client := http.Client{Transport: files}
	for _, u := range []string{"http://a.test/robots.txt", "http://a.test/robots.txt?x", "http://a.test/", "http://b.test/robots.txt", "http://b.test/1",
		"https://c.test/robots.txt", "http://d.test/robots.txt", "http://missing.test/robots.txt"} {
		if resp, err := client.Get(u); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	for robots, want := range map[string]string{
		"http://a.test/robots.txt": "User-agent: a\n", "http://b.test/robots.txt": "User-agent: b\n", "http://d.test/robots.txt": long[:dialect.SizeLimit+1],
	} {
		if got, ok := files.Text(robots); !ok || string(got) != want {
			t.Errorf("%s: %v, %.40q, want %.40q", robots, ok, got, want)
		}
	}
	for _, robots := range []string{"https://a.test/robots.txt", "https://c.test/robots.txt", "http://c.test/robots.txt", "http://a.test/", "http://missing.test/robots.txt"} {
		if got, ok := files.Text(robots); ok {
			t.Errorf("%s: %q", robots, got)
		}
	}
}
