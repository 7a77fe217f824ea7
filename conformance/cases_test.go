package conformance_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/conformance"
)

// TestCases checks the rules that README.md gives for cases.
func TestCases(t *testing.T) {
	validID := regexp.MustCompile(`^[a-z0-9]+/[a-z0-9.-]+/[a-z0-9.-]+$`)
	ids := make(map[string]bool)
	abouts := make(map[string]string)
	for _, c := range conformance.Cases() {
		if !validID.MatchString(c.ID) || ids[c.ID] {
			t.Errorf("%s: the id is not valid or not unique", c.ID)
		}
		ids[c.ID] = true
		if !strings.HasSuffix(c.About, ".") || abouts[c.ID[:strings.IndexByte(c.ID, '/')]+c.About] != "" {
			t.Errorf("%s: about is not a sentence, or another case of the text has it: %s", c.ID, c.About)
		}
		abouts[c.ID[:strings.IndexByte(c.ID, '/')]+c.About] = c.ID
		if !strings.HasPrefix(c.Source.URL, "https://") || !strings.HasPrefix(c.URL, "http") {
			t.Errorf("%s: source %q, url %q", c.ID, c.Source.URL, c.URL)
		}
		if c.Clean != "" && !strings.HasPrefix(c.Clean, "http") || c.Time != c.Time.UTC() {
			t.Errorf("%s: clean %q, time %v", c.ID, c.Clean, c.Time)
		}
		if c.Expect == conformance.Denied && c.Line != nil && *c.Line == 0 {
			t.Errorf("%s: it is denied by line 0", c.ID)
		}
		if c.Has("rfc9309") && c.Delay != nil && !c.Disputed {
			t.Errorf("%s: it scores a crawl delay, which RFC 9309 does not define", c.ID)
		}
		if slices.Sort(c.Dialects); len(slices.Compact(c.Dialects)) != len(c.Dialects) {
			t.Errorf("%s: dialects %q", c.ID, c.Dialects)
		}
	}
}

// TestQuestions checks that a program gets the file that the case has, whatever its bytes are.
func TestQuestions(t *testing.T) {
	binary := 0
	for _, c := range conformance.Cases() {
		for _, q := range c.Questions() {
			line, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := conformance.ParseQuestion(line)
			if err != nil || string(got.File()) != string(c.Robots) || got.URL != c.URL || got.Agent != c.Agent || !got.Time.Equal(c.Time) {
				t.Errorf("%s: error %v, %+v", c.ID, err, got)
			}
			if got.Robots == nil {
				binary++
			}
		}
	}
	if binary < 3 {
		t.Errorf("%d files are not UTF-8", binary)
	}
}

const goodCase = `{"id":"t/s/n","about":"A.","source":{"title":"T","section":"S","url":"https://example.com"},"dialects":["rfc9309"],` +
	`"robots":"x","agent":"a","url":"https://example.com/","expect":"allowed"}`

