package batch

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A line is one line of the output.
type line struct {
	Record  int64
	Agent   string
	URL     string
	Allowed *bool
	Line    int
	SHA256  string
	Error   string
}

// short returns the line without its hash, in a short form.
func (l line) short() string {
	switch {
	case l.Error != "":
		return fmt.Sprintf("%d %s error: %s", l.Record, l.URL, l.Error)
	case *l.Allowed:
		return fmt.Sprintf("%d %s %s allowed by %d", l.Record, l.Agent, l.URL, l.Line)
	}
	return fmt.Sprintf("%d %s %s denied by %d", l.Record, l.Agent, l.URL, l.Line)
}

// decide runs records and returns the lines of the output.
func decide(t *testing.T, input string, o Options) []line {
	t.Helper()
	var out bytes.Buffer
	summary, err := Run(strings.NewReader(input), &out, o)
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(t, out.Bytes())
	faults := 0
	for _, l := range lines {
		if l.Error != "" {
			faults++
		}
	}
	if summary.Errors != int64(faults) || summary.Decisions != int64(len(lines)-faults) {
		t.Errorf("summary %+v, but %d lines with %d errors", summary, len(lines), faults)
	}
	return lines
}

func linesOf(t *testing.T, out []byte) []line {
	t.Helper()
	var lines []line
	for text := range bytes.Lines(out) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

// expect checks the lines in their short form.
func expect(t *testing.T, lines []line, want ...string) {
	t.Helper()
	for i := range max(len(lines), len(want)) {
		got, expected := "no line", "no line"
		if i < len(lines) {
			got = lines[i].short()
		}
		if i < len(want) {
			expected = want[i]
		}
		if got != expected && !(strings.HasSuffix(expected, "...") && strings.HasPrefix(got, strings.TrimSuffix(expected, "..."))) {
			t.Errorf("line %d: %s\nwant %s", i+1, got, expected)
		}
	}
}

const robots = "User-agent: *\nDisallow: /x\nAllow: /x/y\n"

func TestRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte(robots), 0o600); err != nil {
		t.Fatal(err)
	}
	input := `{"robots":"User-agent: *\nDisallow: /x\n","agent":"a","url":"https://example.com/x?q"}
{"robots":"User-agent: *\nDisallow: /x\n","agent":"a","urls":["/x","/y","/x#z","//x","/%zz"]}

{"file":"` + filepath.ToSlash(file) + `","agent":"b","url":"/x","urls":["/x/y"]}
{"robots_base64":"VXNlci1hZ2VudDogKgpEaXNhbGxvdzogL+kK","agent":"a","url":"/%E9"}
{"robots":"","agent":"a","url":"/x","more":1}
{"robots":"User-agent: b\nDisallow: /","url":"/x"}
`
	lines := decide(t, input, Options{Agents: []string{"b", "c"}, URLs: []string{"/unused"}})
	expect(t, lines,
		"1 a https://example.com/x?q denied by 2",
		"2 a /x denied by 2", "2 a /y allowed by 0", "2 a /x#z denied by 2", "2 a //x allowed by 0", "2 a /%zz allowed by 0",
		"4 b /x denied by 2", "4 b /x/y allowed by 3",
		"5 a /%E9 denied by 2",
		"6 a /x allowed by 0",
		"7 b /x denied by 2", "7 c /x allowed by 0",
	)
	const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := lines[9].SHA256; got != emptyHash {
		t.Errorf("hash %s, want %s", got, emptyHash)
	}
	if lines[6].SHA256 != lines[7].SHA256 || lines[6].SHA256 == lines[0].SHA256 {
		t.Errorf("hashes %s, %s, %s", lines[0].SHA256, lines[6].SHA256, lines[7].SHA256)
	}
}

