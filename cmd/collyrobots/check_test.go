package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

const rules = `User-agent: *
Crawl-delay: 2.5
Disallow: /*.pdf$
Allow: /pub
Disallow: /cart

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

// fileOf writes a text to a file and returns its name.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// rows returns the rows of the table in an output by dialect, with single spaces between the cells.
func rows(out string) map[string]string {
	rows := make(map[string]string)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); strings.HasPrefix(line, "  ") && f[0] != "dialect" {
			rows[f[0]] = strings.Join(f[1:], " ")
		}
	}
	return rows
}

func expectRows(t *testing.T, out string, want map[string]string) {
	t.Helper()
	got := rows(out)
	for name, row := range want {
		if got[name] != row {
			t.Errorf("%s: %q, want %q", name, got[name], row)
		}
	}
	if len(got) != len(dialect.All()) {
		t.Errorf("%d dialects, want all:\n%s", len(got), out)
	}
}

// TestCheck checks the decisions about a URL, and that robots.txt is fetched once for all dialects.
func TestCheck(t *testing.T) {
	url, requests := site(t, 200, rules)
	status, out, errs := call(t, "", "check", url+"/a.pdf")
	if status != cli.Negative || errs != "" || !strings.HasPrefix(out, url+"/a.pdf: denied, line 3: Disallow: /*.pdf$, crawl delay 2.5s; the dialects do not agree:\n") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	expectRows(t, out, map[string]string{
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

// TestCheckAgrees checks that the output is one line if all dialects agree.
func TestCheckAgrees(t *testing.T) {
	url, _ := site(t, 200, rules)
	for _, test := range []struct {
		args   []string
		status int
		out    string
	}{
		{[]string{url + "/cart"}, 1, url + "/cart: denied, line 5: Disallow: /cart, crawl delay 2.5s\n"},
		{[]string{url + "/tea"}, 0, url + "/tea: allowed, no rule matches, crawl delay 2.5s\n"},
		{[]string{url + "/tea", url + "/cart"}, 1, url + "/tea: allowed, no rule matches, crawl delay 2.5s\n" +
			url + "/cart: denied, line 5: Disallow: /cart, crawl delay 2.5s\n2 URLs: 1 allowed, 1 denied, 0 not answered\n"},
	} {
		status, out, errs := call(t, "", append([]string{"check"}, test.args...)...)
		if status != test.status || out != test.out || errs != "" {
			t.Errorf("%v: status %d\n%s%swant %d\n%s", test.args, status, out, errs, test.status, test.out)
		}
	}
	_, out, _ := call(t, "", "check", "-all", url+"/cart")
	if len(rows(out)) != len(dialect.All()) {
		t.Errorf("-all prints\n%s", out)
	}
}

func TestCheckFile(t *testing.T) {
	file := fileOf(t, rules+"Content-Usage: train-ai=n\n")
	status, out, _ := call(t, "", "check", "-robots", file, "-dialect=google", "-token=NamedBot", "http://any.test/x?y#z")
	if status != 1 {
		t.Errorf("status %d\n%s", status, out)
	}
	expectRows(t, out, map[string]string{
		"google":       "denied NamedBot/1 - line 8: Disallow: /x",
		"rfc9309":      "allowed * 2.5s no rule matches",
		"coccoc":       "allowed * 3s no rule matches",
		"original1994": "denied NamedBot/1 - line 8: Disallow: /x",
		"temoto":       "allowed * - no rule matches",
		"yandex":       "denied NamedBot/1 - line 8: Disallow: /x",
		"seznam":       "denied NamedBot/1 - line 8: Disallow: /x",
	})
	if !strings.HasPrefix(strings.Split(out, "\n")[2], "  google ") {
		t.Errorf("the selected dialect is not the first:\n%s", out)
	}
}

// TestCheckFileWarns checks the warnings about files that are no robots.txt, and that a large file is not
// read to its end.
func TestCheckFileWarns(t *testing.T) {
	for text, want := range map[string]string{
		"User-agent: *\nDisallow: /x\n":                 "",
		"Disallow: /\x00\n\x00":                         "line 1: the line has a NUL;",
		"<!doctype html><html>":                         "line 1: the file is an HTML page, not a robots.txt;",
		strings.Repeat("a", 5*dialect.SizeLimit):        "line 1: file is larger than 500 KiB",
		"U\x00s\x00e\x00r\x00-\x00a\x00g\x00e\x00n\x00": "line 1: the line has a NUL;",
	} {
		file := fileOf(t, text)
		status, _, errs := call(t, "", "check", "-robots", file, "/a")
		if want != "" {
			want = "collyrobots check: warning: " + file + ", " + want
		}
		if status != cli.OK || !strings.HasPrefix(errs, want) || (want == "") != (errs == "") || strings.Count(errs, "\n") > 1 {
			t.Errorf("%.40q: status %d, errors %.300q, want %q", text, status, errs, want)
		}
		read, err := readFile(file, nil)
		if err != nil || len(read) != min(len(text), maxRobots) {
			t.Errorf("%.40q: %d bytes were read, %v", text, len(read), err)
		}
	}
}

// TestCheckProposesHTTP checks the error about a host with a port that does not speak TLS.
func TestCheckProposesHTTP(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	host := strings.TrimPrefix(site.URL, "http://")
	status, _, errs := call(t, "", "check", host+"/y")
	if status != cli.Failed || !strings.HasPrefix(errs, "collyrobots check: cannot ask about "+host+"/y: ") || !strings.HasSuffix(errs, "; if the host has no TLS, use http://"+host+"/y\n") {
		t.Errorf("status %d, errors %q", status, errs)
	}
}

// TestCheckUsage checks that the preferences about the use of the page are printed.
func TestCheckUsage(t *testing.T) {
	const text = "User-agent: *\nContent-Usage: train-ai=n, search=y\nContent-Signal: use=reference\nAllow: /\nLicense: https://a.test/l\n"
	url, _ := site(t, 200, text)
	for _, args := range [][]string{{url + "/a"}, {"-robots", fileOf(t, text), "/a"}} {
		status, out, _ := call(t, "", append([]string{"check"}, args...)...)
		if status != 0 || !strings.Contains(out, "\n  search: allowed, line 2\n  train-ai: disallowed, line 2\n"+
			"  use: reference\n  license: https://a.test/l, line 5\n") {
			t.Errorf("%v: status %d\n%s", args, status, out)
		}
	}
	_, out, _ := call(t, "", "check", "-json", url+"/a")
	want := `"use":"reference","licenses":[{"url":"https://a.test/l","source":"robots.txt","line":5}]`
	if !strings.Contains(out, `"train-ai":{"preference":"disallowed"`) || !strings.Contains(out, want) {
		t.Error(out)
	}
}

// TestCheckPage checks that -page requests the pages that are allowed, and no others, and prints what
// they say.
func TestCheckPage(t *testing.T) {
	var pages atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "User-agent: *\nContent-Usage: search=y\nDisallow: /no\n")
	})
	mux.HandleFunc(usage.TDMRepPath, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `[{"location": "/a", "tdm-reservation": 1, "tdm-policy": "https://a.test/p"}]`)
	})
	mux.HandleFunc("/sold", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", "License")
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		pages.Add(1)
		w.Header().Set("X-Robots-Tag", "noindex")
		w.Header().Set("Content-Usage", "train-ai=n")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `<meta name="examplebot" content="nofollow">`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	status, out, errs := call(t, "", "check", "-page", server.URL+"/a", server.URL+"/no")
	want := server.URL + "/a: allowed, no rule matches\n  page: status 404\n  x-robots-tag: noindex\n  meta: nofollow\n" +
		"  search: allowed, line 2\n  ai-use: disallowed, tdmrep.json\n  train-ai: disallowed, Content-Usage\n" +
		"  tdm-policy: https://a.test/p, tdmrep.json\n" +
		server.URL + "/no: denied, line 3: Disallow: /no\n2 URLs: 1 allowed, 1 denied, 0 not answered\n"
	if status != 1 || out != want || errs != "" {
		t.Errorf("status %d\n%s%swant\n%s", status, out, errs, want)
	}
	if n := pages.Load(); n != 1 {
		t.Errorf("%d pages were requested, want 1", n)
	}
	_, out, _ = call(t, "", "check", "-page", server.URL+"/sold")
	if !strings.Contains(out, "\n  page: status 401\n  search: allowed, line 2\n  page: asks for a license\n") {
		t.Error(out)
	}
	_, out, _ = call(t, "", "check", "-page", "-json", server.URL+"/a")
	if !strings.Contains(out, `"page_status":404,"tags":[{"name":"noindex","source":"x-robots-tag"}`) {
		t.Error(out)
	}
}

// TestCheckLists checks lists of URLs from a file and from standard input, and bare hosts.
func TestCheckLists(t *testing.T) {
	url, requests := site(t, 200, rules)
	list := "# my pages\n\n" + url + "/cart\r\n  " + url + "/tea\n"
	for _, test := range []struct{ from, stdin string }{{"-", list}, {fileOf(t, list), ""}} {
		status, out, errs := call(t, test.stdin, "check", "-from", test.from, url+"/pub")
		if status != 1 || !strings.HasSuffix(out, "3 URLs: 2 allowed, 1 denied, 0 not answered\n") {
			t.Errorf("status %d\n%s%s", status, out, errs)
		}
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests in two runs, want 2", n)
	}
	for _, args := range [][]string{{"-", url + "/pub"}, {url + "/pub", "-"}} {
		status, out, errs := call(t, list, append([]string{"check"}, args...)...)
		if status != 1 || !strings.HasSuffix(out, "3 URLs: 2 allowed, 1 denied, 0 not answered\n") {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
	for _, args := range [][]string{{"-", "-"}, {"-from", "-", "-"}} {
		status, out, errs := call(t, list, append([]string{"check"}, args...)...)
		if status != cli.Failed || !strings.Contains(errs, "- is given twice") {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
}

func TestCheckUnavailable(t *testing.T) {
	url, requests := site(t, 503, "")
	status, out, _ := call(t, "", "check", url+"/")
	if got := rows(out); status != 1 || !strings.HasPrefix(got["rfc9309"], "denied - - unreachable: ") || !strings.HasPrefix(got["coccoc"], "allowed ") {
		t.Errorf("status %d\n%s", status, out)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	url, _ = site(t, 404, "Disallow: /")
	if status, out, _ := call(t, "", "check", url+"/"); status != 0 || out != url+"/: allowed, no robots.txt\n" {
		t.Errorf("status %d\n%s", status, out)
	}
}

// TestCheckWalled checks what the command says about an answer of a bot wall.
func TestCheckWalled(t *testing.T) {
	url, _ := site(t, 403, "<html><title>Just a moment...</title></html>")
	status, out, _ := call(t, "", "check", url+"/")
	want := "  robots.txt: the answer, with status 403, is a web page or a challenge of a bot wall"
	if status != 0 || !strings.Contains(out, want) {
		t.Errorf("status %d\n%s", status, out)
	}
	_, out, _ = call(t, "", "check", "-json", url+"/")
	if !strings.Contains(out, `"walled": true`) && !strings.Contains(out, `"walled":true`) {
		t.Errorf("%s", out)
	}
}

// TestCheckNoAnswer checks that a host that cannot be asked is an error, because no robots.txt
// denies its pages, and that the other hosts are asked.
func TestCheckNoAnswer(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	url, _ := site(t, 200, rules)
	status, out, errs := call(t, "", "check", closed.URL+"/", url+"/tea")
	if status != 2 || !strings.HasPrefix(errs, "collyrobots check: cannot ask about "+closed.URL+"/: ") || !strings.Contains(errs, "refused") {
		t.Errorf("status %d, %s", status, errs)
	}
	if out != url+"/tea: allowed, no rule matches, crawl delay 2.5s\n2 URLs: 1 allowed, 0 denied, 1 not answered\n" {
		t.Error(out)
	}
	status, out, errs = call(t, "", "check", "-json", closed.URL+"/")
	if status != 2 || errs != "" || !strings.Contains(out, `"error":"`) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	q := newQuestion(t, "http://missing.test/", "http://a.test/x")
	q.transport = robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\n"}}).Transport()
	answers, err := q.ask(t.Context())
	if err != nil || answers[0].Error == "" || answers[1].Allowed || len(answers[1].Readings) != len(dialect.All()) {
		t.Errorf("%v, %+v, %+v", err, answers[0], answers[1])
	}
}

// TestCheckDeadHosts checks that many hosts are asked at once.
func TestCheckDeadHosts(t *testing.T) {
	const hosts = 40
	var urls []string
	for i := range hosts {
		urls = append(urls, "http://h"+string(rune('a'+i/10))+string(rune('0'+i%10))+".test/")
	}
	q := newQuestion(t, urls...)
	var waiting atomic.Int32
	all := make(chan bool)
	q.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		if waiting.Add(1) == hosts {
			close(all)
		}
		select {
		case <-all: // each request waits until all have been sent
			return nil, &net.DNSError{Err: "no such host", Name: r.URL.Host, IsNotFound: true}
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	answers, err := q.ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if !strings.Contains(a.Error, "no such host") {
			t.Errorf("%+v", a)
		}
	}
	if n := waiting.Load(); n != hosts {
		t.Errorf("%d requests, want one for each of %d hosts", n, hosts)
	}
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newQuestion returns a question about URLs.
func newQuestion(t *testing.T, urls ...string) *question {
	t.Helper()
	q := &question{progress: term.NewDisplay(io.Discard), timeout: time.Minute}
	if err := q.set(dialect.RFC9309(), []string{"ExampleBot"}, urls); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q := newQuestion(t, "http://a.test/")
	q.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		cancel()
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	var stdout, stderr bytes.Buffer
	if status := q.run(ctx, &stdout, &stderr); status != 2 || stdout.String() != "" || stderr.String() != "collyrobots check: interrupted\n" {
		t.Errorf("status %d, %q, %q", status, stdout.String(), stderr.String())
	}
}

func TestCheckJSON(t *testing.T) {
	url, _ := site(t, 200, "User-agent: *\nDisallow: /a\x1b[31m\nCrawl-delay: 2.5\n")
	status, out, _ := call(t, "", "check", "-json", strings.Replace(url, "http://", "http://joe:secret@", 1)+"/a%1B[31m", url+"/b")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2 || !strings.Contains(out, `"crawl_delay":2.5`) {
		t.Fatalf("got %s, want two lines with a crawl delay of 2.5 seconds", out)
	}
	var got [2]answer
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &got[i]); err != nil {
			t.Fatal(err, line)
		}
	}
	if status != 1 || strings.ContainsAny(out, "\x1b") || strings.Contains(out, "secret") {
		t.Errorf("status %d\n%s", status, out)
	}
	want := reading{Dialect: "rfc9309", Reason: "rule", Because: "line 2: Disallow: /a\x1b[31m", Line: 2, Group: "*", Delay: term.Seconds(2500 * time.Millisecond)}
	if a := got[0]; a.Allowed || a.Status != 200 || a.Robots != url+"/robots.txt" || len(a.Readings) != len(dialect.All()) || a.Readings[0] != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	if a := got[1]; !a.Allowed || a.URL != url+"/b" {
		t.Errorf("%+v", a)
	}
}

