package batch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// corpusDir contains real robots.txt files, and crawlers and URLs to decide about.
// The files belong to others, so the directory is outside of the repository.
const corpusDir = "../../../../../shared/corpus"

// A corpusCase is a file, a crawler, and targets.
type corpusCase struct {
	File    string
	Agent   string
	Targets []string
}

func corpus(t testing.TB) []corpusCase {
	t.Helper()
	f, err := os.Open(filepath.Join(corpusDir, "google_verdicts.jsonl.gz"))
	if err != nil {
		t.Skipf("the corpus of real robots.txt files is missing: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []corpusCase
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c corpusCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// records returns the corpus as input for Run, with one record for each target or for each case.
func records(t testing.TB, cases []corpusCase, single bool) (input []byte, targets int) {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	for _, c := range cases {
		file := filepath.Join(corpusDir, c.File)
		targets += len(c.Targets)
		if !single {
			if err := encoder.Encode(map[string]any{"file": file, "agent": c.Agent, "urls": c.Targets}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, target := range c.Targets {
			if err := encoder.Encode(map[string]any{"file": file, "agent": c.Agent, "url": target}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Bytes(), targets
}

// BenchmarkCorpus decides about the corpus. An operation is one decision. The metric cpu-ns/op is
// the time of all processors together, which does not depend on other programs.
func BenchmarkCorpus(b *testing.B) {
	cases := corpus(b)
	for _, form := range []struct {
		name   string
		single bool
	}{{name: "url", single: true}, {name: "urls"}} {
		input, targets := records(b, cases, form.single)
		b.Run(form.name, func(b *testing.B) {
			b.SetBytes(int64(len(input)) / int64(targets))
			repeats := b.N/targets + 1
			readers := make([]io.Reader, repeats)
			for i := range readers {
				readers[i] = bytes.NewReader(input)
			}
			before := cpuTime()
			b.ResetTimer()
			summary, err := Run(io.MultiReader(readers...), io.Discard, Options{Dialect: dialect.Google()})
			b.StopTimer()
			if err != nil || summary.Decisions != int64(repeats*targets) {
				b.Fatalf("error %v, summary %+v", err, summary)
			}
			b.ReportMetric(float64(summary.Decisions)/b.Elapsed().Seconds(), "decisions/s")
			b.ReportMetric(float64(cpuTime()-before)/float64(summary.Decisions), "cpu-ns/decision")
			b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "processors")
		})
	}
}

// TestUsageStudy checks the table in docs/usage.md, "What real files say".
func TestUsageStudy(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(corpusDir, "*"))
	if err != nil || len(names) < 100 {
		t.Skip("the corpus of real robots.txt files is missing")
	}
	guide, err := os.ReadFile("../../../../docs/usage.md")
	if err != nil {
		t.Fatal(err)
	}
	var input bytes.Buffer
	encoder := json.NewEncoder(&input)
	for _, name := range names {
		if filepath.Ext(name) != ".gz" {
			encoder.Encode(map[string]string{"file": name})
		}
	}
	for _, agent := range []string{"ExampleBot", "GPTBot", "CCBot"} {
		summary, err := RunPurpose(bytes.NewReader(input.Bytes()), io.Discard, Options{Agents: []string{agent}}, usage.TrainAI)
		if err != nil || summary.Errors > 0 {
			t.Fatalf("error %v, summary %+v", err, summary)
		}
		n := summary.Permissions
		row := fmt.Sprintf("| %s | %d | %d | %d | %d | %d |\n", agent, n[Denied], n[Disallowed], n[Allowed], n[Unknown], summary.Contradictory)
		if !bytes.Contains(guide, []byte(row)) {
			t.Errorf("docs/usage.md does not have the row\n%s", row)
		}
	}
}