func TestBadRecords(t *testing.T) {
	input := strings.Join([]string{
		`{"robots":"","url":"/x","agent":"a"}`,
		`not JSON`,
		`[]`,
		`{"robots":1}`,
		`{"url":"/x","agent":"a"}`,
		`{"robots":"","file":"f","url":"/x","agent":"a"}`,
		`{"file":"/no/such/file","url":"/x","agent":"a"}`,
		`{"robots":"","agent":"a"}`,
		`{"robots":"","url":"/x"}`,
		`{"robots":"","urls":["/x","x","http://[",""],"agent":"a"}`,
		strings.Repeat("x", maxRecord+1),
		`{"robots":"","url":"/\u00e9\"\u0001","agent":"a"}`,
	}, "\r\n")
	expect(t, decide(t, input, Options{}),
		"1 a /x allowed by 0",
		"2  error: invalid character 'o' in literal null (expecting 'u')",
		"3  error: json: cannot unmarshal array...",
		"4  error: json: cannot unmarshal number...",
		"5  error: the record has 0 of robots, robots_base64 and file, want 1",
		"6  error: the record has 2 of robots, robots_base64 and file, want 1",
		"7  error: open /no/such/file: ...",
		"8  error: the record has neither url nor urls, and no URL is set for all records",
		"9  error: the record has no agent, and no agent is set for all records",
		"10 a /x allowed by 0", `10 x error: "x" is neither an absolute URL...`, "10 http://[ error: parse...", `10  error: "" is neither...`,
		"11  error: the line is longer than 16777216 bytes",
		"12 a /\u00e9\"\u0001 allowed by 0",
	)
	expect(t, decide(t, "", Options{}))
	expect(t, decide(t, "\n\n", Options{}))
}

// TestOrder checks that the output has the order of the input, whatever the number of workers is.
func TestOrder(t *testing.T) {
	var input strings.Builder
	const n = 20_000
	for i := range n {
		fmt.Fprintf(&input, `{"robots":"User-agent: *\nDisallow: /%d$\n","agent":"a","url":"/%d"}`+"\n", i%97, i%89)
	}
	for _, workers := range []int{1, 3, 16} {
		lines := decide(t, input.String(), Options{Workers: workers})
		if len(lines) != n {
			t.Fatalf("%d lines", len(lines))
		}
		for i, l := range lines {
			if l.Record != int64(i+1) || l.URL != fmt.Sprint("/", i%89) || *l.Allowed != (i%97 != i%89) {
				t.Fatalf("line %d: %s", i+1, l.short())
			}
		}
	}
}

// TestManyURLs checks a record whose output is much larger than a piece.
func TestManyURLs(t *testing.T) {
	urls := strings.Repeat(`"/a",`, 50_000) + `"/x"`
	input := `{"robots":"User-agent: *\nDisallow: /x\n","agent":"a","urls":[` + urls + "]}\n"
	lines := decide(t, input+input, Options{Workers: 2})
	if len(lines) != 2*50_001 || lines[50_000].short() != "1 a /x denied by 2" || lines[100_001].short() != "2 a /x denied by 2" {
		t.Errorf("%d lines", len(lines))
	}
}

// endless is an input that does not end.
type endless struct{ record string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for len(p)-n >= len(e.record) {
		n += copy(p[n:], e.record)
	}
	return n, nil
}

// TestFailingWriter checks that Run ends if its output fails, although the input does not end.
func TestFailingWriter(t *testing.T) {
	failing := errors.New("disk full")
	reader, writer := io.Pipe()
	reader.CloseWithError(failing)
	input := endless{record: `{"robots":"","agent":"a","url":"/x"}` + "\n"}
	if _, err := Run(input, writer, Options{Workers: 3}); !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
}

// TestFailingReader checks that the records before an error are decided.
func TestFailingReader(t *testing.T) {
	failing := errors.New("cable cut")
	reader, writer := io.Pipe()
	go func() {
		io.WriteString(writer, `{"robots":"","agent":"a","url":"/x"}`+"\n")
		writer.CloseWithError(failing)
	}()
	var out bytes.Buffer
	_, err := Run(reader, &out, Options{})
	if !errors.Is(err, failing) {
		t.Errorf("error %v", err)
	}
	expect(t, linesOf(t, out.Bytes()), "1 a /x allowed by 0")
}

