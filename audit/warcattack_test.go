package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
	"github.com/collyrobots/collyrobots/report"
)

// TestExportWARCHostileEvents exports events with any bytes in their texts and with impossible times.
func TestExportWARCHostileEvents(t *testing.T) {
	const inject = "http://a.test/\r\nWARC-Type: response\r\n\r\nWARC/1.1\r\n\x00\xff \"<>\\^`{|}é\u2028#a#b[]"
	d := &report.Decision{URL: inject, Token: "Bot\"\r\nrobots: none\\é", Group: inject}
	dir := t.TempDir()
	forge(t, dir,
		&report.Event{Kind: report.EventStarted, URL: inject, From: inject, Host: inject, Decision: d},
		&report.Event{Kind: "x\r\n\r\n", URL: "\r\n", Time: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600))},
		&report.Event{Kind: report.EventRobots, URL: inject, Time: time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)), Body: []byte("#")},
		&report.Event{Kind: report.EventDenied, URL: "http://a.test/" + strings.Repeat("ü", 100_000), Err: errors.New(inject)},
		robotsEvent("http://"+strings.Repeat("long.", 400)+"test/robots.txt", "# long"),
		robotsEvent("http://b.test/robots.txt", "# long"),
	)
	records, _ := exportWARC(t, dir)
	if infos, resources, revisits, entries := count(records); infos != 1 || resources != 2 || revisits != 1 || entries != 8 {
		t.Errorf("%d warcinfo, %d resource, %d revisit, %d metadata", infos, resources, revisits, entries)
	}
	if got := only(records, "revisit")[0].fields["WARC-Refers-To-Target-URI"]; got != "" {
		t.Errorf("the revisit record repeats a URI of %d bytes", len(got))
	}
	if !provesWARC(records) {
		t.Error("the entries do not have the root of the checkpoint")
	}
	const escaped = "http://a.test/%0D%0AWARC-Type:%20response%0D%0A%0D%0AWARC/1.1%0D%0A%00%EF%BF%BD%20%22%3C%3E%5C%5E%60%7B%7C%7D%C3%A9%E2%80%A8#a%23b%5B%5D"
	if got := only(records, "metadata")[1].fields["WARC-Target-URI"]; got != escaped {
		t.Errorf("the URL became\n%s, want\n%s", got, escaped)
	}
	if got, want := warcInfoField(records[0], "robots"), `rfc9309;token="Bot\"\r\nrobots: none\\\u00e9";version="(devel)"`; got != want {
		t.Errorf("the field robots is %s, want %s", got, want)
	}
}

// TestExportWARCHosts exports URLs with all forms of hosts.
func TestExportWARCHosts(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"http://a.test:8080/x?y#z", "http://a.test:8080/x?y#z"},
		{"http://127.0.0.1:80", "http://127.0.0.1:80"},
		{"https://[2001:db8::1]:8443/", "https://[2001:db8::1]:8443/"},
		{"http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/"},
		{"http://bücher.example/ü?ü=[1]", "http://b%C3%BCcher.example/%C3%BC?%C3%BC=%5B1%5D"},
		{"http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"},
		{"http://name:xxxxx@a.test/", "http://name:xxxxx@a.test/"},
		{"http://a.test/hmac-sha256-00ff", "http://a.test/hmac-sha256-00ff"},
		{"http://a.test/100%", "http://a.test/100%25"},
		{"ftp://a.test/x", "ftp://a.test/x"},
		{"hmac-sha256-00ff", ""},
		{"http:///x", ""},
		{"http://[::1/", ""},
		{"http://a:b:80/", ""},
		{"http://::1/", ""},
		{"http://[127.0.0.1]/", ""},
		{"http://a[b]/", ""},
		{"http://a.test:x/", ""},
		{"http://a%0Ab/", ""},
		{"ht\ntp://a.test/", ""},
		{"://a.test/", ""},
		{"mailto:a@b.test", ""},
		{"/x", ""},
	} {
		dir := t.TempDir()
		forge(t, dir, &report.Event{Kind: report.EventDenied, URL: test.url})
		records, _ := exportWARC(t, dir)
		if got := records[2].fields["WARC-Target-URI"]; got != test.want {
			t.Errorf("%q became %q, want %q", test.url, got, test.want)
		}
	}
}

