package prom

import (
	"bytes"
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

// A board is the content of board.json. It has every field that is used there, so that a misspelled
// field is an error.
type board struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Description   string   `json:"description"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	GraphTooltip  int      `json:"graphTooltip"`
	Refresh       string   `json:"refresh"`
	Timezone      string   `json:"timezone"`
	Time          struct{ From, To string }
	Timepicker    struct{} `json:"timepicker"`
	Links         []any    `json:"links"`
	Annotations   struct{ List []any }
	Templating    struct{ List []variable }
	Panels        []panel `json:"panels"`
}

type variable struct {
	Name, Type, Label, Definition, AllValue, Regex string
	Datasource                                     datasource
	Query                                          any
	Current                                        map[string]any
	Options                                        []any
	Multi, IncludeAll                              bool
	Hide, Refresh, Sort                            int
}

type datasource struct{ Type, UID string }

type panel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	GridPos                  struct{ X, Y, W, H int }
	Datasource               datasource
	Panels                   []panel
	Options                  map[string]any
	FieldConfig              struct {
		Overrides []any
		Defaults  struct {
			Unit, NoValue string
			Min           float64
			Decimals      int
			Color         struct{ Mode string }
			Custom        map[string]any
			Thresholds    struct {
				Mode  string
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
	}
	Targets []target
}

type target struct {
	RefID, Expr, LegendFormat, EditorMode string
	Range                                 bool
	Datasource                            datasource
}

var ofBoard = datasource{"prometheus", "${datasource}"}

func readBoard(t *testing.T) board {
	t.Helper()
	text, err := os.ReadFile("board.json")
	if err != nil {
		t.Fatal(err)
	}
	var b board
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		t.Fatal(err)
	}
	if len(b.Panels) < 20 {
		t.Fatalf("%d panels", len(b.Panels))
	}
	return b
}

func TestBoard(t *testing.T) {
	b := readBoard(t)
	if b.UID == "" || b.Title != "collyrobots" || b.SchemaVersion < 36 || b.Time.From == "" || b.Time.To == "" {
		t.Errorf("fields of the board: %q, %q, %d, %v", b.UID, b.Title, b.SchemaVersion, b.Time)
	}
	variables := b.Templating.List
	if len(variables) == 0 || variables[0].Name != "datasource" || variables[0].Type != "datasource" || variables[0].Query != "prometheus" || variables[0].Label != "Data source" {
		t.Fatalf("no variable for the data source: %+v", variables)
	}
	names := ""
	for _, v := range variables[1:] {
		names += v.Name + " "
		query := fmt.Sprintf(", %s)", v.Name)
		if v.Label != strings.ToUpper(v.Name[:1])+v.Name[1:] || v.Type != "query" || v.Datasource != ofBoard || !v.Multi || !v.IncludeAll || v.Refresh != 2 || !strings.HasSuffix(v.Definition, query) {
			t.Errorf("the variable %q: %+v", v.Name, v)
		}
		// A metric without the label crawl matches ".*" but not ".+".
		if want := map[bool]string{false: ".+", true: ".*"}[v.Name == "crawl"]; v.AllValue != want {
			t.Errorf("all values of the variable %q match %q, want %q", v.Name, v.AllValue, want)
		}
	}
	if names != "job instance crawl " {
		t.Errorf("the board has the variables %q", names)
	}
	if b.Editable {
		t.Error("the board can be edited, so that changes in Grafana get lost")
	}
	ids, titles := make(map[int]bool), make(map[string]bool)
	for _, p := range b.Panels {
		if p.ID <= 0 || ids[p.ID] || titles[p.Type+p.Title] || p.Title == "" {
			t.Errorf("panel %d %q: its ID or title is missing or not unique", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Type+p.Title] = true, true
		if p.Type == "row" {
			continue
		}
		if p.Type != "stat" && p.Type != "timeseries" || p.Description == "" || p.Datasource != ofBoard || len(p.Targets) == 0 {
			t.Errorf("panel %q: type %q, %q, %v, %d queries", p.Title, p.Type, p.Description, p.Datasource, len(p.Targets))
		}
		if units := []string{"none", "short", "reqps", "cps", "cpm", "s", "Bps"}; !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
			t.Errorf("panel %q has the unit %q", p.Title, p.FieldConfig.Defaults.Unit)
		}
		for i, q := range p.Targets {
			if q.RefID != string(rune('A'+i)) || q.LegendFormat == "" || q.Datasource != ofBoard {
				t.Errorf("panel %q, query %d: %+v", p.Title, i, q)
			}
		}
	}
	if p := b.Panels[1]; !strings.Contains(p.Targets[0].Expr, "collyrobots_gap_over_delay_ratio") || p.FieldConfig.Defaults.Thresholds.Steps[0].Color != "red" ||
		*p.FieldConfig.Defaults.Thresholds.Steps[1].Value != 1 {
		t.Errorf("the first panel is %q", p.Title)
	}
}

// TestPanelsDoNotOverlap checks that each cell of the board belongs to at most one panel.
func TestPanelsDoNotOverlap(t *testing.T) {
	taken := make(map[[2]int]string)
	for _, p := range readBoard(t).Panels {
		if p.GridPos.X < 0 || p.GridPos.W < 3 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is at %+v", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[cell]; ok {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				taken[cell] = p.Title
			}
		}
	}
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
	for query, want := range map[string]string{ // mistakes that checkQuery must find
		`sum(rate(collyrobots_requests_total{SEL}[5m]))`:                                      "",
		`sum(rate(collyrobots_request_total{SEL}[5m]))`:                                       "no metric",
		`sum(collyrobots_requests_total{SEL})`:                                                "without rate",
		`collyrobots_requests_total`:                                                          "job",
		`sum by (reason) (rate(collyrobots_requests_total{SEL}[$__rate_interval]))`:           "label reason",
		`sum(rate(collyrobots_hosts{SEL}[$__rate_interval]))`:                                 "not a counter",
		`histogram_quantile(0.5, sum(rate(collyrobots_request_gap_seconds_bucket{SEL}[5m])))`: "without le",
		`sum(rate(collyrobots_request_gap_seconds_bucket{SEL}[5m]))`:                          "histogram_quantile",
		`sum(rate(collyrobots_request_gap_seconds{SEL}[5m]))`:                                 "no metric",
		`sum(rate(collyrobots_requests_total{SEL}[5m])`:                                       "brackets",
	} {
		query = strings.ReplaceAll(query, "{SEL}", selection+"}")
		if _, err := checkQuery(query, "all"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %q", query, err, want)
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
