package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/usage"
)

// uses runs records and returns the lines of the output in a short form.
func uses(t *testing.T, input string, o Options, purpose usage.Purpose) []string {
	t.Helper()
	var out bytes.Buffer
	summary, err := RunPurpose(strings.NewReader(input), &out, o, purpose)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	var want PurposeSummary
	for text := range bytes.Lines(out.Bytes()) {
		var l useLine
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		lines = append(lines, l.short())
		want.Lines++
		if l.Error != "" {
			want.Errors++
		}
		if len(l.Contradictions) > 0 {
			want.Contradictory++
		}
	}
	if summary.Lines != want.Lines || summary.Errors != want.Errors || summary.Contradictory != want.Contradictory {
		t.Errorf("summary %+v, want %+v", summary, want)
	}
	return lines
}

// short returns the fields that are set, except the sources.
func (l useLine) short() string {
	parts := []string{fmt.Sprint(l.Record)}
	for _, part := range []string{l.Site, l.Agent, l.URL, string(l.Use)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if l.Because != "" {
		parts = append(parts, "by "+l.Because)
	}
	if len(l.Contradictions) > 0 {
		parts = append(parts, fmt.Sprintf("%q", l.Contradictions))
	}
	if len(l.Tags) > 0 {
		parts = append(parts, fmt.Sprint(l.Tags))
	}
	if len(l.Licenses) > 0 {
		parts = append(parts, fmt.Sprint(l.Licenses))
	}
	if l.LicenseRequired {
		parts = append(parts, "license required")
	}
	if l.Error != "" {
		parts = append(parts, "error: "+l.Error)
	}
	return strings.Join(parts, " ")
}

// checkLines compares lines. A line that is wanted may end with "...".
func checkLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "no line", "no line"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if start, open := strings.CutSuffix(w, "..."); g != w && !(open && strings.HasPrefix(g, start)) {
			t.Errorf("line %d: %s\nwant %s", i+1, g, w)
		}
	}
}

