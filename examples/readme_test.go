// Package examples has programs in its directories. Its tests compare README.md and the guides in
// docs/ with these programs and with the library. The tests in docs/ run the programs and commands
// of the guides.
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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
)

// TestREADMEPrograms checks that every piece of Go in the README is part of an example or a test,
// and that the guides show some of the examples.
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
				t.Errorf("%s: this code is in no example:\n%s", page, piece)
			}
		}
		return found
	}
	for page, least := range map[string]int{"../README.md": 1, "../docs/testing.md": 2} {
		if found := find(page); found < least {
			t.Errorf("%s shows %d pieces of the examples, want at least %d", page, found, least)
		}
	}
}

// TestComplaints checks that the table of complaints in docs/best-practices.md names options of the root
// package, and that each of them has its arguments.
func TestComplaints(t *testing.T) {
	rows := tableOf(t, "../docs/best-practices.md", "| Complaint |")[1:]
	named := optionsNamedIn(t, rows)
	if len(rows) < 10 || named < len(rows) {
		t.Errorf("%d options in %d rows", named, len(rows))
	}
}

// TestTasks checks that the table of tasks in the README names options of the root package.
func TestTasks(t *testing.T) {
	named := optionsNamedIn(t, tableOf(t, "../README.md", "| Task |")[1:])
	if named < 10 {
		t.Errorf("the table names %d options", named)
	}
}

// TestComingFrom checks that the tables in docs/coming-from.md name options of the root package.
func TestComingFrom(t *testing.T) {
	for head, least := range map[string]int{"| Scrapy |": 15, "| LimitRule |": 2, "| Crawlee |": 7} {
		named := optionsNamedIn(t, tableOf(t, "../docs/coming-from.md", head)[1:])
		if named < least {
			t.Errorf("the table %s names %d options, want at least %d", head, named, least)
		}
	}
}

// optionsNamedIn counts the calls of options in the second column of a table. It reports calls of
// options that do not exist.
func optionsNamedIn(t *testing.T, rows [][]string) (named int) {
	t.Helper()
	exported := options(t)
	call := regexp.MustCompile("`([A-Z][A-Za-z]*)\\([^`]*\\)`")
	for _, row := range rows {
		for _, match := range call.FindAllStringSubmatch(row[1], -1) {
			named++
			if match[1] != "WithRobots" && !slices.Contains(exported, match[1]) {
				t.Errorf("%s: there is no option %s", row[0], match[1])
			}
		}
	}
	return named
}

// TestFields checks that the table in docs/reference/options.md has the fields of Feed in their order.
func TestFields(t *testing.T) {
	var named, fields []string
	for _, row := range tableOf(t, "../docs/reference/options.md", "| Field |")[1:] {
		named = append(named, strings.Trim(row[0], "`"))
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[collyrobots.Feed]()) {
		fields = append(fields, f.Name)
	}
	if !slices.Equal(named, fields) {
		t.Errorf("the table has %v, want %v", named, fields)
	}
}

// TestErrors checks that the table in docs/troubleshooting.md has exactly the error types and
// variables of the root package.
func TestErrors(t *testing.T) {
	var named, exported []string
	for _, row := range tableOf(t, "../docs/troubleshooting.md", "| Error |")[1:] {
		named = append(named, strings.Trim(row[0], "`*"))
	}
	for _, decl := range declarations(t) {
		exported = append(exported, errorsIn(decl)...)
	}
	for _, decl := range declarationsIn(t, "../report") {
		for _, name := range errorsIn(decl) {
			if !slices.Contains(exported, name) { // ErrClosed has the same value in both packages
				exported = append(exported, "report."+name)
			}
		}
	}
	slices.Sort(named)
	slices.Sort(exported)
	if len(exported) == 0 || !slices.Equal(named, exported) {
		t.Errorf("the table has %v, want %v", named, exported)
	}
}

