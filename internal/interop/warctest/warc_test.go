// Package warctest reads WARC files of package audit with warcio, an independent implementation of
// the format.
package warctest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// warcio is the package of npm.
const warcio = "warcio@2.4.11"

// A reader runs warcio.
type reader struct{ dir string }

// newReader installs warcio into a temporary folder. If that is not possible, it skips the test.
func newReader(t *testing.T) reader {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		_, err := exec.LookPath(program)
		if err != nil {
			t.Skipf("needs %s: apt-get install nodejs npm", program)
		}
	}
	r := reader{dir: t.TempDir()}
	output, err := r.run(t, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--cache", filepath.Join(r.dir, "cache"), warcio)
	if err != nil {
		t.Skipf("needs the package %s, which npm cannot install: %v\n%.500s", warcio, err, output)
	}
	script, err := os.ReadFile("testdata/digests.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "digests.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a command in the folder. It returns the output, and the errors also if it fails.
func (r reader) run(t *testing.T, name string, args ...string) (output []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err = cmd.Output()
	if err != nil {
		output = append(output, stderr.Bytes()...)
	} else if name == "node" && stderr.Len() > 0 {
		err = errors.New(stderr.String()) // warcio warns about malformed records
	}
	return output, err
}

// lines returns what a command of warcio prints about a file, one line for each record.
func (r reader) lines(t *testing.T, file []byte, args ...string) (lines []string) {
	t.Helper()
	name := filepath.Join(r.dir, "crawl.warc")
	err := os.WriteFile(name, file, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	output, err := r.run(t, "node", slices.Concat([]string{"--no-warnings"}, args, []string{name})...)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, output)
	}
	return strings.Split(strings.TrimSpace(string(output)), "\n")
}

const cli = "node_modules/warcio/dist/cli.js"

// A digested record is a line of digests.mjs.
type digested struct {
	Type  string
	URI   string
	Size  int
	Wrong []string // the digests that are not those in the file
}

// digests computes the digests of all records again.
func (r reader) digests(t *testing.T, file []byte) (all []digested) {
	t.Helper()
	for _, line := range r.lines(t, file, "digests.mjs") {
		var d digested
		err := json.Unmarshal([]byte(line), &d)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, d)
	}
	return all
}

// large is a robots.txt of the largest size that is read, 500 KiB.
var large = strings.Repeat("# a comment of 32 bytes........\n", dialect.SizeLimit/32)

// sites have robots.txt files of all kinds.
func sites() robotstest.Sites {
	return robotstest.Sites{
		"shop.test":          {"/robots.txt": "User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n", "/a": robotstest.Redirect("/cart"), "*": ""},
		"empty.test":         {"/robots.txt": "", "*": ""},
		"large.test":         {"/robots.txt": large, "*": ""},
		"warc.test":          {"/robots.txt": "\r\n\r\nWARC/1.1\r\nWARC-Type: warcinfo\r\n\r\n\x00\xff", "*": ""},
		"none.test":          {"/robots.txt": http.StatusNotFound, "*": ""},
		"a.test:8080":        {"/robots.txt": "# with a port\n", "*": ""},
		"[2001:db8::1]:81":   {"/robots.txt": "# by address\n", "*": ""},
		"xn--bcher-kva.test": {"/robots.txt": "# IDN\n", "*": ""},
	}
}

// urls are visited twice, with a day between, so that each robots.txt is read twice.
var urls = []string{
	"http://shop.test/", "http://shop.test/cart", "http://shop.test/a", "http://empty.test/", "http://large.test/", "http://warc.test/",
	"http://none.test/x?a[]=1|2", "http://a.test:8080/", "http://[2001:db8::1]:81/", "http://bücher.test/ü?ü#ü",
}

// crawl writes the log of a crawl.
func crawl(t *testing.T, dir string, opts ...audit.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, sites())
		l, err := audit.Open(dir, opts...)
		if err != nil {
			t.Fatal(err)
		}
		c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.AllowURLRevisit())
		c.WithTransport(web.Transport())
		robots, err := collyrobots.WithRobots(c, collyrobots.Logger(slog.New(slog.DiscardHandler)), collyrobots.PrivateNetworks(collyrobots.AllowAll),
			collyrobots.OnEveryEvent(l.Event), collyrobots.OnDenied(func(*colly.Request, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, u := range urls {
				c.Visit(u)
			}
			time.Sleep(25 * time.Hour)
		}
		err = errors.Join(robots.Close(), l.Close())
		if err != nil {
			t.Fatal(err)
		}
	})
}

