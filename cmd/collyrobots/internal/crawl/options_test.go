package crawl

import (
	"bufio"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/witnesstest"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// keyFile returns a file with a new key.
func keyFile(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bot.pem")
	err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOptions checks on the wire that the flags set their options: signatures, the User-Agent, the
// purpose, and the audit log. The list of sites comes from standard input.
func TestOptions(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n", "/": robotstest.Page("/1"), "/1": ""},
		"b.test": {"/robots.txt": "User-agent: *\nAllow: /\n", "/": ""},
	})
	logs := filepath.Join(t.TempDir(), "log")
	status, out, errs := web.Run(t, "# sites\nhttp://a.test/\n\nhttp://b.test/\n", "-from=-", "-delay=1ms", "-audit", logs, "-purpose=train-ai",
		"-pace-by=domain", "-adaptive=1", "-hours=00:00-23:59", "-agent=OtherBot/2.0", "-sign", keyFile(t), "-sign-agent=https://bot.test"+webbotauth.DirectoryPath)
	if status != 0 {
		t.Errorf("status %d\n%s", status, errs)
	}
	wantMatches(t, "the report", out, `\n  http://a\.test/ +its owner excludes it from -purpose\n`, `\nResponses: 1 × 200\n1 page in \d+\.\d s, 0 failed, 1 denied\n$`)
	for _, r := range web.Log("") {
		if r.Header.Get("Signature") == "" || r.Header.Get("User-Agent") != "OtherBot/2.0" {
			t.Errorf("%s%s: headers %v", r.Host, r.URI, r.Header)
		}
	}
	if report, err := audit.Verify(logs); err != nil || !report.OK() {
		t.Errorf("the audit log: %v, %+v", err, report)
	}
}

// TestWitness lets a witness cosign the log of a crawl. While the witness does not know the log, the
// crawl goes on, and says so.
func TestWitness(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/robots.txt": http.StatusNotFound, "/": ""}})
	w := witnesstest.New("witness.example/w1")
	server := httptest.NewServer(w)
	defer server.Close()
	logs := filepath.Join(t.TempDir(), "log")
	args := []string{"-delay=1ms", "-audit", logs, "-witness", server.URL, "-witness-key", w.Key(), "http://a.test/"}
	status, out, errs := web.Run(t, "", args...)
	if status != statusFailed || !strings.Contains(out, "\n1 page in ") {
		t.Errorf("status %d\n%s", status, out)
	}
	wantMatches(t, "standard error", errs, `collyrobots crawl: audit: cannot close .*witness\.example/w1 has not cosigned .* \(status 404\): give its operator the content of key\.pub\n$`)
	key, err := os.ReadFile(filepath.Join(logs, "key.pub"))
	if err == nil {
		err = w.Know(string(key))
	}
	if err != nil {
		t.Fatal(err)
	}
	status, _, errs = web.Run(t, "", args...)
	if status != statusOK || strings.Contains(errs, "witness") {
		t.Errorf("status %d\n%s", status, errs)
	}
	v := audit.Verifier{Witnesses: []string{w.Key()}}
	if report, err := v.Verify(logs); err != nil || !report.OK() || len(report.Logs[0].Cosignatures) != 1 {
		t.Errorf("the audit log: %v, %+v", err, report)
	}
}

// TestWitnessWarning checks the warning about a witness while a crawl runs.
func TestWitnessWarning(t *testing.T) {
	t.Parallel()
	warned := make(chan bool)
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/robots.txt": http.StatusNotFound, "/": func(http.ResponseWriter, *http.Request) { <-warned }}})
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cmd := web.Command(t, "-audit", filepath.Join(t.TempDir(), "log"), "-witness", server.URL, "-witness-key", witnesstest.New("w1").Key(), "http://a.test/")
	progress, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	told := false
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "warning: audit log not cosigned (error audit: witness: w1 has not cosigned the 1 entries") {
			told = true
			close(warned)
		}
	}
	if !told { // the request has timed out
		t.Error("there was no warning")
		close(warned)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != statusFailed {
		t.Errorf("the crawl ended with %v", err)
	}
}

// TestRevalidate checks that the second run with -revalidate transfers no page again.
func TestRevalidate(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "page")
	}
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/": page}})
	args := []string{"-cache", t.TempDir(), "-revalidate", "-delay=1ms", "http://a.test/"}
	_, out, _ := web.Run(t, "", args...)
	wantMatches(t, "the first report", out, `\n1 page in `)
	status, out, errs := web.Run(t, "", args...)
	if status != 0 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	wantMatches(t, "the second report", out, `\n0 pages in \d+\.\d s, 0 failed, 0 denied, 1 unchanged\n$`)
}

// TestDeadHosts checks a list of many hosts that refuse connections: they are tried at once, there
// is one line for each, and the logger writes none.
func TestDeadHosts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var list strings.Builder
	for range 300 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(&list, "http://%s/\n", conn.LocalAddr()) // a port that is in use without a listener
	}
	status, out, errs := (*tooltest.World)(nil).Run(t, list.String(), "-from=-")
	if status != 1 || strings.Count(errs, "\n") != strings.Count(errs, "denied ") {
		t.Errorf("status %d\n%s", status, errs)
	}
	wantMatches(t, "the report", out, `\nAt least one start URL could not be fetched\.\n0 pages in \d+\.\d s, 0 failed, 300 denied\n$`)
}

// TestReportFile checks that -report writes a page about the crawl that has ended, and that a file
// that cannot be written is an error.
func TestReportFile(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /2\n", "/": robotstest.Page("/1", "/2"), "/1": ""}})
	name := filepath.Join(t.TempDir(), "report.html")
	status, _, errs := web.Run(t, "", "-delay=1ms", "-report", name, "http://a.test/")
	text, err := os.ReadFile(name)
	if status != 0 || err != nil {
		t.Fatalf("status %d, %v\n%s", status, err, errs)
	}
	for _, want := range []string{"<html", "a.test", "Disallow: /2"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report does not contain %q", want)
		}
	}
	for _, bad := range []string{"src=\"http", "href=\"http"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("the report contains %s", bad)
		}
	}
	status, _, errs = web.Run(t, "", "-delay=1ms", "-report", t.TempDir(), "http://a.test/")
	if status != 2 || !strings.Contains(errs, "-report: ") {
		t.Errorf("a folder as the file: status %d\n%s", status, errs)
	}
}
