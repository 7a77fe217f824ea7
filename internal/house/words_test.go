package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outdated are words that the code uses neither in comments nor in names. The words in use are
// host, crawl delay, wake, settings, checkpoint and "reports whether".
var outdated = []string{"turnstile", "wish", "heed", "nudge", "regime", "ledger", "astray", "governed", "tells whether", "cancelled"}

// logKeys are the keys of all log records. Each has one meaning. Use them for new records where
// possible.
var logKeys = []string{
	"host",    // the host, as in Stats
	"url",     // the URL of a page, without a password
	"robots",  // the URL of a robots.txt
	"sitemap", // the URL of a sitemap
	"error",   // the cause
	"status",  // the status code of a response, or 0 if there was no response
	"delay",   // the delay between the starts of two requests
	"count",   // a number of things
	"dialect", // the name of a dialect

	"action",        // the action that failed
	"agent",         // a User-Agent header
	"key",           // a key in the Context of a request
	"coding",        // a content coding
	"jump",          // how far a clock went back
	"limit",         // the maximum that an option allows
	"old",           // the previous group
	"options",       // the options of a plugin, as a group
	"option",        // the option that would change the behavior, or has decided
	"panic",         // the value of a panic
	"pattern",       // the pattern of ForHosts
	"record",        // the key of a record in a store
	"robots_status", // a RobotsStatus: which rules apply to a site
	"since",         // Feed.Since
	"sent",          // whether a denied request was sent, as in a dry run
	"stale",         // whether an earlier copy is used
	"token",         // a product token
	"transport",     // the type of an http.RoundTripper
	"until",         // when the wait ends or is reconsidered
}

// TestWords checks that comments and names contain no outdated word.
func TestWords(t *testing.T) {
	files := parsedBelow(t, ".")
	if len(files) < 100 {
		t.Fatalf("%d files", len(files))
	}
	for name, file := range files {
		for _, word := range outdatedIn(file) {
			t.Errorf("%s has the outdated word %q", name, word)
		}
	}
}

