package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const rules = `User-agent: *
Crawl-delay: 2.5
Disallow: /*.pdf$
Allow: /pub

User-agent: NamedBot/1
Disallow: /x
`

// site serves a robots.txt and counts the requests.
func site(t *testing.T, status int, body string) (url string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.Path != "/robots.txt" {
			t.Errorf("request for %s", r.URL)
		}
		if ua := r.UserAgent(); !strings.HasPrefix(ua, "ExampleBot/1.0 (+http") {
			t.Errorf("request with the User-Agent %q", ua)
		}
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func ask(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

// rows returns the rows of the tables in an output by dialect, with single spaces between the
// cells.
func rows(out string) map[string][]string {
	rows := make(map[string][]string)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); strings.HasPrefix(line, "  ") && f[0] != "dialect" && f[0] != "line" {
			rows[f[0]] = append(rows[f[0]], strings.Join(f[1:], " "))
		}
	}
	return rows
}

// expect checks the rows of the only table in an output.
func expect(t *testing.T, out string, want map[string]string) {
	t.Helper()
	got := rows(out)
	for name, row := range want {
		if len(got[name]) != 1 || got[name][0] != row {
			t.Errorf("%s: %q, want %q", name, got[name], row)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d dialects, want %d:\n%s", len(got), len(want), out)
	}
}

// TestRobotsIsFetchedOnce checks the decisions about a URL, and that robots.txt is fetched once for
// all dialects.
func TestRobotsIsFetchedOnce(t *testing.T) {
	url, requests := site(t, 200, rules)
	status, out, _ := ask(t, url+"/a.pdf")
	if status != 1 || !strings.Contains(out, url+"/a.pdf is denied for ExampleBot.\nrobots.txt: "+url+"/robots.txt, status 200\n") {
		t.Errorf("status %d\n%s", status, out)
	}
	expect(t, out, map[string]string{
		"rfc9309":      "denied * 2.5s line 3: Disallow: /*.pdf$",
		"google":       "denied * - line 3: Disallow: /*.pdf$",
		"coccoc":       "denied * 3s line 3: Disallow: /*.pdf$",
		"original1994": "allowed * - no rule matches",
		"temoto":       "denied * - a rule; temoto does not return which one",
		"yandex":       "denied * - line 3: Disallow: /*.pdf$",
		"seznam":       "denied * - line 3: Disallow: /*.pdf$",
	})
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want one for all dialects", n)
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, _ := ask(t, "-robots", file, "-dialect=google", "-token=NamedBot", "http://any.test/x?y#z")
	if status != 1 || !strings.Contains(out, "http://any.test/x?y#z is denied for NamedBot.\nrobots.txt: "+file+"\n") {
		t.Errorf("status %d\n%s", status, out)
	}
	expect(t, out, map[string]string{
		"google":       "denied NamedBot/1 - line 7: Disallow: /x",
		"rfc9309":      "allowed * 2.5s no rule matches",
		"coccoc":       "allowed * 3s no rule matches",
		"original1994": "denied NamedBot/1 - line 7: Disallow: /x",
		"temoto":       "allowed * - no rule matches",
		"yandex":       "denied NamedBot/1 - line 7: Disallow: /x",
		"seznam":       "denied NamedBot/1 - line 7: Disallow: /x",
	})
	if !strings.HasPrefix(strings.Split(out, "\n")[4], "  google ") {
		t.Errorf("the selected dialect is not the first:\n%s", out)
	}

	status, out, _ = ask(t, "-robots", file, "/pub/a.pdf?x", "/%zz.pdf")
	want := []string{"allowed * 2.5s line 4: Allow: /pub", "denied * 2.5s line 3: Disallow: /*.pdf$"}
	if got := rows(out)["rfc9309"]; status != 1 || !slices.Equal(got, want) {
		t.Errorf("status %d, got %q, want %q", status, got, want)
	}
}

// TestFilePercent checks URLs with a percent sign that begins no escape. Colly sends it as %25.
func TestFilePercent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nDisallow: /5%off\nDisallow: /6%25off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/5%off", "/5%25off", "/6%off", "/6%25off"} {
		status, out, _ := ask(t, "-robots", file, path)
		if got := rows(out)["rfc9309"]; status != 1 || len(got) != 1 || !strings.HasPrefix(got[0], "denied") {
			t.Errorf("%s: status %d\n%s", path, status, out)
		}
	}
}

