package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const rules = `User-agent: *
Crawl-delay: 2.5
Disallow: /*.pdf$
Allow: /pub

User-agent: NamedBot/1
Disallow: /x
`

// site serves robots.txt and counts how often it is asked for anything.
func site(t *testing.T, status int, body string) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/robots.txt" {
			t.Errorf("asked for %s", r.URL)
		}
		if ua := r.UserAgent(); !strings.HasPrefix(ua, "ExampleBot/1.0 (+http") {
			t.Errorf("asked as %q", ua)
		}
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func ask(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

// rows returns the lines of the tables in an output, by dialect, blanks made single.
func rows(out string) map[string][]string {
	rows := make(map[string][]string)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); strings.HasPrefix(line, "  ") && f[0] != "dialect" && f[0] != "line" {
			rows[f[0]] = append(rows[f[0]], strings.Join(f[1:], " "))
		}
	}
	return rows
}

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

func TestWebAsksOnce(t *testing.T) {
	url, asked := site(t, 200, rules)
	status, out, _ := ask(t, url+"/a.pdf")
	if status != 1 || !strings.Contains(out, url+"/a.pdf is denied to ExampleBot.\nrobots.txt: "+url+"/robots.txt, status 200\n") {
		t.Errorf("status %d\n%s", status, out)
	}
	expect(t, out, map[string]string{
		"rfc9309":      "denied * 2.5s line 3: Disallow: /*.pdf$",
		"google":       "denied * - line 3: Disallow: /*.pdf$",
		"coccoc":       "denied * 3s line 3: Disallow: /*.pdf$",
		"original1994": "allowed * - no rule matches",
		"temoto":       "denied * - some rule, temoto does not say which",
	})
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once for five dialects", n)
	}
}

func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, _ := ask(t, "-robots", file, "-dialect=google", "-token=NamedBot", "http://any.test/x?y#z")
	if status != 1 || !strings.Contains(out, "http://any.test/x?y#z is denied to NamedBot.\nrobots.txt: "+file+"\n") {
		t.Errorf("status %d\n%s", status, out)
	}
	expect(t, out, map[string]string{
		"google":       "denied NamedBot/1 - line 7: Disallow: /x",
		"rfc9309":      "allowed * 2.5s no rule matches",
		"coccoc":       "allowed * 3s no rule matches",
		"original1994": "denied NamedBot/1 - line 7: Disallow: /x",
		"temoto":       "allowed * - no rule matches",
	})
	if !strings.HasPrefix(strings.Split(out, "\n")[4], "  google ") {
		t.Errorf("the dialect asked for is not the first:\n%s", out)
	}

	status, out, _ = ask(t, "-robots", file, "/pub/a.pdf?x", "/%zz.pdf")
	if got := rows(out)["rfc9309"]; status != 1 || len(got) != 2 || got[0] != "allowed * 2.5s line 4: Allow: /pub" || got[1] != "denied * 2.5s line 3: Disallow: /*.pdf$" {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestFileIssues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte("User-agent: *\nDissallow: /a\nNoindex: /b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, _ := ask(t, "-robots", file, "/a")
	if status != 0 || !regexp.MustCompile(`, as rfc9309 reads it:\n  line 2: misspelt.*\n  line 3: unknown.*Noindex`).MatchString(out) {
		t.Errorf("status %d\n%s", status, out)
	}
	if status, out, _ = ask(t, "-robots", file, "-dialect=google", "/a"); status != 1 || !strings.Contains(out, "line 2: misspelt key, accepted") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestUnavailable(t *testing.T) {
	url, asked := site(t, 503, "")
	status, out, _ := ask(t, url+"/")
	if got := rows(out); status != 1 || !strings.HasPrefix(got["rfc9309"][0], "denied - - unreachable: ") || !strings.HasPrefix(got["coccoc"][0], "allowed ") {
		t.Errorf("status %d\n%s", status, out)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	url, _ = site(t, 404, "Disallow: /")
	if status, out, _ = ask(t, url+"/"); status != 0 || rows(out)["google"][0] != "allowed - - no robots.txt" {
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

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   []string
		status int
		stderr string // a regular expression
	}{
		{"no URL", nil, 2, `which URL\?`},
		{"unknown dialect", []string{"-dialect=bing", "http://a.test/"}, 2, `bing: unknown; there are rfc9309, google`},
		{"no token", []string{"-token=", "http://a.test/"}, 2, `-token`},
		{"bad token", []string{"-token=a/1", "http://a.test/"}, 2, `"a/1" is not a product token`},
		{"no URLs", []string{"example.com", "/x"}, 2, `(?s)"example.com" is no URL of a web page.*"/x" is no URL`},
		{"no path", []string{"-robots=x", "x"}, 2, `"x" is neither a path`},
		{"no file", []string{"-robots=/does/not/exist", "/x"}, 2, `/does/not/exist`},
		{"flag behind", []string{"http://a.test/", "-token=x"}, 2, `flags come before`},
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

// A password in a URL is not printed.
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
