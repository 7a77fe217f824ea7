package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestMain checks for goroutines that are left behind.
func TestMain(m *testing.M) { robotstest.Main(m) }

// archived runs the program against two sites in a bubble. It returns the names of the WARC files.
func archived(t *testing.T, most int) (s *spider, files []string) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{
			"a.test": {
				"/robots.txt": "User-agent: *\nCrawl-delay: 2\nDisallow: /private\n",
				"/":           robotstest.Page("/1", "/private", "/1#part", "/moved", "http://other.test/", "/gone"),
				"/1":          robotstest.Page("/"),
				"/moved":      robotstest.Redirect("/1?from=moved"),
				"/1?from=moved": func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "image/png")
					w.Write([]byte("\x89PNG\r\n\x1a\n\r\n\r\nWARC/1.1\r\n"))
				},
			},
			"b.test": {"/robots.txt": "User-agent: *\nDisallow: /\n"},
		})
		s = &spider{most: most, options: []collyrobots.Option{collyrobots.Polite(), collyrobots.Jitter(0)}}
		transport := web.Transport()
		transport.DisableCompression = true
		err := s.run(t.Context(), dir, transport, []string{"http://a.test/", "http://b.test/"})
		if err != nil {
			t.Fatal(err)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files: %q, %v", files, err)
	}
	return s, files
}

// A seen is a record as warcio reads it.
type seen struct {
	Type, URI, Status, Content, Version string
	Digests                             int      // in the file
	Wrong                               []string // those that are not the digests of the content
	Refers                              string
	ID                                  string
}

// TestWARC reads the files of a crawl with warcio, which is an independent implementation.
func TestWARC(t *testing.T) {
	s, files := archived(t, 100)
	if s.pages != 4 || s.denied != 2 {
		t.Errorf("%d pages, %d denied", s.pages, s.denied)
	}
	var got []string
	ids := make(map[string]string)
	decisions := 0
	for _, r := range warcio(t, files) {
		line := r.Type + " " + r.URI
		if r.Type == "response" {
			line += " " + r.Status
			ids[r.ID] = r.URI
		}
		got = append(got, line)
		if r.Type == "response" && r.Digests != 2 {
			t.Errorf("%s: %d digests", line, r.Digests)
		}
		if len(r.Wrong) > 0 || r.Version != "WARC/1.1" {
			t.Errorf("%s: %s, wrong digests: %q", line, r.Version, r.Wrong)
		}
		if strings.HasPrefix(line, "response http://a.test/1?from=moved") && r.Content != "\x89PNG\r\n\x1a\n\r\n\r\nWARC/1.1\r\n" {
			t.Errorf("the content is %q", r.Content)
		}
		if r.Type != "metadata" {
			continue
		}
		decisions++
		var d describedDecision
		if err := json.Unmarshal([]byte(r.Content), &d); err != nil {
			t.Fatal(err)
		}
		if d.Decision.URL != r.URI || !strings.HasSuffix(ids[d.Robots], "/robots.txt") {
			t.Errorf("%s: decision %v, robots.txt %q", line, d.Decision, ids[d.Robots])
		}
		if isDenied := !d.Decision.Allowed; isDenied != (r.Refers == "") || !isDenied && ids[r.Refers] != r.URI {
			t.Errorf("%s: allowed %v, refers to %q", line, d.Decision.Allowed, ids[r.Refers])
		}
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{
		"warcinfo ", "response http://a.test/robots.txt 200", "request http://a.test/robots.txt", "response http://b.test/robots.txt 200",
		"response http://a.test/ 200", "response http://a.test/1 200", "response http://a.test/moved 302", "response http://a.test/1?from=moved 200",
		"response http://a.test/gone 404", "metadata http://a.test/private", "metadata http://b.test/",
	} {
		if !strings.Contains(all+"\n", want+"\n") && !(want == "warcinfo " && strings.Contains(all, want)) {
			t.Errorf("no record %q in\n%s", want, all)
		}
	}
	if decisions != 6 || strings.Contains(all, "response http://a.test/private") || strings.Contains(all, "other.test") {
		t.Errorf("%d decisions\n%s", decisions, all)
	}
}

// TestMost checks the limit of the pages.
func TestMost(t *testing.T) {
	s, _ := archived(t, 2)
	if s.pages+s.denied != 2 {
		t.Errorf("%d pages, %d denied", s.pages, s.denied)
	}
}

// TestFullDisk checks that an error of the archive ends the program.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(20, "")})
		s := &spider{most: 20}
		err := s.run(t.Context(), dir, web.Transport(), []string{"http://a.test/"})
		if err == nil || s.pages > 1 {
			t.Errorf("error %v after %d pages", err, s.pages)
		}
	})
}

// warcio returns the records of files. It skips the test if the package warcio of npm cannot be
// installed.
func warcio(t *testing.T, files []string) (records []seen) {
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/records.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "records.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err == nil && name == "node" && stderr.Len() > 0 { // it warns about malformed records
			err = errors.New(stderr.String())
		}
		return out, err
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("needs npm: apt-get install nodejs npm")
	}
	out, err := run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--cache", filepath.Join(dir, "cache"), "warcio@2.4.11")
	if err != nil {
		t.Skipf("needs the package warcio, which npm cannot install: %v\n%.500s", err, out)
	}
	for _, file := range files {
		out, err := run("node", "--no-warnings", "records.mjs", file)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			var r seen
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			r.Content = latin1(r.Content)
			records = append(records, r)
		}
	}
	return records
}

// latin1 returns the bytes of a text that has one character for each byte.
func latin1(text string) string {
	var all []byte
	for _, r := range text {
		all = append(all, byte(r))
	}
	return string(all)
}
