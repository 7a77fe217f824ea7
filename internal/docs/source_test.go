package docs

import (
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// source returns the Go code of a piece as a file of a package, and the name of that file.
func (p *piece) source(t *testing.T) (name, text string) {
	t.Helper()
	if formatted, err := format.Source([]byte(p.text)); err == nil && string(formatted) != p.text {
		t.Errorf("%s is not formatted by gofmt:\n%s", p.name(), formatted)
	}
	name = p.id() + ".go"
	switch p.kind {
	case program:
		return name, p.asPackage()
	case test:
		name = p.id() + "_test.go"
	}
	for _, body := range []string{
		p.text,
		"func _(ctx context.Context, c *colly.Collector, robots *collyrobots.Plugin) {\n" + p.text + "}\n",
		"func _(s store.Store) []collyrobots.Option { return []collyrobots.Option{\n" + p.text + "}}\n",
	} {
		text = "package piece\n" + imports(body) + body
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err == nil {
			return name, text
		}
	}
	t.Errorf("%s is neither declarations, nor statements, nor options:\n%s", p.name(), p.text)
	return name, "package piece\n"
}

// asPackage returns a program as a part of the program that contains all programs of the guides.
// There is only one program, because linking takes long.
func (p *piece) asPackage() string {
	folder := "main"
	function := p.id()
	if p.folder() != "programs" {
		folder = p.id()
		function = "Main"
	}
	text := strings.Replace(p.text, "package main\n", "package "+folder+"\n", 1)
	return strings.Replace(text, "\nfunc main() {", "\nfunc "+function+"() {", 1)
}

// packages are the packages that a piece without a package clause may use.
var packages = []string{
	"context", "crypto/ed25519", "crypto/x509", "encoding/json", "encoding/pem", "errors", "fmt", "log", "log/slog", "net/http", "net/url", "os", "slices", "sync/atomic", "testing", "testing/synctest", "time",
	"github.com/gocolly/colly/v2", "github.com/gocolly/colly/v2/queue", "github.com/collyrobots/collyrobots",
	"github.com/collyrobots/collyrobots/dialect", "github.com/collyrobots/collyrobots/report", "github.com/collyrobots/collyrobots/robotstest",
	"github.com/collyrobots/collyrobots/sitemap", "github.com/collyrobots/collyrobots/store",
	"github.com/collyrobots/collyrobots/store/pacer", "github.com/collyrobots/collyrobots/store/urlstore",
	"github.com/collyrobots/collyrobots/usage", "github.com/collyrobots/collyrobots/view", "github.com/collyrobots/collyrobots/webbotauth",
}

// imports returns the import declarations for the packages that text uses.
func imports(text string) string {
	var b strings.Builder
	for _, path := range packages {
		name := path[strings.LastIndex(strings.TrimSuffix(path, "/v2"), "/")+1:]
		name = strings.TrimSuffix(name, "/v2")
		if regexp.MustCompile(`(^|[^.\w])` + name + `\.[A-Z]`).MatchString(text) {
			fmt.Fprintf(&b, "import %q\n", path)
		}
	}
	return b.String()
}
