package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// exportWARC returns the records of logs, and the file that they are in.
func exportWARC(t testing.TB, dirs ...string) (records []warcRecord, file []byte) {
	t.Helper()
	var b bytes.Buffer
	err := audit.ExportWARC(&b, dirs...)
	if err != nil {
		t.Fatal(err)
	}
	records, err = readWARC(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return records, b.Bytes()
}

// damagedWARC is like exportWARC for a log with faults. It returns the lines of the error.
func damagedWARC(t *testing.T, dir string) (records []warcRecord, faults []string) {
	t.Helper()
	var b bytes.Buffer
	err := audit.ExportWARC(&b, dir)
	if !errors.Is(err, audit.ErrDamaged) {
		t.Fatalf("got the error %v", err)
	}
	records, also := readWARC(b.Bytes())
	if also != nil {
		t.Fatal(also)
	}
	return records, strings.Split(err.Error(), "\n")
}

// count returns how many records of each type there are.
func count(records []warcRecord) (warcinfo, resource, revisit, metadata int) {
	counts := make(map[string]int)
	for _, r := range records {
		counts[r.kind()]++
	}
	return counts["warcinfo"], counts["resource"], counts["revisit"], counts["metadata"]
}

// only returns the records of a type.
func only(records []warcRecord, kind string) []warcRecord {
	return slices.DeleteFunc(slices.Clone(records), func(r warcRecord) bool { return r.kind() != kind })
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

// TestExportWARC exports crawls in three dialects. Each entry and each robots.txt is in a record, and
// the tree of the entries is that of the checkpoint.
func TestExportWARC(t *testing.T) {
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Temoto(), dialect.Yandex()} {
		dir := t.TempDir()
		varied(t, dir, collyrobots.Dialect(d), collyrobots.RetryThrottled(1))
		records, file := exportWARC(t, dir)
		infos, resources, revisits, entries := count(records)
		if infos != 1 || resources < 5 || revisits < 4 || entries != lenEntries(t, dir) || entries < 60 {
			t.Errorf("%v: %d warcinfo, %d resource, %d revisit, %d metadata", d, infos, resources, revisits, entries)
		}
		if !provesWARC(records) {
			t.Errorf("%v: the entries do not have the root of the checkpoint", d)
		}
		want := fmt.Sprintf(`%v;token="ExampleBot`, d)
		if got := warcInfoField(records[0], "robots"); !strings.HasPrefix(got, want) || strings.Contains(got, ", ") {
			t.Errorf("%v: the field robots is %s", d, got)
		}
		if _, again := exportWARC(t, dir); !bytes.Equal(again, file) {
			t.Errorf("%v: a second export has other bytes", d)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "robots", "*"))
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			holds := func(r warcRecord) bool { return r.kind() == "resource" && bytes.Equal(r.block, text) }
			if n := len(slices.DeleteFunc(slices.Clone(records), func(r warcRecord) bool { return !holds(r) })); n != 1 {
				t.Errorf("%v: %d records have the file %q", d, n, text)
			}
		}
	}
}