// errorsIn returns the exported variables of a declaration that are errors, the aliases of types of
// errors, or the exported type whose method Error is declared.
func errorsIn(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl: // the method Error
		if d.Recv != nil && d.Name.Name == "Error" {
			if star, ok := d.Recv.List[0].Type.(*ast.StarExpr); ok {
				names = append(names, star.X.(*ast.Ident).Name)
			}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && strings.HasPrefix(value.Names[0].Name, "Err") {
				names = append(names, value.Names[0].Name)
			}
			if alias, ok := spec.(*ast.TypeSpec); ok && alias.Assign.IsValid() && strings.HasSuffix(alias.Name.Name, "Error") {
				names = append(names, alias.Name.Name)
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
}

// options returns the names of the functions of the root package that return an Option.
func options(t *testing.T) (names []string) {
	t.Helper()
	for _, decl := range declarations(t) {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil {
			continue
		}
		if result, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && (result.Name == "Option" || result.Name == "HostOption") {
			names = append(names, f.Name.Name)
		}
	}
	slices.Sort(names)
	return names
}

// declarations returns the declarations of the root package without its tests.
func declarations(t *testing.T) (decls []ast.Decl) {
	t.Helper()
	return declarationsIn(t, "..")
}

// declarationsIn returns the declarations of the package in a folder, without those of its tests.
func declarationsIn(t *testing.T, folder string) (decls []ast.Decl) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
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

// TestDialectsRules computes the table of rules in docs/dialects.md.
func TestDialectsRules(t *testing.T) {
	compare(t, "| robots.txt | URL |", 2, func(d dialect.Dialect, input []string) (string, error) {
		target, err := url.Parse(strings.Join(lines(input[1]), ""))
		if err != nil {
			return "", err
		}
		group := groupOf(d, input[0])
		return verdict(group.DecideURL(target).Allowed), nil
	})
}

// TestDialectsDelays computes the table of delays in docs/dialects.md.
func TestDialectsDelays(t *testing.T) {
	compare(t, "| robots.txt | rfc9309 |", 1, func(d dialect.Dialect, input []string) (string, error) {
		group := groupOf(d, input[0])
		delay, ok := group.CrawlDelay()
		if !ok {
			return "none", nil
		}
		return strconv.FormatFloat(delay.Seconds(), 'f', -1, 64), nil
	})
}

// TestDialectsAnswers computes the table of answers to GET /robots.txt in docs/dialects.md.
func TestDialectsAnswers(t *testing.T) {
	compare(t, "| answer | rfc9309 |", 1, func(d dialect.Dialect, input []string) (string, error) {
		robots, err := collyrobots.New(
			collyrobots.Dialect(d),
			collyrobots.ProductToken("ExampleBot"),
			collyrobots.RobotsClient(&http.Client{Transport: reply(input[0])}),
			collyrobots.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return "", err
		}
		defer robots.Close()
		decision, err := robots.Check(t.Context(), "https://example.com/")
		return verdict(decision.Allowed), err
	})
}

// userAgent is the user agent of the crawler in the tables.
const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// groupOf returns the group of the crawler in a robots.txt. The name of the crawler is the name
// that the plugin takes from the user agent.
func groupOf(d dialect.Dialect, cell string) *dialect.Group {
	token := dialect.TokenOf(userAgent)
	if d == dialect.Temoto() {
		token = userAgent // as in the built-in check
	}
	return d.Parse([]byte(strings.Join(lines(cell), "\n") + "\n")).Group(token)
}

// A reply is a transport that answers every request with a status, or with an error if the reply is
// not a number.
type reply string

func (r reply) RoundTrip(req *http.Request) (*http.Response, error) {
	status, err := strconv.Atoi(string(r))
	if err != nil {
		return nil, errors.New(string(r))
	}
	body := io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /\n"))
	return &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: body, Request: req}, nil
}

// compare checks a table in docs/dialects.md whose first row begins with head. The first columns
// are the input of compute. Each other column is named after a dialect, and has the results of
// compute.
func compare(t *testing.T, head string, columns int, compute func(d dialect.Dialect, input []string) (string, error)) {
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
			cell, err := compute(d, row[:columns])
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

// tableOf returns the cells of the table on a page whose first row begins with head, without the
// line below that row.
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
			t.Fatalf("%d cells, want %d: %s", len(cells), len(rows[0]), line)
		}
		rows = append(rows, cells)
	}
	return rows
}

// lines returns the lines of code in a cell.
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