// TestLogKeys checks that all keys in calls of loggers are listed.
func TestLogKeys(t *testing.T) {
	files := parsedBelow(t, ".")
	for name := range files {
		folder, _, _ := strings.Cut(path.Dir(name), "/")
		if !slices.Contains([]string{".", "internal", "store"}, folder) {
			delete(files, name)
		}
	}
	found := 0
	for name, keys := range logKeysIn(files) {
		for _, key := range keys {
			found++
			if !slices.Contains(logKeys, key) {
				t.Errorf("%s logs under the key %s, which is not listed", name, key)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d keys were found in calls of loggers", found)
	}
}

// TestWordsAndKeysAreFound checks that the tests above find outdated words and keys.
func TestWordsAndKeysAreFound(t *testing.T) {
	file := parse(t, "x.go", `package x

// f tells
// whether there is a Wish.
func f(r *report, l *slog.Logger) {
	hostLedger := 1
	l.Warn("message", "one", hostLedger, slog.String("two", ""), attr, "three", "value")
	l.With("four", 4).Log(ctx, level, "message", "five", "value", slog.Group("six", "seven", 7))
	r.say("message", "eight", "value")
	slog.Info("message", "nine", 9)
	http.Error(w, "no key", 500)
	err.Error()
}

func (r *report) say(message string, args ...any) {
	r.log.Warn(message, append([]any{"ten", 10}, args...)...)
}

func (r *report) printf(format string, args ...any) { fmt.Printf(format, args...) }

func g(r *report) { r.printf("%s", "no key") }
`)
	words := outdatedIn(file)
	if want := []string{"wish", "ledger", "tells whether"}; !slices.Equal(words, want) {
		t.Errorf("words %q, want %q", words, want)
	}
	keys := logKeysIn(map[string]*ast.File{"x.go": file})["x.go"]
	slices.Sort(keys)
	if want := strings.Fields("eight five four nine one seven six ten three two"); !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

// TestWordsToAvoid checks that comments, string literals and documentation contain none of the
// phrases that CONTRIBUTING.md lists.
func TestWordsToAvoid(t *testing.T) {
	phrases := listedPhrases(t)
	files := textFiles(t)
	if len(files) < 300 {
		t.Fatalf("%d files", len(files))
	}
	for _, name := range files {
		if name == "internal/house/words_test.go" {
			continue
		}
		for _, text := range textsIn(t, name, nil) {
			for _, at := range phrases.FindAllStringSubmatchIndex(text, -1) {
				around := text[max(0, at[2]-50):min(len(text), at[3]+50)]
				t.Errorf("%s has the phrase %q, which CONTRIBUTING.md lists: ...%s...", name, text[at[2]:at[3]], around)
			}
		}
	}
}

// TestWordsToAvoidAreFound checks that TestWordsToAvoid finds phrases.
func TestWordsToAvoidAreFound(t *testing.T) {
	const goFile = `package x

// Nobody counts
// octets here; octet-stream is fine.
var s = "but for" // text; nil: the other`
	const guide = "In `vain`, but\nfor nothing. `nobody`"
	phrases := listedPhrases(t)
	var found []string
	for _, text := range slices.Concat(textsIn(t, "x.go", goFile), textsIn(t, "x.md", guide)) {
		for _, match := range phrases.FindAllStringSubmatch(text, -1) {
			found = append(found, match[1])
		}
	}
	if want := []string{"Nobody", "octets", "; nil:", "but for", "but for"}; !slices.Equal(found, want) {
		t.Errorf("phrases %q, want %q", found, want)
	}
}

// codeSpan matches a code span in Markdown.
var codeSpan = regexp.MustCompile("`[^`\n]+`")

// listedPhrases returns an expression that matches the phrases in the table of CONTRIBUTING.md.
func listedPhrases(t *testing.T) *regexp.Regexp {
	t.Helper()
	guide, err := os.ReadFile(".github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "\n## Words\n")
	var phrases []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, phrase := range codeSpan.FindAllString(cells[1], -1) {
				phrases = append(phrases, regexp.QuoteMeta(strings.Trim(phrase, "`")))
			}
		}
	}
	if len(phrases) < 20 {
		t.Fatalf("%d phrases are listed", len(phrases))
	}
	return regexp.MustCompile(`(?i)\b(` + strings.Join(phrases, "|") + `)(?:\W|$)`)
}

// textFiles returns the names of the files with code or documentation, nested modules included.
func textFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skippedFolders, entry.Name()):
			return fs.SkipDir
		case slices.Contains([]string{".go", ".md", ".html", ".js", ".lua", ".yml"}, path.Ext(name)):
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// textsIn returns the comments and string literals of a Go file, or the text of another file
// without its code spans. White space is replaced by single spaces. If text is nil, textsIn reads
// the file.
func textsIn(t *testing.T, name string, text any) []string {
	t.Helper()
	if path.Ext(name) == ".go" {
		return textsInGo(parse(t, name, text))
	}
	if text == nil {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = string(content)
	}
	return []string{oneLine(codeSpan.ReplaceAllString(text.(string), "code"))}
}

func textsInGo(file *ast.File) []string {
	var texts []string
	for _, comment := range file.Comments {
		texts = append(texts, oneLine(comment.Text()))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, _ := strconv.Unquote(literal.Value)
			texts = append(texts, oneLine(value))
		}
		return true
	})
	return texts
}

// oneLine replaces the white space in a text by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// parsedBelow returns the Go files below a folder by their names, without tests and including
// nested modules.
func parsedBelow(t *testing.T, root string) map[string]*ast.File {
	t.Helper()
	files := make(map[string]*ast.File)
	for name := range importsBelow(t, root, false) {
		files[name] = parse(t, name, nil)
	}
	return files
}