// TestExportWARCRecords compares the records about a robots.txt that is read four times and changes
// once with what happened.
func TestExportWARCRecords(t *testing.T) {
	dir := t.TempDir()
	texts := []string{"User-agent: *\nDisallow: /a\n", "User-agent: *\nDisallow: /b\n"}
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		web := robotstest.New(t, robotstest.Sites{"shop.test": {"*": "", "/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, texts[reads/2])
			reads++
		}}})
		l := mustOpen(t, dir)
		c := mustCollector(web)
		robots, err := collyrobots.WithRobots(c, quiet, collyrobots.OnEveryEvent(l.Event))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			c.Visit("http://shop.test/")
			time.Sleep(25 * time.Hour)
		}
		if err := errors.Join(robots.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	})
	records, _ := exportWARC(t, dir)
	var got []string
	for _, r := range records {
		if r.kind() == "resource" || r.kind() == "revisit" {
			got = append(got, fmt.Sprintf("%s %s %s %s %q", r.kind(), r.fields["WARC-Target-URI"], r.fields["WARC-Date"], r.fields["WARC-Refers-To-Date"], r.block))
		}
	}
	want := []string{
		`resource http://shop.test/robots.txt 2000-01-01T00:00:00Z  "User-agent: *\nDisallow: /a\n"`,
		`revisit http://shop.test/robots.txt 2000-01-02T01:00:00Z 2000-01-01T00:00:00Z ""`,
		`resource http://shop.test/robots.txt 2000-01-03T02:00:00Z  "User-agent: *\nDisallow: /b\n"`,
		`revisit http://shop.test/robots.txt 2000-01-04T03:00:00Z 2000-01-03T02:00:00Z ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !provesWARC(records) {
		t.Error("the entries do not have the root of the checkpoint")
	}
}

// captures returns what the resource and revisit records of a log are about.
func captures(records []warcRecord) (texts []string) {
	for _, r := range records {
		if r.kind() == "resource" || r.kind() == "revisit" {
			texts = append(texts, fmt.Sprintf("%s %s %s %q", r.fields["WARC-Date"], r.kind(), r.fields["WARC-Target-URI"], r.block))
		}
	}
	return texts
}

// TestExportWARCFetches exports a crawl of a site that confirms its robots.txt, fails, has none, and has
// the same file again; and of a site whose robots.txt an option replaces.
func TestExportWARCFetches(t *testing.T) {
	const file = "User-agent: *\nDisallow: /a\n"
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		days := []int{200, 304, 503, 200, 404, 200}
		web := robotstest.New(t, robotstest.Sites{"own.test": {"*": ""}, "shop.test": {"*": "", "/robots.txt": func(w http.ResponseWriter, r *http.Request) {
			day := int(time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) / (25 * time.Hour))
			w.Header().Set("ETag", `"1"`)
			if days[day] == 304 && r.Header.Get("If-None-Match") == "" {
				t.Error("the request was not conditional")
			}
			w.WriteHeader(days[day])
			if days[day] == 200 {
				io.WriteString(w, file)
			}
		}}})
		l := mustOpen(t, dir)
		c := mustCollector(web)
		robots, err := collyrobots.WithRobots(c, quiet, collyrobots.OnEveryEvent(l.Event), collyrobots.ForHosts("own.test", collyrobots.RobotsTxt([]byte("# own"))))
		if err != nil {
			t.Fatal(err)
		}
		for range days {
			c.Visit("http://shop.test/")
			c.Visit("http://own.test/")
			time.Sleep(25 * time.Hour)
		}
		if err := errors.Join(robots.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
	})
	records, _ := exportWARC(t, dir)
	got := captures(records)
	want := []string{
		`2000-01-01T00:00:00Z resource http://shop.test/robots.txt "User-agent: *\nDisallow: /a\n"`,
		`2000-01-01T00:00:00Z resource ni:///sha-256;NJPVS6jAF346Gr-iIuBr9n8wuYYnQB_FszvZrvVT8_A "# own"`,
		`2000-01-02T01:00:00Z revisit http://shop.test/robots.txt ""`,
		`2000-01-04T03:00:00Z revisit http://shop.test/robots.txt ""`,
		`2000-01-06T05:00:00Z revisit http://shop.test/robots.txt ""`,
	}
	if !slices.Equal(got, want) || !provesWARC(records) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestExportWARCStore exports the logs of two processes with one Store. The second one reads the file
// of the first one from the Store.
func TestExportWARCStore(t *testing.T) {
	shared := store.NewMemory()
	for n, want := range []string{
		`2000-01-01T00:00:00Z resource http://shop.test/robots.txt "# stored\n"`,
		`2000-01-01T00:00:00Z resource http://shop.test/robots.txt "# stored\n"`,
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Duration(n) * time.Hour)
			web := robotstest.New(t, robotstest.Sites{"shop.test": {"*": "", "/robots.txt": "# stored\n"}})
			l := mustOpen(t, dir)
			for range 2 {
				crawl(t, l, web, []string{"http://shop.test/"}, collyrobots.Store(shared))
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		})
		records, _ := exportWARC(t, dir)
		if got := captures(records); !slices.Equal(got, []string{want}) {
			t.Errorf("process %d: got %q, want %q", n, got, want)
		}
	}
}

