package dialect_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// shared reads a file of the directory ../shared beside the repository. It holds files that the
// project cannot publish: real robots.txt files and the decisions of other programs. If the file
// does not exist, shared skips the test.
func shared(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", filepath.FromSlash(name)))
	if err != nil {
		t.Skipf("needs a file that is not part of the repository: %v", err)
	}
	return data
}

// TestCorpus compares Google with the decisions of Google's own matcher on real files.
func TestCorpus(t *testing.T) {
	zr, err := gzip.NewReader(bytes.NewReader(shared(t, "corpus/google_verdicts.jsonl.gz")))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(zr)
	lines.Buffer(nil, 1<<24)
	verdicts := 0
	for lines.Scan() {
		var v struct {
			File, Agent, Allowed string
			Targets              []string
			Line                 []int
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		group := dialect.Google().Parse(shared(t, "corpus/"+v.File)).Group(v.Agent)
		for i, target := range v.Targets {
			got := group.Decide(target)
			if got.Allowed != (v.Allowed[i] == '1') || got.Rule.Line != v.Line[i] {
				t.Errorf("%s, %s, %s: %+v, want %c by line %d", v.File, v.Agent, target, got, v.Allowed[i], v.Line[i])
			}
			verdicts++
		}
	}
	if err := lines.Err(); err != nil || verdicts < 40_000 {
		t.Fatalf("%d verdicts, error %v", verdicts, err)
	}
}

// A clause is one sentence of a specification with a file and the decision that follows from it.
type clause struct {
	ID        string
	Clause    string
	Dialect   string
	Robots    string // the file
	RobotsB64 string `json:"robots_b64"` // the file in base64, if it is not text
	Agent     string
	Path      string          // the target
	URL       string          // if set, the target is that of this URL
	Expect    string          // "allow" or "deny"
	Ambiguous string          // why the specification can be read in another way
	Delay     json.RawMessage `json:"crawl_delay_seconds"` // null if there must be no delay
	Sitemaps  *[]string
}

// TestClauses checks the clauses of all specifications.
func TestClauses(t *testing.T) {
	var clauses []clause
	if err := json.Unmarshal(shared(t, "conformance/clauses.json"), &clauses); err != nil {
		t.Fatal(err)
	}
	for _, c := range clauses {
		t.Run(c.ID, func(t *testing.T) { c.check(t) })
	}
}

func (c clause) check(t *testing.T) {
	if c.Dialect == "1994" {
		c.Dialect = "original1994"
	}
	d, ok := dialect.ByName(c.Dialect)
	if !ok {
		t.Fatalf("no dialect %q", c.Dialect)
	}
	body := []byte(c.Robots)
	if c.RobotsB64 != "" {
		body, _ = base64.StdEncoding.DecodeString(c.RobotsB64)
	}
	rules := d.Parse(body)
	group := rules.Group(c.Agent)
	target := c.Path
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		if err != nil {
			t.Fatal(err)
		}
		target = dialect.Target(u)
	}
	if got := group.Decide(target); got.Allowed != (c.Expect == "allow") {
		t.Errorf("%s\n%q\n%s %s: %+v, want %s (ambiguous: %s)", c.Clause, body, c.Agent, target, got, c.Expect, c.Ambiguous)
	}
	if c.Delay != nil {
		var want *float64
		if err := json.Unmarshal(c.Delay, &want); err != nil {
			t.Fatal(err)
		}
		got, ok := group.CrawlDelay()
		if ok != (want != nil) || ok && got.Seconds() != *want {
			t.Errorf("%s\n%q\n%s: delay %v %v, want %s", c.Clause, body, c.Agent, got, ok, c.Delay)
		}
	}
	if c.Sitemaps != nil && !slices.Equal(rules.Sitemaps(), *c.Sitemaps) {
		t.Errorf("%s\n%q\nsitemaps %q, want %q", c.Clause, body, rules.Sitemaps(), *c.Sitemaps)
	}
}