func TestParseCase(t *testing.T) {
	if c, err := conformance.ParseCase([]byte(goodCase)); err != nil || string(c.Robots) != "x" {
		t.Fatalf("error %v, %+v", err, c)
	}
	parts := strings.Replace(goodCase, `"robots":"x"`, `"robots_parts":[{"text":"ab","times":3},{"text":"c","times":1}]`, 1)
	if c, err := conformance.ParseCase([]byte(parts)); err != nil || string(c.Robots) != "abababc" {
		t.Errorf("error %v, file %q", err, c.Robots)
	}
	for _, test := range []struct{ old, replacement, fault string }{
		{`"id":"t/s/n"`, `"id":"t/n"`, "the id must have"},
		{`"about":"A."`, `"about":""`, "must not be empty"},
		{`"section":"S"`, `"section":""`, "the source must have"},
		{`"dialects":["rfc9309"]`, `"dialects":[]`, "there are no dialects"},
		{`"robots":"x",`, ``, "0 of robots"},
		{`"robots":"x"`, `"robots":"x","robots_base64":""`, "2 of robots"},
		{`"robots":"x"`, `"robots_base64":"?"`, "illegal base64"},
		{`"robots":"x"`, `"robots_parts":[{"text":"ab","times":0}]`, "0 times 2 bytes"},
		{`"robots":"x"`, `"robots_parts":[{"text":"ab","times":9000000000000000000}]`, "robots_parts make at most"},
		{`"expect":"allowed"`, `"expect":"maybe"`, `expect is "maybe"`},
		{`"expect":"allowed"`, `"expect":"allowed","disputed":true`, "has a reason"},
		{`"expect":"allowed"`, `"expect":"allowed","reason":"x"`, "has a reason"},
		{`"expect":"allowed"`, `"expect":"allowed","expected":1`, "unknown field"},
		{`"expect":"allowed"`, `"expect":"allowed","interval":1`, "has a time"},
		{`"expect":"allowed"`, `"expect":"allowed","open":true`, "has a time"},
		{`"expect":"allowed"`, `"expect":"allowed","time":"2026-01-15T06:00:00Z"`, "has a time"},
		{`"expect":"allowed"`, `"expect":"allowed","time":"06:00","open":true`, "parsing time"},
		{`{`, `[`, "invalid character"},
	} {
		_, err := conformance.ParseCase([]byte(strings.Replace(goodCase, test.old, test.replacement, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), "conformance: ") || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: error %v, want %q", test.replacement, err, test.fault)
		}
	}
}

func TestCheck(t *testing.T) {
	yes, line, delay := true, 3, 2.5
	c := conformance.Case{
		Expect:   conformance.Allowed,
		Line:     &line,
		Delay:    &delay,
		Sitemaps: &[]string{"a"},
		Clean:    "https://example.com/",
		Interval: &delay,
		Open:     &yes,
	}
	for _, test := range []struct {
		answer string
		faults string
	}{
		{`{"allowed":true}`, ""},
		{`{"allowed":true,"line":3,"delay":2.5,"sitemaps":["a"]}`, ""},
		{`{"allowed":false}`, "denied, want allowed"},
		{`{"allowed":true,"line":4}`, "line 4, want 3"},
		{`{"allowed":true,"delay":2}`, "delay 2, want 2.5"},
		{`{"allowed":true,"sitemaps":[]}`, `sitemaps [], want ["a"]`},
		{`{"allowed":true,"clean":"https://example.com/","interval":2.5,"open":true}`, ""},
		{`{"allowed":true,"clean":"https://example.com/?a"}`, `clean "https://example.com/?a", want "https://example.com/"`},
		{`{"allowed":true,"interval":0}`, "interval 0, want 2.5"},
		{`{"allowed":true,"open":false}`, "open false, want true"},
		{`{"allowed":false,"line":0}`, "denied, want allowed; line 0, want 3"},
		{`{"allowed":true,"error":"no"}`, "error: no"},
		{`{}`, "no answer"},
	} {
		var a conformance.Answer
		if err := json.Unmarshal([]byte(test.answer), &a); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Check(a), "; "); got != test.faults {
			t.Errorf("%s: %q, want %q", test.answer, got, test.faults)
		}
	}
	unasked := conformance.Case{Expect: conformance.Allowed}
	if got := unasked.Check(conformance.Answer{Allowed: &yes, Line: &line, Delay: &delay, Clean: "x", Interval: &delay, Open: &yes}); got != nil {
		t.Errorf("the case does not ask for more than the decision: %q", got)
	}
}

