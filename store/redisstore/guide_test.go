package redisstore_test

import (
	"encoding/json"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuide compiles the Go code of docs/many-processes.md that needs this module.
func TestGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/many-processes.md")
	if err != nil {
		t.Fatal(err)
	}
	pieces := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(pieces) < 4 {
		t.Fatalf("the guide has %d pieces of Go", len(pieces))
	}
	source := guideImports
	for _, p := range pieces {
		if formatted, err := format.Source([]byte(p[1])); err != nil || string(formatted) != p[1] {
			t.Errorf("not formatted by gofmt (%v):\n%s", err, p[1])
		}
		source += asDeclarations(t, p[1])
	}
	// The package exists only in an overlay, so that it has the dependencies of this module.
	const file = "guide.go"
	const overlay = "overlay.json"
	here := t.TempDir()
	inModule, err := filepath.Abs("guide/guide.go")
	if err != nil {
		t.Fatal(err)
	}
	replace, _ := json.Marshal(map[string]any{"Replace": map[string]string{inModule: filepath.Join(here, file)}})
	for name, data := range map[string]string{file: source, overlay: string(replace)} {
		if err := os.WriteFile(filepath.Join(here, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(here, overlay), "./guide").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, source)
	}
}

const guideImports = `package guide

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/redisstore"
)
`

// asDeclarations returns a piece of the guide as declarations. It puts statements into a function
// that also declares the variables that the text of the guide mentions.
func asDeclarations(t *testing.T, piece string) string {
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package guide\n"+piece, 0); err == nil {
		return piece
	}
	head := "func _(ctx context.Context, c *colly.Collector) {\n" + piece
	file, err := parser.ParseFile(token.NewFileSet(), "", "package guide\n"+head+"}\n", 0)
	if err != nil {
		t.Error(err)
		return ""
	}
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if define, ok := s.(*ast.AssignStmt); ok && define.Tok == token.DEFINE {
			for _, name := range define.Lhs {
				head += "_ = " + name.(*ast.Ident).Name + "\n" // a variable that the reader's code uses next
			}
		}
	}
	return strings.TrimSpace(head) + "\n}\n"
}
