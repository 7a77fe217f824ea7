package batch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// A warcRecord is a record of a WARC file.
type warcRecord struct {
	kind string // the WARC-Type; "response" if empty
	uri  string
	http string
}

func warcOf(responses ...warcRecord) string {
	var b strings.Builder
	for _, r := range responses {
		if r.kind == "" {
			r.kind = "response"
		}
		fmt.Fprintf(&b, "WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", r.kind, r.uri, len(r.http), r.http)
	}
	return b.String()
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

const robotsURL = "https://example.com/robots.txt"

var archive = []warcRecord{
	{kind: "warcinfo", http: "software: x\r\n"},
	{kind: "request", uri: robotsURL, http: "GET /robots.txt HTTP/1.1\r\n\r\n"},
	{uri: robotsURL, http: "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + robots},
	{uri: "<" + robotsURL + ">", http: "HTTP/1.1 404 Not Found\r\n\r\n" + robots},
	{uri: robotsURL, http: "HTTP/1.1 503 Busy\r\n\r\n" + robots},
	{uri: robotsURL, http: "HTTP/1.1 301 Moved\r\nLocation: /r\r\n\r\n"},
	{uri: "https://example.com/page", http: "HTTP/1.1 200 OK\r\n\r\n" + robots},
	{uri: robotsURL, http: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n", len(robots)) + robots + "\r\n0\r\n\r\n"},
	{uri: robotsURL, http: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + zipped(robots)},
	{uri: robotsURL, http: "hello"},
	{uri: robotsURL, http: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + robots},
	{uri: robotsURL, http: "HTTP/1.1 201 Created\r\n\r\n" + robots},
}

func TestWARC(t *testing.T) {
	want := []string{
		"1 a /x denied by 2", "1 a /y allowed by 0",
		"2 a /x allowed by 0", "2 a /y allowed by 0",
		"3 a /x denied by 0", "3 a /y denied by 0",
		"4  error: " + robotsURL + " redirects: status 301",
		"5  error: https://example.com/page is not the URL of a robots.txt",
		"6 a /x denied by 2", "6 a /y allowed by 0",
		"7 a /x denied by 2", "7 a /y allowed by 0",
		"8  error: HTTP response: malformed HTTP...",
		"9  error: HTTP response: unexpected EOF",
		"10 a /x denied by 2", "10 a /y allowed by 0",
	}
	options := Options{Agents: []string{"a"}, URLs: []string{"/x", "/y"}}
	expect(t, decide(t, warcOf(archive...), options), want...)
	expect(t, decide(t, warcOf(archive[2]), Options{Agents: []string{"a"}}), "1  error: the record has neither url nor urls, and no URL is set for all records")
	expect(t, decide(t, warcOf(archive[2]), Options{URLs: []string{"/"}}), "1  error: the record has no agent, and no agent is set for all records")
	members := ""
	for _, r := range archive {
		members += zipped(warcOf(r))
	}
	expect(t, decide(t, members, options), want...)

	options.Dialect = dialect.CocCoc() // only 200 has rules, and a 503 restricts nothing
	lines := decide(t, warcOf(archive...), options)
	expect(t, lines[4:6], "3 a /x allowed by 0", "3 a /y allowed by 0")
	expect(t, lines[len(lines)-2:], "10 a /x allowed by 0", "10 a /y allowed by 0")
}

func TestBadWARC(t *testing.T) {
	good := warcOf(archive[2])
	for _, test := range []struct{ name, input, fault string }{
		{"truncated block", good[:len(good)-20], "unexpected EOF"},
		{"truncated header", good + "WARC/1.0\r\nWARC-Ty", "unexpected EOF"},
		{"no length", "WARC/1.0\r\nWARC-Type: response\r\n\r\n", `Content-Length ""`},
		{"negative length", "WARC/1.0\r\nContent-Length: -1\r\n\r\n", `Content-Length "-1"`},
		{"other text", good + "hello\r\n", `begins with "hello"`},
		{"long header", "WARC/1.0\r\n" + strings.Repeat("a: b\r\n", 1<<18), "too long"},
		{"long line", "WARC/1.0\r\n" + strings.Repeat("a", chunkSize+1), "buffer full"},
	} {
		_, err := Run(strings.NewReader(test.input), io.Discard, Options{Agents: []string{"a"}, URLs: []string{"/"}})
		if err == nil || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.fault)
		}
	}
	long := io.MultiReader(
		strings.NewReader(fmt.Sprintf("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: %s\r\nContent-Length: %d\r\n\r\n", robotsURL, maxRecord+1)),
		io.LimitReader(endless{record: "x"}, maxRecord+1),
		strings.NewReader("\r\n\r\n"+good),
	)
	var out bytes.Buffer
	if _, err := Run(long, &out, Options{Agents: []string{"a"}, URLs: []string{"/x"}}); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	expect(t, linesOf(t, out.Bytes()), "1  error: the record is longer than 16777216 bytes", "2 a /x denied by 2")
}
