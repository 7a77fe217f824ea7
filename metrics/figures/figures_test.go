package figures

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// codesOf returns the values of the constants in a file that have the given type, or whose names
// have the given prefix.
func codesOf(t *testing.T, file, typeName, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../report/"+file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		ident, _ := spec.Type.(*ast.Ident)
		literal, _ := spec.Values[0].(*ast.BasicLit)
		typed := typeName != "" && ident != nil && ident.Name == typeName
		named := prefix != "" && strings.HasPrefix(spec.Names[0].Name, prefix)
		if literal != nil && (typed || named) {
			code, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return true
	})
	return codes
}

// TestLabelsHaveAllCodes checks that the labels have all codes of the root package.
func TestLabelsHaveAllCodes(t *testing.T) {
	for _, test := range []struct {
		label                  Label
		file, typeName, prefix string
	}{
		{requestKind, "event.go", "RequestKind", ""},
		{source, "event.go", "DelaySource", ""},
		{reason, "decision.go", "Reason", ""},
		{robotsStatus, "robots.go", "RobotsStatus", ""},
	} {
		if codes := codesOf(t, test.file, test.typeName, test.prefix); len(codes) < 4 || !slices.Equal(codes, test.label.Values) {
			t.Errorf("%s has %q, %s has %q", test.label.Name, test.label.Values, test.file, codes)
		}
	}
	if want := append(slices.Clone(reason.Values), Other); !slices.Equal(denial.Values, want) {
		t.Errorf("reasons of denials are %q, want %q", denial.Values, want)
	}
}

// TestFiguresAreComplete checks that each figure can be published, and that its name is unique.
func TestFiguresAreComplete(t *testing.T) {
	name := regexp.MustCompile(`^collyrobots(\.[a-z]+(_[a-z]+)*)+$`)
	unit := regexp.MustCompile(`^(s|By|1|\{[a-z]+\})$`)
	names := make(map[string]bool)
	for _, f := range All() {
		if names[f.Name] || !name.MatchString(f.Name) || !unit.MatchString(f.Unit) {
			t.Errorf("name %s, unit %s", f.Name, f.Unit)
		}
		names[f.Name] = true
		if f.Help == "" || strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s has the help %q", f.Name, f.Help)
		}
		if (f.Kind == Histogram) != (len(f.Buckets) > 0) || !slices.IsSorted(f.Buckets) || f.Read != nil && len(f.Labels) > 1 {
			t.Errorf("%s: kind %d, buckets %v, %d labels", f.Name, f.Kind, f.Buckets, len(f.Labels))
		}
		if n := len(f.Series()); n == 0 || n > 50 {
			t.Errorf("%s has %d series", f.Name, n)
		}
	}
	for a := range names { // a name must not be the namespace of another name
		for b := range names {
			if strings.HasPrefix(b, a+".") {
				t.Errorf("%s is in the namespace %s, which is also a name", b, a)
			}
		}
	}
}

// TestHear checks that all labels are known in advance, for every status that a site may send.
func TestHear(t *testing.T) {
	events := []*report.Event{
		{Kind: report.EventDenied}, {Kind: report.EventMissed, Count: 7}, {Kind: "of another version"},
		{Kind: report.EventSlowed, Status: 429}, {Kind: report.EventSlowed, Status: 503},
	}
	for status := range 1000 {
		events = append(events, &report.Event{Kind: report.EventAnswered, RequestKind: report.RequestKind(requestKind.Values[status%5]), Status: status, Took: time.Second, Bytes: 3})
	}
	for _, reason := range reason.Values {
		events = append(events, &report.Event{Kind: report.EventDenied, Decision: &report.Decision{Reason: report.Reason(reason)}})
	}
	for _, source := range source.Values {
		events = append(events, &report.Event{Kind: report.EventStarted, RequestKind: report.RequestRedirect, Gap: time.Minute, Delay: time.Second, Source: report.DelaySource(source)})
	}
	events = append(events,
		&report.Event{Kind: report.EventStarted, RequestKind: report.RequestPage, Gap: time.Minute},
		&report.Event{Kind: report.EventStarted, RequestKind: report.RequestPage, Delay: time.Minute, Source: report.SourceMinDelay})

	sums := make(map[*Figure]float64)
	for _, e := range events {
		Hear(e, func(f *Figure, value float64, labels Labels) {
			sums[f] += value
			if !slices.Contains(f.Series(), labels) {
				t.Errorf("%s gets the labels %q", f.Name, labels)
			}
		})
	}
	for f, want := range map[*Figure]float64{
		Requests: 12, Gaps: 10 * 60, Delays: 10, Responses: 1000, Durations: 1000, Bytes: 3000, Denials: float64(len(reason.Values) + 1), Slowdowns: 2, Missed: 7,
	} {
		if sums[f] != want {
			t.Errorf("%s: %v, want %v", f.Name, sums[f], want)
		}
	}
	if len(sums) != len(heard) {
		t.Errorf("%d of %d figures were counted", len(sums), len(heard))
	}
}
