package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/report"
)

// auditLog returns the folder of a log with the events of a crawl of a host. The gap between its
// two requests is one second.
func auditLog(t *testing.T, delay time.Duration) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	l, err := audit.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	const robots = "http://a.test/robots.txt"
	for i, kind := range []report.RequestKind{report.RequestRobots, report.RequestSitemap} {
		e := &collyrobots.Event{Kind: report.EventStarted, Time: at.Add(time.Duration(i) * time.Second), Host: "a.test", URL: robots, RequestKind: kind, Delay: delay}
		l.Event(e)
		e.Kind = report.EventAnswered
		e.Status = 200
		e.Err = errors.New("=1+1")
		l.Event(e)
	}
	l.Event(&collyrobots.Event{Kind: report.EventRobots, Time: at, Host: "a.test", URL: robots, RobotsStatus: "\x1b[31m"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAuditVerify(t *testing.T) {
	good := auditLog(t, time.Second)
	bad := auditLog(t, 2*time.Second)
	status, out, errs := call(t, "", "audit", "verify", good)
	if status != cli.OK || errs != "" || !strings.Contains(out, "delay     ok ") || !strings.Contains(out, "What this does not prove") {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
	status, out, errs = call(t, "", "audit", "verify", good, bad)
	if status != cli.Negative || errs != "" || !strings.Contains(out, "delay     ") || !strings.Contains(out, "but the delay was 2s") {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
	status, out, _ = call(t, "", "audit", "verify", "-json", bad)
	var report audit.Report
	if err := json.Unmarshal([]byte(out), &report); status != cli.Negative || err != nil || len(report.Findings) != 1 {
		t.Errorf("status %d, %v, output\n%s", status, err, out)
	}
	key, err := os.ReadFile(filepath.Join(good, "key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(t.TempDir(), "checkpoint")
	text, _ := os.ReadFile(filepath.Join(good, "checkpoint"))
	os.WriteFile(checkpoint, text, 0o600)
	status, out, _ = call(t, "", "audit", "verify", "-key", strings.TrimSpace(string(key)), "-checkpoint", checkpoint, good)
	if status != cli.OK || strings.Contains(out, "The key was found in the folder") {
		t.Errorf("status %d, output\n%s", status, out)
	}
	status, _, _ = call(t, "", "audit", "verify", "-key", strings.TrimSpace(string(key)), bad)
	if status != cli.Negative {
		t.Errorf("a log with another key: status %d", status)
	}
}

func TestAuditSite(t *testing.T) {
	dir := auditLog(t, time.Second)
	status, out, errs := call(t, "", "audit", "site", dir, "a.test")
	if status != cli.OK || errs != "" || !strings.Contains(out, "2 requests (1 for robots.txt, 1 for sitemaps) to a.test") || strings.Contains(out, "\x1b") {
		t.Errorf("status %d, errors %q, output\n%q", status, errs, out)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	status, out, _ = call(t, "", "audit", "site", "-html", page, dir, "a.test")
	text, err := os.ReadFile(page)
	if status != cli.OK || out != "" || err != nil || !strings.Contains(string(text), "<circle") {
		t.Errorf("status %d, output %q, %v, %d bytes", status, out, err, len(text))
	}
	status, _, errs = call(t, "", "audit", "site", dir, "b.test")
	if status != cli.Failed || !strings.Contains(errs, `no event of the host "b.test"`) {
		t.Errorf("status %d, errors %q", status, errs)
	}
}

func TestAuditExport(t *testing.T) {
	dir := auditLog(t, time.Second)
	status, out, errs := call(t, "", "audit", "export", dir)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != cli.OK || errs != "" || len(lines) != 7 {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
	for i, line := range lines {
		var e struct{ Entry int }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Entry != i {
			t.Errorf("line %d: %v, %s", i, err, line)
		}
	}
	status, out, errs = call(t, "", "audit", "export", "-format", "csv", "-host", "a.test", dir)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if status != cli.OK || errs != "" || err != nil || len(rows) != 6 || rows[2][6] != "200" || rows[2][13] != "'=1+1" {
		t.Errorf("status %d, errors %q, %v, rows %q", status, errs, err, rows)
	}
	if _, err := strconv.Atoi(rows[1][0]); err != nil {
		t.Errorf("row %q", rows[1])
	}
}

func TestAuditExportWARC(t *testing.T) {
	dir := auditLog(t, time.Second)
	var want bytes.Buffer
	if err := audit.ExportWARC(&want, dir, dir); err != nil {
		t.Fatal(err)
	}
	status, out, errs := call(t, "", "audit", "export", "-format", "warc", dir, dir)
	if status != cli.OK || errs != "" || out != want.String() || strings.Count(out, "WARC/1.1\r\n") != 16 {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
	damaged := auditLog(t, time.Second)
	os.RemoveAll(filepath.Join(damaged, "tile", "entries"))
	status, out, errs = call(t, "", "audit", "export", "-format", "warc", damaged)
	lines := strings.Split(errs, "\n")
	if status != cli.Negative || !strings.HasPrefix(out, "WARC/1.1\r\n") || len(lines) != 3 || !strings.HasPrefix(lines[1], "collyrobots audit export: audit: ") {
		t.Errorf("a damaged log: status %d, errors %q, output\n%s", status, errs, out)
	}
}

// TestAuditExportWARCTerminal checks that the bytes of sites are not written to a terminal.
func TestAuditExportWARCTerminal(t *testing.T) {
	dir := auditLog(t, time.Second)
	screen := tooltest.NewTerminal(t).Run(exec.Command(program(t), "audit", "export", "-format", "warc", dir), 120, 40)
	if !strings.HasPrefix(screen, "collyrobots audit export: a WARC file has") || strings.Contains(screen, "WARC/1.1") {
		t.Errorf("the terminal shows\n%s", screen)
	}
}

func TestAuditFaults(t *testing.T) {
	dir := auditLog(t, time.Second)
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{
		{}, {"look"}, {"verify"}, {"verify", none}, {"verify", dir, "-json"}, {"verify", "-checkpoint", none, dir},
		{"site", dir},
		{"export", "-format", "xml", dir}, {"export", "-format", "warc", none}, {"export", "-format", "warc", "-host", "a.test", dir}, {"export"}, {"export", none}, {"verify", "-no-such-flag", dir},
	} {
		status, out, errs := call(t, "", append([]string{"audit"}, args...)...)
		if status != cli.Failed || out != "" || !strings.HasPrefix(errs, "collyrobots audit") {
			t.Errorf("%q: status %d, output %q, errors %q", args, status, out, errs)
		}
	}
}