func TestServe(t *testing.T) {
	in := `{"id":"1","robots":"a","agent":"x","url":"u"}` + "\n" + `{"id":"2","robots_base64":"/w==","new":1}` + "\n"
	var out strings.Builder
	var files []string
	err := conformance.Serve(strings.NewReader(in), &out, func(q conformance.Question) conformance.Answer {
		files = append(files, string(q.File()))
		return conformance.Answer{Error: q.ID}
	})
	if want := `{"error":"1"}` + "\n" + `{"error":"2"}` + "\n"; err != nil || out.String() != want || !slices.Equal(files, []string{"a", "\xff"}) {
		t.Errorf("error %v, output %q, files %q", err, out.String(), files)
	}
	for _, bad := range []string{"x\n", `{"id":"1"}` + "\n", `{"robots":"","robots_base64":"/w=="}` + "\n"} {
		if err := conformance.Serve(strings.NewReader(bad), &out, nil); err == nil || !strings.HasPrefix(err.Error(), "conformance: question: ") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// FuzzParseCase checks that no line makes ParseCase panic, and that a case that it accepts can be
// asked.
func FuzzParseCase(f *testing.F) {
	f.Add([]byte(goodCase))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := conformance.ParseCase(line)
		if err != nil {
			return
		}
		for _, q := range c.Questions() {
			if string(q.File()) != string(c.Robots) {
				t.Errorf("file %q, want %q", q.File(), c.Robots)
			}
		}
	})
}

// TestFetchCases checks the rules that README.md gives for fetch cases.
func TestFetchCases(t *testing.T) {
	ids := make(map[string]bool)
	count := make(map[string]int)
	for _, c := range conformance.FetchCases() {
		if !strings.HasPrefix(c.ID, "fetch/") || ids[c.ID] {
			t.Errorf("%s: the id does not begin with fetch/ or is not unique", c.ID)
		}
		ids[c.ID] = true
		for _, d := range c.Dialects {
			count[d]++
		}
		for _, u := range slices.Concat(c.Requested, c.Optional) {
			if !slices.Contains(c.Fetch, u) && !strings.HasPrefix(c.ID, "fetch/page-redirect/") {
				t.Errorf("%s: %s is requested but not to be fetched", c.ID, u)
			}
		}
	}
	t.Logf("%d fetch cases; by dialect: %v", len(ids), count)
	if len(ids) < 50 {
		t.Errorf("%d fetch cases", len(ids))
	}
}

const goodFetchCase = `{"id":"fetch/s/n","about":"A.","source":{"title":"T","section":"S","url":"https://example.com"},"dialects":["rfc9309"],` +
	`"agent":"a","site":{"/robots.txt":[{"status":404}]},"fetch":["{site}/a"],"requested":["{site}/a"]}`

func TestParseFetchCase(t *testing.T) {
	if _, err := conformance.ParseFetchCase([]byte(goodFetchCase)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ old, replacement, fault string }{
		{`"fetch":["{site}/a"]`, `"fetch":[]`, "there is nothing to fetch"},
		{`"requested":["{site}/a"]`, `"requested":["/a"]`, `"/a" does not begin with`},
		{`"/robots.txt":`, `"robots.txt":`, `path "robots.txt" has no replies`},
		{`[{"status":404}]`, `[]`, `path "/robots.txt" has no replies`},
		{`{"status":404}`, `{"status":100}`, "status 100"},
		{`{"status":404}`, `{"missing":-1}`, "-1 missing bytes"},
		{`{"status":404}`, `{"parts":[{"text":"a","times":0}]}`, "0 times 1 bytes"},
		{`"agent":"a"`, `"agent":""`, "must not be empty"},
		{`"agent":"a"`, `"agents":"a"`, "unknown field"},
	} {
		_, err := conformance.ParseFetchCase([]byte(strings.Replace(goodFetchCase, test.old, test.replacement, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), "conformance: ") || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: error %v, want %q", test.replacement, err, test.fault)
		}
	}
}

// FuzzParseFetchCase checks that no line makes ParseFetchCase panic, and that the requests of a
// case that it accepts can be checked.
func FuzzParseFetchCase(f *testing.F) {
	f.Add([]byte(goodFetchCase), "GET {site}/robots.txt")
	f.Fuzz(func(t *testing.T, line []byte, request string) {
		c, err := conformance.ParseFetchCase(line)
		if err != nil {
			return
		}
		if faults := c.Check([]string{request}); len(c.Requested) > 1 && len(faults) == 0 {
			t.Errorf("%q: one request is enough for %q", request, c.Requested)
		}
	})
}