// recordOf returns a record of JSON.
func recordOf(t *testing.T, fields map[string]any) string {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// TestPurpose is a table of sites and of what they say about the training of AI models on /a.
func TestPurpose(t *testing.T) {
	const star = "User-agent: *\n"
	type header = map[string][]string
	for _, test := range []struct {
		name   string
		fields map[string]any
		want   string
	}{
		{"nothing", map[string]any{"robots": ""}, "unknown"},
		{"rules", map[string]any{"robots": star + "Disallow: /a\n"}, "denied by rules of robots.txt, line 2"},
		{"rule for another crawler", map[string]any{"robots": "User-agent: Other\nDisallow: /\n"}, "unknown"},
		{"Content-Usage", map[string]any{"robots": star + "Content-Usage: train-ai=n\n"}, "disallowed by Content-Usage in robots.txt, line 2"},
		{"Content-Usage allows", map[string]any{"robots": star + "Content-Usage: train-ai=y\n"}, "allowed by Content-Usage in robots.txt, line 2"},
		{"another use", map[string]any{"robots": star + "Content-Usage: search=n\n"}, "unknown"},
		{"Content-Signal", map[string]any{"robots": "Content-Signal: ai-train=no\n" + star}, "disallowed by Content-Signal in robots.txt, line 1"},
		{"longest path", map[string]any{"robots": star + "Content-Usage: / train-ai=n\nContent-Usage: /a train-ai=y\n"}, "allowed by Content-Usage in robots.txt, line 3"},
		{"same path", map[string]any{"robots": star + "Content-Usage: /a train-ai=n\nContent-Usage: /a train-ai=y\n"},
			`disallowed by Content-Usage in robots.txt, line 2 ["Content-Usage in robots.txt, line 3 allows it, Content-Usage in robots.txt, line 2 does not"]`},
		{"two keys", map[string]any{"robots": star + "Content-Usage: train-ai=y\nContent-Signal: ai-train=no\n"},
			`disallowed by Content-Signal in robots.txt, line 3 ["Content-Usage in robots.txt, line 2 allows it, Content-Signal in robots.txt, line 3 does not"]`},
		{"rules against a line", map[string]any{"robots": star + "Content-Signal: ai-train=yes\nDisallow: /\n"},
			`denied by rules of robots.txt, line 3 ["Content-Signal in robots.txt, line 2 allows it, rules of robots.txt, line 3 does not"]`},
		{"TDMRep file", map[string]any{"robots": "", "tdmrep": `[{"location":"/a","tdm-reservation":1}]`}, "disallowed by tdmrep.json"},
		{"header overrides TDMRep file", map[string]any{"robots": "", "tdmrep": `[{"location":"/*","tdm-reservation":1}]`, "header": header{"tdm-reservation": {"0"}}},
			"allowed by header tdm-reservation"},
		{"HTML overrides header", map[string]any{"robots": "", "html": `<meta name="TDM-Reservation" content="1">`, "header": header{"Tdm-Reservation": {"0"}}},
			"disallowed by meta tdm-reservation"},
		{"no HTML", map[string]any{"robots": "", "html": `<meta name="tdm-reservation" content="1">`, "header": header{"Content-Type": {"text/plain"}}}, "unknown"},
		{"header against robots.txt", map[string]any{"robots": star + "Content-Usage: train-ai=n\n", "header": header{"content-usage": {"train-ai=y"}}},
			`disallowed by Content-Usage in robots.txt, line 2 ["header Content-Usage allows it, Content-Usage in robots.txt, line 2 does not"]`},
		{"header Content-Signal", map[string]any{"robots": "", "header": header{"content-signal": {"ai-train=no"}}}, "disallowed by header Content-Signal"},
		{"noindex", map[string]any{"robots": "", "html": `<meta name="robots" content="noindex">`}, "unknown [noindex]"},
		{"license", map[string]any{"robots": star + "Disallow: /b\nLicense: https://example.com/l.xml\n"}, "unknown [https://example.com/l.xml]"},
	} {
		test.fields["agent"] = "a"
		test.fields["url"] = "https://example.com/a"
		t.Run(test.name, func(t *testing.T) {
			checkLines(t, uses(t, recordOf(t, test.fields), Options{}, usage.TrainAI), "1 a https://example.com/a "+test.want)
		})
	}
}

// TestPurposeSearch checks that noindex disallows the use for search.
func TestPurposeSearch(t *testing.T) {
	record := recordOf(t, map[string]any{
		"robots": "User-agent: *\nContent-Signal: search=yes\n",
		"header": map[string][]string{"X-Robots-Tag": {"noindex"}},
	})
	checkLines(t, uses(t, record, Options{Agents: []string{"a"}}, usage.Search),
		`1 a / disallowed by noindex ["Content-Signal in robots.txt, line 2 allows it, noindex does not"] [noindex]`)
}

// TestPurposeRecords checks the crawlers and URLs of records, and files.
func TestPurposeRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte(robots), 0o600); err != nil {
		t.Fatal(err)
	}
	input := recordOf(t, map[string]any{"file": file}) + "\n" + recordOf(t, map[string]any{"robots": robots, "agent": "c", "url": "/x", "urls": []string{"/y"}})
	checkLines(t, uses(t, input, Options{Agents: []string{"a", "b"}, URLs: []string{"/x", "/x/y"}}, usage.AIUse),
		"1 a /x denied by rules of robots.txt, line 2", "1 a /x/y unknown", "1 b /x denied by rules of robots.txt, line 2", "1 b /x/y unknown",
		"3 c /x denied by rules of robots.txt, line 2", "3 c /y unknown")
}

func TestPurposeBadRecords(t *testing.T) {
	input := strings.Join([]string{
		`not JSON`,
		`{"url":"/x"}`,
		`{"robots":"","file":"f"}`,
		`{"file":"/no/such/file"}`,
		`{"robots":"","url":"x"}`,
		`{"robots":"","tdmrep":"{}"}`,
		`{"robots":"","header":{"a":"b"}}`,
		`{"robots":"","tdmrep":null,"header":null,"html":"<"}`,
		strings.Repeat("x", maxRecord+1),
		`{"robots_base64":"//4A","header":{"Content-Usage":["\u0000,,="]},"html":"<meta name=robots content=\u0000>"}`,
	}, "\n")
	checkLines(t, uses(t, input, Options{Agents: []string{"a"}}, usage.TrainAI),
		"1 error: invalid character...",
		"2 error: the record has 0 of robots...",
		"3 error: the record has 2 of robots...",
		"4 error: open /no/such/file...",
		`5 error: "x" is neither an absolute URL...`,
		"6 a / unknown",
		"7 error: json: cannot unmarshal...",
		"8 a / unknown",
		"9 error: the line is longer than...",
		"10 a / unknown...",
	)
	checkLines(t, uses(t, `{"robots":""}`, Options{}, usage.TrainAI), "1 error: the record has no agent...")
	checkLines(t, uses(t, "", Options{}, usage.TrainAI))
}