// TestControlCharacters checks that control characters from sites and from the command line are not
// printed.
func TestControlCharacters(t *testing.T) {
	const evil = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\x7f"
	url, _ := site(t, 200, "User-agent: *"+evil+"\nUser-agent: *\nDisallow: /"+evil+"\nDisallow: /a\nx"+evil+": y\n")
	file := fileOf(t, "User-agent: Example"+evil+"\nUser-agent: *\nDisallow: /"+evil+"\nx"+evil+": y\nDisallow: /a\n")
	other := fileOf(t, "User-agent: Example"+evil+"\nUser-agent: *\nDisallow: /b"+evil+"\nSitemap: http://a"+evil+"\n")
	for _, args := range [][]string{
		{"check", url + "/a"}, {"lint", url}, {"check", "-json", url + "/a"}, {"check", "-robots", file, "/" + evil}, {"lint", file}, {"lint", "-json", file},
		{"check", evil}, {"check", "-robots", "/" + evil, "/a"}, {"check", "-dialect", evil, "/a"}, {"check", "-token", evil, url}, {"check", "-" + evil},
		{"check", "http://" + evil}, {"check", "-robots", file, "-json", "/" + evil}, {"lint", "-sarif", file}, {"lint", "-github", file}, {"lint", evil},
		{"lint", "-ignore", evil, file}, {"diff", file, other}, {"diff", "-json", file, other}, {"diff", file, "./" + evil},
	} {
		_, stdout, stderr := call(t, "", args...)
		if strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q: %q %q", args, stdout, stderr)
		}
		if stdout+stderr == "" {
			t.Errorf("%q: no output", args)
		}
	}
}

