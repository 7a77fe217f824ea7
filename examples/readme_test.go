// Package examples has programs in its folders. Its tests hold README.md and the guides of docs/ to
// them, and to what the library does. What the guides' own programs and commands do is tested in
// docs/.
package examples

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
)

// TestREADMEPrograms finds every piece of Go of the README in a program or a test that compiles,
// and the programs and the test that the guides show.
func TestREADMEPrograms(t *testing.T) {
	var programs []string
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range append(files, "../robotstest/spider_test.go") {
		programs = append(programs, read(t, file))
	}
	find := func(page string) (found int) {
		pieces := strings.Split(read(t, page), "```go\n")[1:]
		for _, piece := range pieces {
			piece, _, _ = strings.Cut(piece, "```")
			if slices.ContainsFunc(programs, func(p string) bool { return strings.Contains(p, piece) }) {
				found++
			} else if page == "../README.md" {
				t.Errorf("%s: in no example:\n%s", page, piece)
			}
		}
		return found
	}
	for page, least := range map[string]int{"../README.md": 1, "../docs/README.md": 1, "../docs/testing.md": 2} {
		if found := find(page); found < least {
			t.Errorf("%s shows %d pieces of the examples, want %d", page, found, least)
		}
	}
}

// TestOptions finds each option of the root package in the table of docs/options.md, and no other.
func TestOptions(t *testing.T) {
	var named []string
	for _, row := range tableOf(t, "../docs/options.md", "| Option |")[1:] {
		for call := range strings.SplitSeq(row[0], ", `") {
			name, _, _ := strings.Cut(strings.Trim(call, "`"), "(")
			named = append(named, name)
		}
	}
	slices.Sort(named)
	if len(slices.Compact(slices.Clone(named))) < len(named) {
		t.Errorf("the table has an option twice: %v", named)
	}
	exported := options(t)
	if len(exported) == 0 || !slices.Equal(named, exported) {
		t.Errorf("the table has %v, the package %v", named, exported)
	}
}

// TestFields finds each field of a Feed in the table of docs/options.md, in their order.
func TestFields(t *testing.T) {
	var named, fields []string
	for _, row := range tableOf(t, "../docs/options.md", "| Field |")[1:] {
		named = append(named, strings.Trim(row[0], "`"))
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[collyrobots.Feed]()) {
		fields = append(fields, f.Name)
	}
	if !slices.Equal(named, fields) {
		t.Errorf("the table has %v, a Feed %v", named, fields)
	}
}

// TestErrors finds each error of the root package, type or variable, in the table of
// docs/troubleshooting.md, and no other.
func TestErrors(t *testing.T) {
	var named, exported []string
	for _, row := range tableOf(t, "../docs/troubleshooting.md", "| Error |")[1:] {
		named = append(named, strings.Trim(row[0], "`*"))
	}
	for _, decl := range declarations(t) {
		switch d := decl.(type) {
		case *ast.FuncDecl: // the method Error
			if d.Recv != nil && d.Name.Name == "Error" {
				if star, ok := d.Recv.List[0].Type.(*ast.StarExpr); ok {
					exported = append(exported, star.X.(*ast.Ident).Name)
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && strings.HasPrefix(value.Names[0].Name, "Err") {
					exported = append(exported, value.Names[0].Name)
				}
			}
		}
	}
	exported = slices.DeleteFunc(exported, func(name string) bool { return !ast.IsExported(name) })
	slices.Sort(named)
	slices.Sort(exported)
	if len(exported) == 0 || !slices.Equal(named, exported) {
		t.Errorf("the table has %v, the package %v", named, exported)
	}
}

// options returns the names of the root package's functions that make an Option.
func options(t *testing.T) (names []string) {
	t.Helper()
	for _, decl := range declarations(t) {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil {
			continue
		}
		if result, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && result.Name == "Option" {
			names = append(names, f.Name.Name)
		}
	}
	slices.Sort(names)
	return names
}

// declarations returns those of the root package that are not of tests.
func declarations(t *testing.T) (decls []ast.Decl) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, parsed.Decls...)
	}
	return decls
}