func TestFileIssues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nDissallow: /a\nNoindex: /b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, _ := ask(t, "-robots", file, "/a")
	if status != 0 || !regexp.MustCompile(`Issues in .*robots.txt \(rfc9309\):\n  line 2: misspelt.*\n  line 3: unknown.*Noindex`).MatchString(out) {
		t.Errorf("status %d\n%s", status, out)
	}
	status, out, _ = ask(t, "-robots", file, "-dialect=google", "/a")
	if status != 1 || !strings.Contains(out, "line 2: misspelt key, accepted") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestUnavailable(t *testing.T) {
	url, requests := site(t, 503, "")
	status, out, _ := ask(t, url+"/")
	if got := rows(out); status != 1 || !strings.HasPrefix(got["rfc9309"][0], "denied - - unreachable: ") || !strings.HasPrefix(got["coccoc"][0], "allowed ") {
		t.Errorf("status %d\n%s", status, out)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	url, _ = site(t, 404, "Disallow: /")
	status, out, _ = ask(t, url+"/")
	if status != 0 || rows(out)["google"][0] != "allowed - - no robots.txt" {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestNoAnswer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	status, out, _ := ask(t, "-dialect=coccoc", server.URL+"/")
	if !regexp.MustCompile(`coccoc +denied +- +- +site down: dial tcp .*refused`).MatchString(out) || status != 1 {
		t.Errorf("status %d\n%s", status, out)
	}
}

// TestHostThatDoesNotExist checks that a URL of a host that does not exist is an error, because no
// robots.txt denies it, and that the other URLs are checked.
func TestHostThatDoesNotExist(t *testing.T) {
	q, err := parse([]string{"http://missing.test/", "http://a.test/x"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\n"}})
	q.transport = web.Transport()
	r, err := q.ask(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "cannot check http://missing.test/: ") {
		t.Errorf("ask: %v", err)
	}
	if r == nil || len(r.Answers) != 1 || r.Answers[0].URL != "http://a.test/x" || r.Answers[0].Allowed || len(r.Answers[0].Readings) != len(dialect.All()) {
		t.Errorf("answers %+v", r)
	}
}

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   []string
		status int
		stderr string // a regular expression
	}{
		{"no URL", nil, 2, `no URL given`},
		{"unknown dialect", []string{"-dialect=bing", "http://a.test/"}, 2, `bing: unknown dialect; use one of rfc9309, google`},
		{"no token", []string{"-token=", "http://a.test/"}, 2, `-token`},
		{"bad token", []string{"-token=a/1", "http://a.test/"}, 2, `"a/1" is not a product token`},
		{"invalid URLs", []string{"example.com", "/x"}, 2, `(?s)"example.com" is not a URL of a web page.*"/x" is not a URL`},
		{"invalid path", []string{"-robots=x", "x"}, 2, `"x" is not a path`},
		{"missing file", []string{"-robots=/does/not/exist", "/x"}, 2, `/does/not/exist`},
		{"flag after URL", []string{"http://a.test/", "-token=x"}, 2, `flags must come before`},
		{"unknown flag", []string{"-fast"}, 2, `-fast`},
		{"help", []string{"-h"}, 0, `(?s)Usage: check.*-robots file`},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, stdout, stderr := ask(t, test.args...)
			if status != test.status || stdout != "" || !regexp.MustCompile(test.stderr).MatchString(stderr) {
				t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
			}
		})
	}
}

