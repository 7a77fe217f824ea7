package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, id string
		want        bool
	}{
		{"", "a/b/c", true},
		{"a/b/", "a/b/c", true},
		{"b", "a/b/c", false},
		{"a/*/c", "a/b/c", true},
		{"a/*", "a/b/c", false},
		{"a/b/[cd]", "a/b/c", true},
		{"a/b/[", "a/b/c", false},
	} {
		if got := Match(test.pattern, test.id); got != test.want {
			t.Errorf("%q, %q: %v, want %v", test.pattern, test.id, got, test.want)
		}
	}
}

// suite is a small suite of cases.
func suite() []conformance.Case {
	line := 2
	return []conformance.Case{
		{ID: "one/1/a", Source: conformance.Source{Section: "First"}, Dialects: []string{"rfc9309", "google"}, Expect: conformance.Denied, Line: &line},
		{ID: "one/1/b", Source: conformance.Source{Section: "First"}, Dialects: []string{"rfc9309"}, Expect: conformance.Allowed},
		{ID: "one/2/c", Source: conformance.Source{Section: "Second"}, Dialects: []string{"google"}, Expect: conformance.Allowed, Disputed: true, Reason: "x"},
		{ID: "two/1/d", Source: conformance.Source{Section: "Third"}, Dialects: []string{"google"}, Expect: conformance.Allowed},
	}
}

// answering returns a parser that gives the same answer to all questions.
func answering(text string) Parser {
	return func(_ context.Context, questions []conformance.Question) ([]conformance.Answer, error) {
		answers := make([]conformance.Answer, len(questions))
		for i := range answers {
			answers[i] = parseAnswer([]byte(text))
		}
		return answers, nil
	}
}