func parse(t *testing.T, name string, text any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// outdatedIn returns the outdated words in the comments and names of a file, in the order of their
// list.
func outdatedIn(file *ast.File) (found []string) {
	var text strings.Builder
	for _, comment := range file.Comments {
		text.WriteString(oneLine(comment.Text()) + "\n")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok {
			text.WriteString(ident.Name + "\n")
		}
		return true
	})
	for _, word := range outdated {
		if strings.Contains(strings.ToLower(text.String()), word) {
			found = append(found, word)
		}
	}
	return found
}

// firstKey has the index of the argument that is the first key, by the name of a logger's method or
// of a function of package slog.
var firstKey = map[string]int{
	"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "Log": 3,
}

// attrs are the functions of package slog that return an attribute. Their first argument is the
// key.
var attrs = strings.Fields("Any Bool Duration Float64 Group Int Int64 String Time Uint64")

// logKeysIn returns the keys in the log records of each file. It examines the calls of loggers and
// of the functions in these files that pass their last arguments to a logger.
func logKeysIn(files map[string]*ast.File) map[string][]string {
	forward := make(map[string]int)
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && forwards(f) {
				forward[f.Name.Name] = f.Type.Params.NumFields() - 1
			}
		}
	}
	keys := make(map[string][]string)
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				keys[name] = append(keys[name], keysOf(call, forward)...)
			}
			return true
		})
	}
	return keys
}

// keysOf returns the keys in the arguments of a call if it calls a logger, a function that returns
// an attribute, or a function in forward. forward has the index of the argument that is the first
// key.
func keysOf(call *ast.CallExpr, forward map[string]int) []string {
	on, name := split(call.Fun)
	switch from, ok := forward[name]; {
	case isLogger(on, name):
		return keysAmong(call.Args[min(firstKey[name], len(call.Args)):])
	case on == "slog" && name == "Group":
		return slices.Concat(keysAmong(call.Args[:1]), keysAmong(call.Args[1:]))
	case on == "slog" && slices.Contains(attrs, name):
		return keysAmong(call.Args[:1])
	case ok && from < len(call.Args):
		return keysAmong(call.Args[from:])
	}
	return nil
}

// keysAmong returns the keys in a list of arguments. A key is a string literal, and the next
// argument is its value. All other arguments are attributes.
func keysAmong(args []ast.Expr) (keys []string) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i].(type) {
		case *ast.BasicLit:
			key, _ := strconv.Unquote(arg.Value)
			keys = append(keys, key)
			i++
		case *ast.CallExpr:
			if _, name := split(arg.Fun); name == "append" {
				keys = append(keys, keysAmong(arg.Args[:1])...)
			}
		case *ast.CompositeLit: // the first argument of append
			keys = append(keys, keysAmong(arg.Elts)...)
		}
	}
	return keys
}

// forwards reports whether a function is variadic and passes its last arguments to a logger.
func forwards(f *ast.FuncDecl) (found bool) {
	n := len(f.Type.Params.List)
	if n == 0 || f.Body == nil {
		return false
	}
	if _, ok := f.Type.Params.List[n-1].Type.(*ast.Ellipsis); !ok {
		return false
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && call.Ellipsis.IsValid() && isLogger(split(call.Fun))
		return !found
	})
	return found
}

// isLogger reports whether a call is one of a logger's method, by the names of the method and of
// the value that it is called on.
func isLogger(on, method string) bool {
	_, ok := firstKey[method]
	return ok && slices.Contains([]string{"l", "log", "Log", "logger", "slog", "Default", "With"}, on)
}

// split returns the last two names of a called function. For x.y.name() and x.y().name(), these are
// "y" and "name".
func split(called ast.Expr) (on, name string) {
	switch e := called.(type) {
	case *ast.Ident:
		return "", e.Name
	case *ast.CallExpr:
		return split(e.Fun)
	case *ast.SelectorExpr:
		_, on = split(e.X)
		return on, e.Sel.Name
	}
	return "", ""
}