// TestDialectsVerdicts works out the table of URLs.
func TestDialectsVerdicts(t *testing.T) {
	compare(t, "| robots.txt | URL |", 2, func(d dialect.Dialect, given []string) (string, error) {
		target, err := url.Parse(strings.Join(lines(given[1]), ""))
		if err != nil {
			return "", err
		}
		group := groupOf(d, given[0])
		return verdict(group.DecideURL(target).Allowed), nil
	})
}

// TestDialectsDelays works out the table of crawl delays.
func TestDialectsDelays(t *testing.T) {
	compare(t, "| robots.txt | rfc9309 |", 1, func(d dialect.Dialect, given []string) (string, error) {
		group := groupOf(d, given[0])
		delay, ok := group.CrawlDelay()
		if !ok {
			return "none", nil
		}
		return strconv.FormatFloat(delay.Seconds(), 'f', -1, 64), nil
	})
}

// TestDialectsAnswers gives each answer of the table to a plugin that asks for robots.txt.
func TestDialectsAnswers(t *testing.T) {
	compare(t, "| answer | rfc9309 |", 1, func(d dialect.Dialect, given []string) (string, error) {
		robots, err := collyrobots.New(
			collyrobots.Dialect(d),
			collyrobots.ProductToken("ExampleBot"),
			collyrobots.HTTPClient(&http.Client{Transport: reply(given[0])}),
			collyrobots.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return "", err
		}
		defer robots.Close()
		decision, err := robots.Check(t.Context(), "https://example.com/")
		return verdict(decision.Allowed), err
	})
}

// userAgent is the crawler of the tables.
const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// groupOf returns what a robots.txt says to the crawler, by the name that the plugin takes from its
// user agent.
func groupOf(d dialect.Dialect, cell string) *dialect.Group {
	token := dialect.ProductToken(userAgent)
	if d == dialect.Temoto() {
		token = userAgent // looks the whole of it up, as the built-in check does
	}
	return d.Parse([]byte(strings.Join(lines(cell), "\n") + "\n")).Group(token)
}

// reply is a transport on which every request has the same answer: a status, or "no answer".
type reply string

func (r reply) RoundTrip(req *http.Request) (*http.Response, error) {
	status, err := strconv.Atoi(string(r))
	if err != nil {
		return nil, errors.New(string(r))
	}
	body := io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /\n"))
	return &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: body, Request: req}, nil
}

// compare holds the cells of a table, those behind the first columns, which are given, against what
// work makes of them. The table is the one whose head begins as told; the head of each other column
// is the name of a dialect.
func compare(t *testing.T, head string, columns int, work func(d dialect.Dialect, given []string) (string, error)) {
	t.Helper()
	table := tableOf(t, "../docs/dialects.md", head)
	if len(table) < 4 {
		t.Fatalf("the table has %d rows", len(table)-1)
	}
	var names []string
	for _, d := range dialect.All() {
		names = append(names, d.String())
	}
	if !slices.Equal(table[0][columns:], names) {
		t.Fatalf("columns are %v, want %v", table[0][columns:], names)
	}
	for _, row := range table[1:] {
		want := slices.Clone(row[:columns])
		for _, d := range dialect.All() {
			cell, err := work(d, row[:columns])
			if err != nil {
				t.Fatalf("%v: %v", row, err)
			}
			want = append(want, cell)
		}
		if !slices.Equal(row, want) {
			t.Errorf("the row\n| %s |\nshould be\n| %s |", strings.Join(row, " | "), strings.Join(want, " | "))
		}
	}
}

// tableOf returns the cells of a table of a page, the rule under its head left out.
func tableOf(t *testing.T, page, head string) (rows [][]string) {
	t.Helper()
	_, rest, found := strings.Cut(read(t, page), "\n"+head)
	if !found {
		t.Fatalf("%s has no table %q", page, head)
	}
	for line := range strings.Lines(head + rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			break
		}
		if strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(rows) > 0 && len(cells) != len(rows[0]) {
			t.Fatalf("%d cells instead of %d: %s", len(cells), len(rows[0]), line)
		}
		rows = append(rows, cells)
	}
	return rows
}

// lines returns the lines of code of a cell.
func lines(cell string) []string {
	parts := strings.Split(cell, "<br>")
	for i, p := range parts {
		parts[i] = strings.Trim(p, "`")
	}
	return parts
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