// export returns the WARC file of logs.
func export(t *testing.T, dirs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	err := audit.ExportWARC(&b, dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lenEntries returns the number of entries in a log.
func lenEntries(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, err := range audit.Entries(dir) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestWarcio(t *testing.T) {
	r := newReader(t)
	t.Run("crawl", r.testCrawl)
	t.Run("changes", r.testChanges)
	t.Run("hostile", r.testHostile)
}

// testCrawl reads the export of a crawl with warcio: the records have the digests and lengths that it
// computes, and only the robots.txt files are in its index of captures.
func (r reader) testCrawl(t *testing.T) {
	dir := t.TempDir()
	crawl(t, dir)
	file := export(t, dir)
	counts := make(map[string]int)
	for _, d := range r.digests(t, file) {
		counts[d.Type]++
		if len(d.Wrong) > 0 {
			t.Errorf("warcio computes other digests for %+v", d)
		}
		if d.Type == "resource" && d.URI == "http://large.test/robots.txt" && d.Size != len(large) {
			t.Errorf("warcio reads %d bytes of a file with %d", d.Size, len(large))
		}
	}
	const files = 7 // all sites except none.test have one
	if counts["warcinfo"] != 1 || counts["resource"] != files || counts["revisit"] != files || counts["metadata"] != lenEntries(t, dir) {
		t.Errorf("got the records %v", counts)
	}
	if lines := r.lines(t, file, cli, "index"); len(lines) != 1+2*files+lenEntries(t, dir) {
		t.Errorf("warcio index has %d lines", len(lines))
	}
	got := r.lines(t, file, cli, "cdx-index")
	slices.Sort(got)
	var want []string
	for _, day := range []string{"20000101", "20000102"} {
		for _, u := range []string{"test,shop)", "test,empty)", "test,large)", "test,warc)", "test,a:8080)", "test,xn--bcher-kva)", "[2001:db8::1]:81)"} {
			want = append(want, u+"/robots.txt "+day)
		}
	}
	slices.Sort(want)
	for i, line := range got {
		if len(got) != len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("warcio cdx-index prints\n%s\nwant lines that begin with\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			break
		}
	}
}

// testChanges changes bytes of an export. This checks that digests.mjs computes the digests.
func (r reader) testChanges(t *testing.T) {
	dir := t.TempDir()
	crawl(t, dir)
	file := export(t, dir)
	for _, test := range []struct{ old, new, want string }{
		{"Disallow: /cart\n", "Disallow: /card\n", "resource http://shop.test/robots.txt [WARC-Block-Digest WARC-Payload-Digest]"},
		{"index: 3\r\n", "index: 4\r\n", "metadata http://shop.test/robots.txt [WARC-Block-Digest]"},
	} {
		changed := bytes.Replace(file, []byte(test.old), []byte(test.new), 1)
		var got []string
		for _, d := range r.digests(t, changed) {
			if len(d.Wrong) > 0 {
				got = append(got, fmt.Sprintf("%s %s %v", d.Type, d.URI, d.Wrong))
			}
		}
		if !slices.Equal(got, []string{test.want}) {
			t.Errorf("%q: got %q, want %q", test.old, got, test.want)
		}
	}
}

// testHostile reads the exports of several logs, with concealed URLs, and events that contain lines of a
// WARC file.
func (r reader) testHostile(t *testing.T) {
	const inject = "http://a.test/\r\n\r\n\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\x00\xff\u2028é"
	secret := []byte("0123456789abcdef")
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	crawl(t, dirs[0], audit.HashQueries(secret))
	crawl(t, dirs[1], audit.HashPaths(secret))
	l, err := audit.Open(dirs[2])
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(inject)
	sum := sha256.Sum256(body)
	long := "http://a.test/" + strings.Repeat("ü", 100_000)
	for _, u := range []string{inject, "\r\n\r\n", long, "http://[::1]/"} {
		l.Event(&report.Event{Kind: report.EventRobots, URL: u, Host: inject, Err: io.EOF, Hash: hex.EncodeToString(sum[:16]), Body: body})
		l.Event(&report.Event{Kind: report.EventDenied, URL: u, From: u, Decision: &report.Decision{URL: u, Token: inject}})
	}
	err = l.Close()
	if err != nil {
		t.Fatal(err)
	}
	file := export(t, dirs...)
	counts := make(map[string]int)
	for _, d := range r.digests(t, file) {
		counts[d.Type]++
		if len(d.Wrong) > 0 {
			t.Errorf("warcio computes other digests for %+v", d)
		}
	}
	entries := 0
	for _, dir := range dirs {
		entries += lenEntries(t, dir)
	}
	if counts["warcinfo"] != 3 || counts["metadata"] != entries || counts["resource"] != 7+7+1 || len(counts) != 4 {
		t.Errorf("got the records %v, want %d metadata", counts, entries)
	}
	if bytes.Contains(file, []byte("a[]=1")) {
		t.Error("a concealed query is in the file")
	}
}
