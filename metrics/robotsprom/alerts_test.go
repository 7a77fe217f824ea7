package robotsprom

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlertMetrics checks that the metrics and the label values in alerts.yml exist.
func TestAlertMetrics(t *testing.T) {
	text, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\b(collyrobots_\w+)(\{[^}]*\})?`)
	matcher := regexp.MustCompile(`(\w+)=~?"([^"]*)"`)
	found := metric.FindAllStringSubmatch(string(text), -1)
	if len(found) < 8 {
		t.Fatalf("alerts.yml has %d metrics", len(found))
	}
	for _, m := range found {
		f, _ := figureOf(m[1])
		if f == nil {
			t.Errorf("there is no metric %s", m[1])
			continue
		}
		values := make(map[string]bool)
		for _, label := range f.Labels {
			for _, value := range label.Values {
				values[label.Name+"="+value] = true
			}
		}
		for _, pair := range matcher.FindAllStringSubmatch(m[2], -1) {
			for value := range strings.SplitSeq(pair[2], "|") {
				if !values[pair[1]+"="+value] {
					t.Errorf("%s has no label %s with the value %s", m[1], pair[1], value)
				}
			}
		}
	}
}

// TestPromtool checks the alerts, their tests and the queries of the board with Prometheus.
func TestPromtool(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not installed: on Debian and Ubuntu, apt-get install prometheus")
	}
	promtool := func(args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	promtool("check", "rules", "alerts.yml")
	promtool("test", "rules", "alerts_test.yml")
	queries := filepath.Join(t.TempDir(), "queries.yml")
	writeQueries(t, queries)
	promtool("check", "rules", queries)
}

// writeQueries writes the queries of the board as recording rules. The file is JSON, which is also
// YAML.
func writeQueries(t *testing.T, file string) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	g := group{Name: "board"}
	variables := strings.NewReplacer("$job", ".+", "$instance", ".+", "$crawl", ".*", "$__rate_interval", "1m")
	for _, p := range readBoard(t).Panels {
		for _, q := range p.Targets {
			g.Rules = append(g.Rules, rule{Record: "query", Expr: variables.Replace(q.Expr)})
		}
	}
	if len(g.Rules) < 20 {
		t.Fatalf("the board has %d queries", len(g.Rules))
	}
	text, err := json.Marshal(map[string][]group{"groups": {g}})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