// TestPurposeWARC checks a file with the robots.txt, the TDMRep file and the page of several sites.
func TestPurposeWARC(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\n"
	input := warcOf(
		warcRecord{uri: "https://one.test/", http: ok + "Content-Usage: train-ai=y\r\nContent-Type: text/html\r\n\r\n<meta name=robots content=nosnippet>"},
		warcRecord{uri: "https://two.test/robots.txt", http: ok + "\r\nUser-agent: *\nContent-Signal: ai-train=yes\n"},
		warcRecord{uri: "https://one.test/robots.txt", http: ok + "\r\n" + "User-agent: *\nDisallow: /x\n"},
		warcRecord{uri: "https://one.test/.well-known/tdmrep.json", http: ok + "\r\n" + `[{"location":"/*","tdm-reservation":1}]`},
		warcRecord{uri: "https://one.test/other", http: ok + "Content-Usage: train-ai=n\r\n\r\n"},
		warcRecord{uri: "https://three.test/", http: "HTTP/1.1 401 No\r\nWWW-Authenticate: License\r\n\r\n"},
		warcRecord{uri: "https://four.test/robots.txt", http: "HTTP/1.1 503 Busy\r\n\r\n"},
		warcRecord{uri: "https://five.test/robots.txt", http: "HTTP/1.1 301 Moved\r\nLocation: /r\r\n\r\n"},
		warcRecord{uri: "https://six.test/robots.txt", http: "hello"},
		warcRecord{uri: "https://six.test/", http: ok + "\r\n"},
		warcRecord{uri: "https://seven.test/robots.txt", http: "HTTP/1.1 404 No\r\n\r\nUser-agent: *\nDisallow: /\n"},
		warcRecord{uri: "https://seven.test/.well-known/tdmrep.json", http: ok + "\r\nnot JSON"},
		warcRecord{uri: "://", http: ok + "\r\n"},
		warcRecord{uri: "https://only-pages.test/other", http: ok + "\r\n"},
	)
	want := []string{
		`1 https://one.test a / disallowed by tdmrep.json ["header Content-Usage allows it, tdmrep.json does not"] [nosnippet]`,
		"2 https://two.test a / allowed by Content-Signal in robots.txt, line 2",
		"6 https://three.test a / unknown license required error: the input has no robots.txt of this site",
		"7 https://four.test a / denied by rules of robots.txt",
		"8 https://five.test a / unknown error: robots.txt redirects: status 301",
		"9 https://six.test a / unknown error: HTTP response: malformed...",
		"11 https://seven.test a / unknown",
	}
	o := Options{Agents: []string{"a"}}
	checkLines(t, uses(t, input, o, usage.TrainAI), want...)
	checkLines(t, uses(t, zipped(input), o, usage.TrainAI), want...)
	if _, err := RunPurpose(strings.NewReader(input[:len(input)-9]), io.Discard, o, usage.TrainAI); err == nil {
		t.Error("no error for a WARC file that ends too early")
	}
	if _, err := RunPurpose(strings.NewReader(input), io.Discard, Options{}, usage.TrainAI); err == nil {
		t.Error("no error without a crawler")
	}
}

// TestPurposeFailingWriter checks that RunPurpose ends if its output fails.
func TestPurposeFailingWriter(t *testing.T) {
	failing := errors.New("disk full")
	reader, writer := io.Pipe()
	reader.CloseWithError(failing)
	input := endless{record: `{"robots":"","agent":"a"}` + "\n"}
	if _, err := RunPurpose(input, writer, Options{}, usage.TrainAI); !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
}