// TestExportWARCBadFiles exports logs whose robots.txt files are missing or were changed.
func TestExportWARCBadFiles(t *testing.T) {
	const body = "User-agent: *\n"
	for _, test := range []struct {
		name  string
		spoil func(name string) error
		want  string // in the error
	}{
		{"missing", os.Remove, "cannot be read"},
		{"changed", func(name string) error { return os.WriteFile(name, []byte("User-agent: x\n"), 0o600) }, "it has another hash"},
		{"too large", func(name string) error { return os.Truncate(name, 1<<36) }, "too large"},
		{"a folder", func(name string) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o700)) }, "not a regular file"},
		{"a pipe", func(name string) error { return errors.Join(os.Remove(name), makePipe(name)) }, "not a regular file"},
	} {
		dir := t.TempDir()
		again := robotsEvent("http://b.test/robots.txt", body)
		again.Body = nil // its record would repeat the one that is missing
		forge(t, dir, robotsEvent("http://a.test/robots.txt", body), robotsEvent("http://a.test/robots.txt", "# good"), again)
		files, _ := filepath.Glob(filepath.Join(dir, "robots", "*"))
		for _, name := range files {
			if text, _ := os.ReadFile(name); string(text) == body {
				if err := test.spoil(name); errors.Is(err, errors.ErrUnsupported) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				records, faults := damagedWARC(t, dir)
				if len(faults) != 2 || !strings.Contains(faults[1], "entry 1 of "+dir) || !strings.Contains(faults[1], test.want) {
					t.Errorf("%s: the error is %q", test.name, faults)
				}
				if _, resources, revisits, entries := count(records); resources != 1 || revisits != 0 || entries != 5 || !provesWARC(records) {
					t.Errorf("%s: %d resource, %d revisit, %d metadata", test.name, resources, revisits, entries)
				}
			}
		}
	}
}

// TestExportWARCBadEntries exports a log with entries that this package does not write.
func TestExportWARCBadEntries(t *testing.T) {
	dir := t.TempDir()
	w, err := tiles.Open(dir, tlog.Tree{})
	if err != nil {
		t.Fatal(err)
	}
	const event = `{"body":%q,"event":{"kind":"robots","time":"2000-01-01T00:00:00Z","url":"http://a.test/robots.txt"},"salt":"","v":1}`
	good := sha256.Sum256([]byte("#"))
	digits := hex.EncodeToString(good[:])
	err = errors.Join(os.Mkdir(filepath.Join(dir, "robots"), 0o700), os.WriteFile(filepath.Join(dir, "robots", digits), []byte("#"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{
		fmt.Sprintf(event, digits), fmt.Sprintf(event, digits[:32]+strings.Repeat("0", 32)), "", "{", "null", `{"salt":"","v":2}`, `{"event":{},"log":{},"salt":"","v":1}`,
		fmt.Sprintf(event, "../key"), fmt.Sprintf(event, strings.Repeat("0", 64)), fmt.Sprintf(event, "0"),
		`{"log":{"kind":"opened","time":"2000-01-01T00:00:00Z","version":"1\r\nrobots: none"},"salt":"","v":1}`,
		`{"log":{"kind":"closed","time":"2000-01-01T00:00:00Z"},"salt":"","v":1}`,
		`{"log":{"kind":"closed","time":"2000-01-01T00:00:00Z"},"salt":"","v":1}`,
	}
	for _, line := range lines {
		w.Append([]byte(line))
	}
	err = errors.Join(w.Checkpoint(mustSign(t, dir)), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	records, faults := damagedWARC(t, dir)
	if _, resources, _, entries := count(records); resources != 1 || entries != 8 || len(faults) != 9 {
		t.Errorf("%d resource, %d metadata, the error is\n%s", resources, entries, strings.Join(faults, "\n"))
	}
}

// TestExportWARCTwins exports logs that begin alike and have no checkpoint. Their records have
// different identifiers.
func TestExportWARCTwins(t *testing.T) {
	var dirs []string
	for range 2 {
		dir := t.TempDir()
		forge(t, dir)
		if err := os.Remove(filepath.Join(dir, "checkpoint")); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	records, _ := exportWARC(t, dirs...)
	if infos, _, _, entries := count(records); infos != 2 || entries != 4 || !bytes.Equal(records[0].block, records[3].block) {
		t.Errorf("%d warcinfo, %d metadata", infos, entries)
	}
}

// TestExportWARCManyFaults checks that the error does not grow with the number of faults.
func TestExportWARCManyFaults(t *testing.T) {
	dir := t.TempDir()
	w, err := tiles.Open(dir, tlog.Tree{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		w.Append([]byte("{"))
	}
	err = errors.Join(w.Checkpoint(mustSign(t, dir)), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	records, faults := damagedWARC(t, dir)
	if len(records) != 1 || len(faults) != 1002 || faults[1001] != "2000 more faults" {
		t.Errorf("%d records, %d lines, the last is %q", len(records), len(faults), faults[len(faults)-1])
	}
}