func column(t *testing.T, text string) Column {
	t.Helper()
	results, err := Run(t.Context(), answering(text), suite(), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return NewColumn(text, ReportOf(results))
}

func TestTable(t *testing.T) {
	columns := []Column{
		column(t, `{"allowed":true}`),
		column(t, `{"allowed":false,"line":3}`),
		column(t, `{"error":"no"}`),
		column(t, `no`),
		{Name: "none"},
	}
	want := "| case | expected | {\"allowed\":true} | {\"allowed\":false,\"line\":3} | {\"error\":\"no\"} | no | none |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n" +
		"| `one/1/a` | denied | allowed | other line | error | error | not run |\n" +
		"| `one/1/b` | allowed | ok | denied | error | error | not run |\n" +
		"| `one/2/c` | allowed (disputed) | ok | denied | error | error | not run |\n" +
		"| `two/1/d` | allowed | ok | denied | error | error | not run |\n"
	if got := Table(Rows(suite()), columns); got != want {
		t.Errorf("table\n%swant\n%s", got, want)
	}
	want = "| section | cases | {\"allowed\":true} | none |\n| --- | --- | --- | --- |\n" +
		"| one: First | 2 | 1 | 0 |\n| **one** | **2** | **1** | **0** |\n" +
		"| two: Third | 1 | 1 | 0 |\n| **two** | **1** | **1** | **0** |\n"
	if got := Sections(Rows(suite()), []Column{columns[0], columns[4]}); got != want {
		t.Errorf("sections\n%swant\n%s", got, want)
	}
	want = "| case | of 3 parsers fail |\n| --- | --- |\n| `one/1/a` | 3 |\n| `one/1/b` | 2 |\n"
	if got := Hard(Rows(suite()), columns[:3], "one"); got != want {
		t.Errorf("hard cases\n%swant\n%s", got, want)
	}
	columns[0].Name = "first"
	columns[0].Version = "1.2"
	columns[0].Released = "2026-05"
	want = "| parser | version | released | one | two | First | Third |\n| --- | --- | --- | --- | --- | --- | --- |\n" +
		"| all scored cases |  |  | 2 | 1 | 2 | 1 |\n" +
		"| first | 1.2 | 2026-05 | 1 | 1 | 1 | 1 |\n| none |  |  | 0 | 0 | 0 | 0 |\n"
	if got := Summary(Rows(suite()), []Column{columns[0], columns[4]}, ByText, BySection); got != want {
		t.Errorf("summary\n%swant\n%s", got, want)
	}
}

func TestReport(t *testing.T) {
	results, err := Run(t.Context(), answering(`{"allowed":true}`), suite(), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	report := ReportOf(results)
	var text, lines bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	want := "FAIL one/1/a (rfc9309): allowed, want denied\n     \n     agent , \n" +
		"FAIL one/1/a (google): allowed, want denied\n     \n     agent , \n" +
		"dialect  cases  passed  disputed\nrfc9309  2      1       0\ngoogle   2      1       1\n"
	if report.Passed() || text.String() != want {
		t.Errorf("report\n%swant\n%s", &text, want)
	}
	if err := report.WriteJSON(&lines); err != nil || strings.Count(lines.String(), "\n") != len(results) {
		t.Errorf("error %v\n%s", err, &lines)
	}
	one, err := Run(t.Context(), answering(`{"allowed":true}`), suite(), Selection{Dialect: "google", Pattern: "two/"})
	if err != nil || len(one) != 1 || !ReportOf(one).Passed() {
		t.Errorf("error %v, %+v", err, one)
	}
}

// TestAskInParts checks which questions are found to take too long if a program writes each answer
// at once, and if it buffers its answers.
func TestAskInParts(t *testing.T) {
	yes := true
	right := conformance.Answer{Allowed: &yes}
	late := conformance.Answer{Error: "late"}
	for _, test := range []struct {
		questions int
		hangs     []int // numbers of questions
		buffer    int   // number of answers that the program writes together
		most      int   // maximum number of runs that take too long
	}{
		{questions: 100, hangs: nil, buffer: 1, most: 0},
		{questions: 100, hangs: []int{0, 37, 99}, buffer: 1, most: 6},
		{questions: 100, hangs: []int{37, 38}, buffer: 1, most: 4},
		{questions: 100, hangs: []int{37}, buffer: 1000, most: 9},
		{questions: 100, hangs: []int{37, 99}, buffer: 8, most: 9},
		{questions: 1, hangs: []int{0}, buffer: 1, most: 1},
	} {
		waits := 0
		ask := func(_ context.Context, part []conformance.Question) ([]conformance.Answer, error) {
			answers := make([]conformance.Answer, len(part))
			for i, q := range part {
				n, _ := strconv.Atoi(q.ID)
				if slices.Contains(test.hangs, n) {
					clear(answers[i-i%test.buffer:])
					waits++
					return answers, fmt.Errorf("wrapped: %w", errLate)
				}
				answers[i] = right
			}
			return answers, nil
		}
		var questions []conformance.Question
		for i := range test.questions {
			questions = append(questions, conformance.Question{ID: strconv.Itoa(i)})
		}
		answers, err := askInParts(t.Context(), questions, late, ask)
		if err != nil || waits > test.most {
			t.Errorf("%+v: error %v, %d runs took too long", test, err, waits)
		}
		for i, a := range answers {
			want := right
			if slices.Contains(test.hangs, i) {
				want = late
			}
			if a != want {
				t.Errorf("%+v: answer %d is %+v, want %+v", test, i, a, want)
			}
		}
	}
	broken := func(_ context.Context, part []conformance.Question) ([]conformance.Answer, error) {
		return []conformance.Answer{right, {}, {}}, errors.New("broken")
	}
	answers, err := askInParts(t.Context(), make([]conformance.Question, 3), late, broken)
	if err == nil || answers[0] != right || answers[1] != (conformance.Answer{}) {
		t.Errorf("error %v, answers %+v", err, answers)
	}
}

// FuzzParseAnswer checks that no line of a program makes parseAnswer panic, and that it returns
// either a decision or an error.
func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{`{"allowed":true,"line":1,"delay":0.5,"sitemaps":["a"]}`, `{"error":"x"}`, `{}`, `null`, `[`, "\xff"} {
		f.Add([]byte(seed))
	}
	c := suite()[0]
	f.Fuzz(func(t *testing.T, line []byte) {
		a := parseAnswer(line)
		if a.Allowed == nil && a.Error == "" {
			t.Errorf("%q: neither a decision nor an error", line)
		}
		c.Check(a)
		if _, err := json.Marshal(a); err != nil {
			t.Error(err)
		}
	})
}