// fileOf writes a robots.txt and returns its name.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRefused checks that the output names the line because of which temoto refuses a whole file.
func TestRefused(t *testing.T) {
	refused := "User-agent: *\nDisallow: /a\ncrawldelay: 5s # slowly\nDisallow: /b?z=1&a=1\n"
	const why = "denied - - temoto refuses the file because of line 3: crawldelay: 5s # slowly"
	url, _ := site(t, 200, refused)
	for _, args := range [][]string{{"-robots", fileOf(t, refused), "/x"}, {url + "/x"}} {
		_, out, _ := ask(t, args...)
		if got := rows(out)["temoto"]; len(got) != 1 || got[0] != why {
			t.Errorf("%v: %q, want %q", args, got, why)
		}
	}
}

func TestLint(t *testing.T) {
	odd := fileOf(t, "User-agent: *\nDissallow: /a\nCrawl-delay: x\n\x1b[2Jfoo: bar\n")
	clean := fileOf(t, "User-agent: *\nDisallow: /a\n")
	oddSite, requests := site(t, 200, "User-agent: *\nNoindex: /\n")
	cleanSite, _ := site(t, 200, "User-agent: *\nDisallow: /a\n")
	gone, _ := site(t, 404, "User-agent: *\n")
	oddLines := odd + ":2: misspelt key, line ignored: Dissallow\n" +
		odd + ":3: not a number of seconds, value ignored: x\n" +
		odd + `:4: unknown key, line ignored: \x1b[2Jfoo` + "\n"
	oddSiteLines := oddSite + "/robots.txt:2: unknown key, line ignored: Noindex\n"
	missing := "check: cannot check " + gone + "/robots.txt: no robots.txt\n"
	for _, test := range []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string
	}{
		{"odd file", []string{"-robots", odd}, 1, oddLines, ""},
		{"clean file", []string{"-robots", clean}, 0, clean + ": no issues (rfc9309)\n", ""},
		{"clean under google", []string{"-dialect=google", "-robots", clean}, 0, clean + ": no issues (google)\n", ""},
		{"temoto", []string{"-dialect=temoto", "-robots", odd}, 1, odd + ":3: whole file refused, every visit fails: Crawl-delay: x\n", ""},
		{"odd site, given twice", []string{oddSite, oddSite + "/page"}, 1, oddSiteLines, ""},
		{"clean site", []string{cleanSite}, 0, cleanSite + "/robots.txt: no issues (rfc9309)\n", ""},
		{"no robots.txt", []string{gone}, 2, "", missing},
		{"one of two", []string{gone, oddSite}, 2, oddSiteLines, missing},
		{"a file and a page", []string{"-robots", clean, "/a"}, 2, "", "check: -lint checks " + clean + " and takes no URL: /a\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, stdout, stderr := ask(t, append([]string{"-lint"}, test.args...)...)
			if status != test.status || stdout != test.stdout || stderr != test.stderr {
				t.Errorf("status %d, want %d; stdout\n%swant\n%sstderr %q, want %q", status, test.status, stdout, test.stdout, stderr, test.stderr)
			}
		})
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the odd site got %d requests in two runs, want 2", n)
	}
}

func TestJSON(t *testing.T) {
	url, _ := site(t, 200, "User-agent: *\nDisallow: /a\x1b[31m\nCrawl-delay: 2.5\n")
	status, out, _ := ask(t, "-json", strings.Replace(url, "http://", "http://joe:secret@", 1)+"/a%1B[31m", url+"/b")
	var got result
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err, out)
	}
	if !strings.Contains(out, `"crawl_delay": 2.5`) {
		t.Errorf("got %s, want a crawl delay of 2.5 seconds", out)
	}
	if status != 1 || strings.ContainsAny(out, "\x1b") || strings.Contains(out, "secret") || got.Dialect != "rfc9309" || len(got.Answers) != 2 {
		t.Errorf("status %d\n%s", status, out)
	}
	want := reading{Dialect: "rfc9309", Reason: "rule", Because: "line 2: Disallow: /a\x1b[31m", Line: 2, Group: "*", Delay: term.Seconds(2500 * time.Millisecond)}
	if a := got.Answers[0]; a.Allowed || a.Status != 200 || a.Robots != url+"/robots.txt" || len(a.Readings) != len(dialect.All()) || a.Readings[0] != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	if a := got.Answers[1]; !a.Allowed || a.URL != url+"/b" {
		t.Errorf("%+v", a)
	}

	status, out, _ = ask(t, "-json", "-lint", "-robots", fileOf(t, "Foo: bar\n"))
	got = result{}
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 1 || len(got.Issues) != 1 || got.Issues[0].Line != 1 {
		t.Errorf("status %d, %v\n%s", status, err, out)
	}
}