// peakWriter notes the largest heap that it sees.
type peakWriter struct {
	writes int
	bytes  int64
	peak   uint64
}

func (w *peakWriter) Write(p []byte) (int, error) {
	w.writes++
	w.bytes += int64(len(p))
	if w.writes%64 == 0 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		w.peak = max(w.peak, stats.HeapAlloc)
	}
	return len(p), nil
}

// TestMemory decides about a large input. Each record has another file, and much more output than
// input.
func TestMemory(t *testing.T) {
	urls := strings.Repeat(`"/a",`, 2_000) + `"/x"`
	reader, writer := io.Pipe()
	go func() {
		for i := range 1_000 {
			fmt.Fprintf(writer, `{"robots":"User-agent: *\nDisallow: /%d%s\n","agent":"a","urls":[%s]}`+"\n", i, strings.Repeat("y", 20_000), urls)
		}
		writer.Close()
	}()
	w := &peakWriter{}
	summary, err := Run(reader, w, Options{Workers: 4})
	if err != nil || summary.Decisions != 1_000*2_001 {
		t.Fatalf("error %v, summary %+v", err, summary)
	}
	const limit = cacheSize + 64<<20
	if w.peak > limit {
		t.Errorf("the heap had %d MiB, want at most %d", w.peak>>20, limit>>20)
	}
	t.Logf("%d MiB of output, at most %d MiB of heap", w.bytes>>20, w.peak>>20)
}

// TestCacheIsBounded checks that the cache drops files.
func TestCacheIsBounded(t *testing.T) {
	f := newFiles(dialect.RFC9309())
	const size = 1 << 20
	var last *group
	for i := range cacheSize / size / 2 {
		body := append([]byte(fmt.Sprintf("User-agent: *\nDisallow: /%d", i)), bytes.Repeat([]byte("y"), size)...)
		last = f.ofBody(body, "a")
	}
	if weight := f.cache.WeightedSize(); weight > cacheSize {
		t.Errorf("the cache has %d bytes", weight)
	}
	if f.cache.EstimatedSize() < 10 || last == nil {
		t.Errorf("the cache has %d files", f.cache.EstimatedSize())
	}
}

func TestGzip(t *testing.T) {
	var input bytes.Buffer
	for i := range 3 { // several members, as the tools of archives write them
		z := gzip.NewWriter(&input)
		fmt.Fprintf(z, `{"robots":"","agent":"a","url":"/%d"}`+"\n", i)
		z.Close()
	}
	expect(t, decide(t, input.String(), Options{}), "1 a /0 allowed by 0", "2 a /1 allowed by 0", "3 a /2 allowed by 0")
	_, err := Run(bytes.NewReader(input.Bytes()[:30]), io.Discard, Options{})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncated: error %v", err)
	}
	if _, err := Run(strings.NewReader("\x1f\x8bxx"), io.Discard, Options{}); err == nil {
		t.Error("a bad gzip header is accepted")
	}
}

// FuzzRun checks that no input makes Run panic or write a line that is not JSON.
func FuzzRun(f *testing.F) {
	f.Add([]byte(`{"robots":"User-agent: *\nDisallow: /x\n","agent":"a","urls":["/x","x"]}` + "\n{}\n"))
	f.Add([]byte(warcOf(warcRecord{uri: "https://example.com/robots.txt", http: "HTTP/1.1 200 OK\r\n\r\n" + robots})))
	f.Add([]byte("WARC/1.0\r\nContent-Length: -1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		if bytes.Contains(input, []byte("file")) {
			return // the fuzzer could name files of this machine
		}
		var out bytes.Buffer
		summary, _ := Run(bytes.NewReader(input), &out, Options{Agents: []string{"a"}, URLs: []string{"/"}, Workers: 2})
		if lines := linesOf(t, out.Bytes()); int64(len(lines)) != summary.Decisions+summary.Errors {
			t.Errorf("%d lines, summary %+v", len(lines), summary)
		}
	})
}
