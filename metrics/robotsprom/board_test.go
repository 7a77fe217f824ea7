package robotsprom

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/metrics/figures"
)

// A board has the panels of board.json.
type board struct{ Panels []panel }

type panel struct {
	Title   string
	Targets []target
}

type target struct{ Expr, LegendFormat string }

func readBoard(t *testing.T) board {
	t.Helper()
	text, err := os.ReadFile("board.json")
	if err != nil {
		t.Fatal(err)
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestQueries checks that the metrics in the queries of the board exist and are used as their types
// require.
func TestQueries(t *testing.T) {
	used := make(map[string]bool)
	for _, p := range readBoard(t).Panels {
		for _, q := range p.Targets {
			names, err := checkQuery(q.Expr, q.LegendFormat)
			if err != nil {
				t.Errorf("panel %q: %v in %s", p.Title, err, q.Expr)
			}
			for _, name := range names {
				used[name] = true
			}
		}
	}
	for _, f := range figures.All() {
		if !used[nameOf(f)] {
			t.Errorf("no panel has %s", nameOf(f))
		}
	}
}

// selection begins the matchers of each metric.
const selection = `{job=~"$job", instance=~"$instance", crawl=~"$crawl"`

var (
	// selector matches a metric in a query: the function that is called with it, its name, its
	// labels and its range.
	selector = regexp.MustCompile(`(\w+\()?\b(collyrobots_\w+)(\{[^}]*\})?(\[[^\]]*\])?`)
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
	legend   = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// checkQuery returns the metrics that a query uses, or an error if the query is wrong.
func checkQuery(query, legendFormat string) (names []string, err error) {
	if strings.Count(query, "(") != strings.Count(query, ")") {
		return nil, errors.New("brackets do not match")
	}
	labels := make(map[string]bool)
	for _, m := range selector.FindAllStringSubmatch(query, -1) {
		call, name, matchers, over := m[1], m[2], m[3], m[4]
		f, part := figureOf(name)
		if f == nil {
			return nil, fmt.Errorf("there is no metric %s", name)
		}
		names = append(names, nameOf(f))
		if !strings.HasPrefix(matchers, selection) {
			return nil, fmt.Errorf("%s does not select the job, the instance and the crawl", name)
		}
		rated := call == "rate(" || call == "increase("
		switch grows := f.Kind == figures.Counter || f.Kind == figures.Histogram; {
		case rated && !grows:
			return nil, fmt.Errorf("%s is not a counter", name)
		case !rated && grows:
			return nil, fmt.Errorf("%s without rate", name)
		case rated != (over != ""):
			return nil, fmt.Errorf("%s has the range %q in %s)", name, over, call)
		case part == "_bucket" && !strings.HasPrefix(query, "histogram_quantile("):
			return nil, fmt.Errorf("%s without histogram_quantile", name)
		}
		for _, label := range f.Labels {
			labels[label.Name] = true
		}
		labels["le"] = labels["le"] || part == "_bucket"
	}
	by := make(map[string]bool)
	for _, m := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(m[1], ", ") {
			by[label] = true
			if !labels[label] {
				return nil, fmt.Errorf("no metric of the query has the label %s", label)
			}
		}
	}
	if strings.HasPrefix(query, "histogram_quantile(") && !by["le"] {
		return nil, fmt.Errorf("histogram_quantile without le")
	}
	for _, m := range legend.FindAllStringSubmatch(legendFormat, -1) {
		if !by[m[1]] {
			return nil, fmt.Errorf("the legend has the label %s, but the query does not group by it", m[1])
		}
	}
	return names, nil
}

// figureOf returns the figure with a given name, and the suffix if it is a part of a histogram.
func figureOf(name string) (f *figures.Figure, part string) {
	for _, f := range figures.All() {
		rest, ok := strings.CutPrefix(name, nameOf(f))
		histogram := f.Kind == figures.Histogram && slices.Contains([]string{"_bucket", "_sum", "_count"}, rest)
		if ok && (histogram || f.Kind != figures.Histogram && rest == "") {
			return f, rest
		}
	}
	return nil, ""
}