// TestControlCharacters checks that control characters from sites and from the command line are not
// printed.
func TestControlCharacters(t *testing.T) {
	const evil = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\x7f"
	url, _ := site(t, 200, "User-agent: *"+evil+"\nUser-agent: *\nDisallow: /"+evil+"\nDisallow: /a\nx"+evil+": y\n")
	file := fileOf(t, "User-agent: Example"+evil+"\nUser-agent: *\nDisallow: /"+evil+"\nx"+evil+": y\nDisallow: /a\n")
	for _, args := range [][]string{
		{url + "/a"}, {"-lint", url}, {"-json", url + "/a"}, {"-robots", file, "/" + evil}, {"-lint", "-robots", file}, {"-json", "-lint", "-robots", file},
		{evil}, {"-robots", "/" + evil, "/a"}, {"-dialect", evil, "/a"}, {"-token", evil, url}, {"-" + evil}, {"http://" + evil}, {"-robots", file, "-json", "/" + evil},
	} {
		_, stdout, stderr := ask(t, args...)
		if strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q %q", args, stdout, stderr)
		}
		if stdout+stderr == "" {
			t.Errorf("%q: no output", args)
		}
	}
}

// TestOneMessage checks that each mistake on the command line is reported on one line.
func TestOneMessage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-fast"}, {"-dialect=bing", "nothing"}, {"-token="}, {"http://a.test/", "-token", "x"}, {"http://joe:secret@a.test:x/"}, {"-token=a/1", "http://a.test/"},
		{"-lint"}, {"-robots", "/does/not/exist", "/x"}, {"-lint", "-robots", "/does/not/exist"}, {"http://a\nb/"}, {"-json=maybe"},
	} {
		status, stdout, stderr := ask(t, args...)
		if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || strings.Count(stderr, "check: ") != 1 || strings.Contains(stderr, "secret") {
			t.Errorf("%q: status %d, %q", args, status, stderr)
		}
	}
}

// TestCannotWrite checks that the program fails if its output cannot be written.
func TestCannotWrite(t *testing.T) {
	for _, args := range [][]string{{"-robots"}, {"-json", "-robots"}} {
		var stderr bytes.Buffer
		if status := run(t.Context(), append(args, fileOf(t, ""), "/x"), full{}, &stderr); status != 2 || stderr.String() != "check: disk full\n" {
			t.Errorf("%v: status %d, %q", args, status, stderr.String())
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	if status := run(ctx, []string{server.URL + "/"}, &stdout, &stderr); status != 2 || stdout.String() != "" || stderr.String() != "check: interrupted\n" {
		t.Errorf("status %d, %q, %q", status, stdout.String(), stderr.String())
	}
}

// TestPassword checks that a password in a URL is not printed.
func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nDisallow: /x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base, _ := site(t, 200, "User-agent: *\nDisallow: /x\n")
	base = strings.Replace(base, "http://", "http://joe:secret@", 1)
	for _, args := range [][]string{{"-robots", file, "http://joe:secret@a.test/x"}, {base + "/x"}} {
		if status, stdout, stderr := ask(t, args...); status != 1 || strings.Contains(stdout+stderr, "secret") || !strings.Contains(stdout, "joe:xxxxx@") {
			t.Errorf("%v: status %d\n%s%s", args, status, stdout, stderr)
		}
	}
}
