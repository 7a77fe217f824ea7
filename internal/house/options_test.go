package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests of this file compare the functions that return an Option with the lists of options, so
// that a new option is in all of them.

// mostLines is how many lines the comment of an option has at most. Details are in the guides.
const mostLines = 10

// An option is a function of the root package that returns an Option or a HostOption.
type option struct {
	name    string
	comment string
}

// optionsOf returns the options of the root package.
func optionsOf(t *testing.T) (found []option) {
	t.Helper()
	for _, decls := range declarations(t, ".") {
		for _, d := range decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil {
				continue
			}
			result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
			if ok && (result.Name == "Option" || result.Name == "HostOption") {
				found = append(found, option{name: f.Name.Name, comment: f.Doc.Text()})
			}
		}
	}
	if len(found) < 40 {
		t.Fatalf("found only %v", found)
	}
	return found
}

// textOf returns the content of a file.
func textOf(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	must(t, err)
	return string(content)
}

// oneLine replaces the white space in a text by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestEachOptionIsNamed checks that the guide names each option, and no other one.
func TestEachOptionIsNamed(t *testing.T) {
	guide := textOf(t, "docs/reference/options.md")
	var names []string
	for _, o := range optionsOf(t) {
		names = append(names, o.name)
		if strings.Count(guide, "\n| `"+o.name+"(") != 1 {
			t.Errorf("docs/reference/options.md has not exactly one row for the option %s", o.name)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)\\(").FindAllStringSubmatch(guide, -1) {
		if !slices.Contains(names, row[1]) {
			t.Errorf("docs/reference/options.md has a row for %s, which is no option", row[1])
		}
	}
}

// TestFlagsOfCrawl checks that docs/tools/command.md names each flag of collyrobots crawl.
func TestFlagsOfCrawl(t *testing.T) {
	var files []string
	for _, folder := range []string{"crawl", "input"} { // input has the flags that several commands share
		found, err := filepath.Glob("cmd/collyrobots/internal/" + folder + "/*.go")
		must(t, err)
		files = append(files, found...)
	}
	var source strings.Builder
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			source.WriteString(textOf(t, name))
		}
	}
	guide := textOf(t, "docs/tools/command.md")
	flags := regexp.MustCompile(`flags\.\w+Var\(&\S+, "([a-z-]+)"`).FindAllStringSubmatch(source.String(), -1)
	if len(flags) < 25 {
		t.Fatalf("found only %v", flags)
	}
	for _, flag := range flags {
		if !regexp.MustCompile("-" + flag[1] + "\\b").MatchString(guide) {
			t.Errorf("docs/tools/command.md does not name the flag -%s", flag[1])
		}
	}
}

// TestCommentsOfOptions checks that the comment of each option is short, and names a guide.
func TestCommentsOfOptions(t *testing.T) {
	page := regexp.MustCompile(`docs/[a-z/-]+\.md`)
	for _, o := range optionsOf(t) {
		if n := strings.Count(o.comment, "\n"); n > mostLines {
			t.Errorf("the comment of %s has %d lines, want at most %d: move the details to its guide", o.name, n, mostLines)
		}
		named := page.FindString(oneLine(o.comment))
		if named == "" {
			t.Errorf("the comment of %s names no guide", o.name)
			continue
		}
		if _, err := os.Stat(named); err != nil {
			t.Errorf("the comment of %s: %v", o.name, err)
		}
	}
}