// robotsEvent returns the event of a robots.txt that was read.
func robotsEvent(u, body string) *report.Event {
	sum := sha256.Sum256([]byte(body))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &report.Event{Kind: report.EventRobots, Time: at, Fetched: at, URL: u, Status: http.StatusOK,
		RobotsStatus: report.RobotsRules, Hash: hex.EncodeToString(sum[:16]), Body: []byte(body)}
}

// TestExportWARCFiles exports robots.txt files that are unusual.
func TestExportWARCFiles(t *testing.T) {
	long := strings.Repeat("# a comment of 32 bytes........\n", dialect.SizeLimit/32)
	const binary = "\r\n\r\nWARC/1.1\r\nWARC-Type: warcinfo\r\n\r\n\x00\xff\x1b[31m"
	dir := t.TempDir()
	again := robotsEvent("http://h.test/robots.txt", long)
	again.Fetched = again.Fetched.Add(time.Hour)
	replaced := robotsEvent("http://i.test/robots.txt", "# from the option")
	replaced.Option = "RobotsTxt"
	replaced.Fetched = time.Time{}
	elsewhere := cloned(replaced)
	elsewhere.URL = "http://j.test/robots.txt"
	elsewhere.Fetched = again.Fetched
	stored := robotsEvent("http://j.test/robots.txt", "# stored")
	stored.Stored = true
	failed := robotsEvent("http://b.test/robots.txt", binary)
	failed.Body = nil
	failed.Err = io.EOF
	unknown := robotsEvent("http://k.test/robots.txt", "# of another log")
	unknown.Body = nil
	forge(t, dir,
		robotsEvent("http://a.test/robots.txt", ""),
		robotsEvent("http://b.test/robots.txt", binary),
		robotsEvent("http://c.test/robots.txt", long),
		robotsEvent("http://d.test/robots.txt", long+"#"),
		robotsEvent("no URL", "#"),
		robotsEvent("http://f.test/robots.txt", "# the same"),
		robotsEvent("http://g.test/robots.txt", "# the same"),
		again, replaced, elsewhere, stored, stored, failed, unknown)
	records, _ := exportWARC(t, dir)
	var got []string
	for _, r := range records {
		if r.kind() == "resource" || r.kind() == "revisit" {
			got = append(got, fmt.Sprintf("%s %s %s %d %s", r.fields["WARC-Date"], r.kind(), r.fields["WARC-Target-URI"], len(r.block), r.fields["WARC-Truncated"]))
		}
	}
	want := []string{
		"2026-01-01T00:00:00Z resource http://a.test/robots.txt 0 ",
		"2026-01-01T00:00:00Z resource http://b.test/robots.txt 44 ",
		"2026-01-01T00:00:00Z resource http://c.test/robots.txt 512000 ",
		"2026-01-01T00:00:00Z resource http://d.test/robots.txt 512001 length",
		"2026-01-01T00:00:00Z resource ni:///sha-256;M0NZuQ7-112l8K2h1eayVvSmvQrufrOcD5AYKgIf_Is 1 ",
		"2026-01-01T00:00:00Z resource http://f.test/robots.txt 10 ",
		"2026-01-01T00:00:00Z revisit http://g.test/robots.txt 0 ",
		"2026-01-01T01:00:00Z revisit http://h.test/robots.txt 0 ",
		"2026-01-01T00:00:00Z resource ni:///sha-256;g4AG7-U6Up7f3QU0t3cu_obO4bVDo_MNbP_WA4-zx9I 17 ",
		"2026-01-01T00:00:00Z resource http://j.test/robots.txt 8 ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var referring []string
	for _, r := range only(records, "metadata") {
		referring = append(referring, fmt.Sprint(r.fields["WARC-Refers-To"] != ""))
	}
	if got := strings.Join(referring, " "); got != "false "+strings.Repeat("true ", 13)+"false false" {
		t.Errorf("the metadata records refer to robots.txt files: %s", got)
	}
}