// TestMistakes checks that each mistake on the command line is reported on one line.
func TestMistakes(t *testing.T) {
	file := fileOf(t, "")
	for _, args := range [][]string{
		{"check"}, {"check", "-fast"}, {"check", "-dialect=bing", "nothing"}, {"check", "-token=", "a.test"}, {"check", "http://a.test/", "-token", "x"},
		{"check", "http://joe:secret@a.test:x/"}, {"check", "-token=a/1", "http://a.test/"}, {"check", "http://a\nb/"}, {"check", "-json=maybe"},
		{"check", "-robots", "/does/not/exist", "/x"}, {"check", "-from", "/does/not/exist"}, {"check", "-from", file}, {"check", "-page", "-robots", file, "/x"},
		{"lint"}, {"lint", "/does/not/exist"}, {"lint", "no-such-file.txt"}, {"lint", "-ignore", "x", file}, {"lint", "-dialect", "x", file}, {"lint", "-site", "a b", file},
		{"diff"}, {"diff", file}, {"diff", file, "/does/not/exist"}, {"diff", "-dialect", "x", file, file}, {"diff", "-urls", "-", "-", file}, {"diff", "-urls", "/does/not/exist", file, file},
	} {
		status, stdout, stderr := call(t, "", args...)
		if status != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "collyrobots "+args[0]+": ") || strings.Contains(stderr, "secret") {
			t.Errorf("%q: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

// TestCannotWrite checks that a command fails if its output cannot be written, and prints nothing if
// the reader of a pipe has gone away.
func TestCannotWrite(t *testing.T) {
	file := fileOf(t, "User-agent: *\nx: y\n")
	other := fileOf(t, "User-agent: *\nDisallow: /\n")
	for _, args := range [][]string{
		{"check", "-robots", file, "/x"}, {"check", "-json", "-robots", file, "/x"}, {"lint", file}, {"lint", "-json", file}, {"lint", "-sarif", file},
		{"lint", "-github", file}, {"diff", file, other}, {"diff", "-json", file, other},
	} {
		var stderr bytes.Buffer
		if status := run(args, strings.NewReader(""), full{}, &stderr); status != 2 || stderr.String() != "collyrobots "+args[0]+": disk full\n" {
			t.Errorf("%v: status %d, %q", args, status, stderr.String())
		}
		reader, writer := io.Pipe()
		reader.Close()
		stderr.Reset()
		if status := run(args, strings.NewReader(""), writer, &stderr); status != 2 || stderr.Len() > 0 {
			t.Errorf("%v with a closed pipe: status %d, %q", args, status, stderr.String())
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestCheckRefused checks that the output names the line that makes temoto refuse a file.
func TestCheckRefused(t *testing.T) {
	status, out, _ := call(t, "", "check", "-dialect=temoto", "-robots", fileOf(t, "User-agent: *\nCrawl-delay: 5s\n"), "/x")
	if status != 1 || !strings.Contains(out, "temoto refuses the file because of line 2") {
		t.Errorf("status %d\n%s", status, out)
	}
}
