package lint

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/collyrobots/collyrobots/dialect"
)

// A row is a row of the table in docs/reference/findings.md.
type row struct {
	kind          Kind
	dialects      []dialect.Dialect
	example, near string // robots.txt files
}

// rowsOfPage returns the rows of the table.
func rowsOfPage(t *testing.T) (rows []row) {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/reference/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 6 || !strings.HasPrefix(cells[0], " `") {
			continue
		}
		r := row{kind: Kind{ID: strings.Trim(cells[0], " `"), Meaning: cells[2]}}
		r.kind.Severity = Severity(slices.Index(severityNames[:], cells[1]))
		if cells[3] != "any" {
			var d dialect.Dialect
			if err := d.UnmarshalText([]byte(cells[3])); err != nil {
				t.Error(err)
			}
			r.dialects = []dialect.Dialect{d}
		}
		r.example = fileOf(t, cells[4])
		r.near = fileOf(t, cells[5])
		rows = append(rows, r)
	}
	return rows
}

var codeSpan = regexp.MustCompile("`([^`]*)`|blank line")

// fileOf returns the file that a cell of the table describes.
func fileOf(t *testing.T, cell string) string {
	t.Helper()
	cell = strings.TrimSpace(cell)
	if what, ok := strings.CutPrefix(cell, "a file "); ok {
		return large(t, what)
	}
	var lines []string
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		line := m[1]
		if !strings.Contains(line, `"`) { // not JSON
			var err error
			line, err = strconv.Unquote(`"` + line + `"`)
			if err != nil {
				t.Error(err)
			}
		}
		lines = append(lines, line)
	}
	file := strings.Join(lines, "\n") + "\n"
	if !strings.Contains(file, "User-agent") && !strings.ContainsAny(file[:1], "<[{") {
		file = "User-agent: *\n" + file
	}
	return file
}

// large returns a file that does not fit into the table.
func large(t *testing.T, what string) string {
	t.Helper()
	const head = "User-agent: *\nDisallow: /a\n"
	rules := func(n int) string {
		var b strings.Builder
		b.WriteString("User-agent: *\n")
		for i := range n {
			fmt.Fprintf(&b, "Disallow: /%d$\n", i)
		}
		return b.String()
	}
	switch what {
	case "in UTF-8":
		return head
	case "in UTF-16":
		var b strings.Builder
		for _, c := range utf16.Encode([]rune("\ufeff" + head)) {
			b.Write([]byte{byte(c), byte(c >> 8)})
		}
		return b.String()
	case "with 512,001 bytes":
		return head + strings.Repeat("#", 512_001-len(head))
	case "with 512,000 bytes":
		return head + strings.Repeat("#", 512_000-len(head))
	case "with 2,049 rules":
		return rules(2049)
	case "with 2,048 rules":
		return rules(2048)
	case "with a line of 16,664 bytes":
		return "User-agent: *\nDisallow: /" + strings.Repeat("a", 16_664-len("Disallow: /")) + "\n"
	case "with a line of 16,663 bytes":
		return "User-agent: *\nDisallow: /" + strings.Repeat("a", 16_663-len("Disallow: /")) + "\n"
	case "with a pattern of 1,025 characters":
		return "User-agent: *\nDisallow: /" + strings.Repeat("é", 1024) + "\n"
	case "with a pattern of 1,024 characters":
		return "User-agent: *\nDisallow: /" + strings.Repeat("é", 1023) + "\n"
	case "with hundreds of rules":
		return rules(500)
	case "with thousands of rules with wildcards":
		var b strings.Builder
		b.WriteString("User-agent: *\n")
		for i := range 9000 {
			fmt.Fprintf(&b, "Disallow: /%d/*%d$\n", i, i)
		}
		return b.String()
	}
	t.Errorf("no such file: %q", what)
	return ""
}

// TestPage checks that docs/reference/findings.md lists all kinds, that each example has exactly this finding,
// and that the near miss does not have it.
func TestPage(t *testing.T) {
	rows := rowsOfPage(t)
	if len(rows) != len(kinds) {
		t.Fatalf("docs/reference/findings.md lists %d kinds, want %d", len(rows), len(kinds))
	}
	for i, r := range rows {
		if r.kind != kinds[i] {
			t.Errorf("docs/reference/findings.md has %+v, want %+v", r.kind, kinds[i])
		}
		if got := idsIn(r.example, r.dialects); !slices.Equal(got, []string{r.kind.ID}) && !(r.kind.ID[:5] == "usage" && slices.Equal(got, []string{"foreign-key", r.kind.ID})) {
			t.Errorf("%s: the example %.200q has %v", r.kind.ID, r.example, got)
		}
		if got := idsIn(r.near, r.dialects); slices.Contains(got, r.kind.ID) {
			t.Errorf("%s: the near miss %.200q has %v", r.kind.ID, r.near, got)
		}
	}
	source, err := os.ReadFile("../../../../dialect/lint.go")
	if err != nil {
		t.Fatal(err)
	}
	problems := regexp.MustCompile(`Problem = "(.+)"`).FindAllStringSubmatch(string(source), -1)
	if len(problems) < 30 {
		t.Errorf("dialect/lint.go has %d problems", len(problems))
	}
	for _, problem := range problems {
		if !Known(problem[1]) {
			t.Errorf("dialect.Problem %q has no kind", problem[1])
		}
	}
}

// idsIn returns the IDs of the findings in a file, each once.
func idsIn(file string, dialects []dialect.Dialect) (ids []string) {
	for _, f := range Lint([]byte(file), Options{Dialects: dialects}) {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
