package house

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// importRules says which packages may import which. To the left of the colon is a package, a
// pattern of packages or a single file. To the right are the packages that it may import. "." is
// the root package, "./dialect" is another package of this repository, and a name with a dot in its
// first element is a package of another module. All packages of the standard library may be
// imported, except those after a "!" and the packages below them.
//
// The rules do not apply to tests. They are a statement of policy: do not change them to fix a
// build.
const importRules = `
	# From bytes and URLs to decisions, without I/O, logging or Colly. Only one file uses temoto.
	dialect:           ./internal/match golang.org/x/net/idna !io !os !net/http !log !bufio !regexp
	dialect/temoto.go: github.com/temoto/robotstxt

	# From patterns to the one that decides. It owns their normal form, so that all patterns are compared alike.
	internal/match:    !io !os !net/http !log !bufio

	# From an io.Reader to entries. The caller fetches the files.
	sitemap:           ./internal/redact ./internal/weburl golang.org/x/net/html/charset !os !net/http !log

	# Text for people, without passwords.
	internal/redact:   !net/http !log

	# Nil pointers in interfaces.
	internal/typednil: !io !os !net !log

	# Durations in JSON.
	internal/seconds:  !net/http !log !encoding/json

	# From the bytes of an HTML page to the meta elements of its head.
	internal/metatags: golang.org/x/net/html golang.org/x/net/html/atom !os !net !log

	# URLs as crawlers take them.
	internal/weburl:   !net/http !log

	# The names of hosts in URLs.
	internal/hostname: ./dialect golang.org/x/net/publicsuffix !net/http !log

	# What a crawl reports: data and its JSON. A program that reads reports needs no crawler.
	report:            ./dialect ./internal/redact ./internal/seconds ./robotstags ./store/urlstore ./usage !net/http !log

	# The contracts of the options Frontier and SharedPace.
	store/urlstore:    ./dialect ./store ./internal/redact ./internal/weburl !net/http !log
	store/urlstore/urlstoretest: ./store/storetest ./store/urlstore
	store/pacer:       !net/http !log
	store/pacer/pacertest: ./store/pacer

	# Durable records. A back end with many dependencies is a separate module.
	store:             !net/http !log
	store/storetest:   ./store

	# Also shares the pace of several processes.
	store/redisstore:  ./store ./store/pacer github.com/redis/go-redis/v9

	# The pages of a crawl by several processes, in Redis. It uses only what every program can use.
	hostqueue:         . ./dialect ./report ./store/urlstore github.com/gocolly/colly/v2 github.com/redis/go-redis/v9

	# When the next request to a host may start. It does not know Colly or robots.txt.
	internal/pace:     ./report golang.org/x/time/rate !net/http !log

	# From events to calls of listeners.
	internal/fanout:   !io !os !net

	# From names and addresses of hosts to whether a request is allowed.
	internal/netguard: !net/http !log !os

	# Counts of the refusals and the pages of a host, without I/O.
	internal/stop:     !io !os !net !log
	internal/budget:   !io !os !net !log

	# Hands the record of a request from one hook to the next.
	internal/handoff:  !net/http !log !os

	# What is remembered of a request of Colly when its exchange has ended.
	internal/track:    github.com/gocolly/colly/v2 !net/http !log !os

	# Which requests follow a link that must not be followed.
	internal/nofollow: github.com/gocolly/colly/v2 golang.org/x/net/html golang.org/x/net/html/atom !log !os

	# Conditional requests and the freshness of responses.
	internal/revalidate: ./report ./store ./internal/reporter !log !os

	# Which visits of Colly have reached the plugin.
	internal/arrivals: github.com/gocolly/colly/v2 github.com/gocolly/colly/v2/storage !log !os

	# The robots.txt that is in force at a site. It knows dialects but not Colly.
	internal/policy:   ./dialect ./store ./usage ./internal/redact github.com/maypok86/otter/v2

	# The walk over the sitemaps of a site. It knows sitemaps but not Colly.
	internal/feed:     ./dialect ./sitemap ./store ./internal/feed/hashset ./internal/feed/resume ./internal/hostname ./internal/redact ./internal/weburl

	# Pages between a sitemap or a store and the last hook of their requests.
	internal/fed:      github.com/gocolly/colly/v2 ./internal/feed !io !os !net/http !log

	# Which pages earlier runs have done. It does not know how files and pages are fetched.
	internal/feed/resume: ./internal/feed/hashset ./store !io !os
	internal/feed/hashset: !io !os !net !log

	# The only package that uses the internals of Colly.
	internal/backend:  ./internal/hostname github.com/gocolly/colly/v2 github.com/gocolly/colly/v2/debug github.com/gocolly/colly/v2/storage

	# From what happens in a crawl to the log and to events.
	internal/reporter: ./report ./robotstags ./store/urlstore ./internal/fanout ./internal/hostname ./internal/pace ./internal/policy ./internal/redact ./internal/stop

	# One request on the wire. It knows how robots.txt is fetched, and neither what it allows nor Colly.
	internal/exchange: ./dialect ./report ./store/pacer ./store/urlstore ./usage ./webbotauth ./internal/backend ./internal/hostname ./internal/netguard ./internal/pace ./internal/policy ./internal/redact ./internal/reporter ./internal/typednil ./internal/weburl

	# From a target to a verdict. It does not know Colly.
	internal/judge:    ./dialect ./report ./store ./usage ./internal/exchange ./internal/hostname ./internal/netguard ./internal/pace ./internal/policy ./internal/reporter ./internal/weburl

	# Admits requests, and follows each of them until its exchange is over. It does not know Colly.
	internal/gate:     ./report ./internal/backend ./internal/budget ./internal/exchange ./internal/handoff ./internal/hostname ./internal/judge ./internal/pace ./internal/policy ./internal/reporter ./internal/revalidate ./internal/stop

	# Signatures of requests. It does not know robots.txt or Colly.
	webbotauth:        github.com/dunglas/httpsfv golang.org/x/net/http/httpguts !log !os

	# Preferences about the use of content, from bytes to values. It knows neither dialects nor policies.
	usage:             ./dialect ./internal/match github.com/dunglas/httpsfv !io !os !log

	# Rules about pages, from bytes to values.
	robotstags:        ./internal/metatags github.com/dunglas/httpsfv !io !os !log

	# The root package combines them.
	.:                 ./report ./store/pacer ./store/urlstore ./webbotauth ./robotstags ./dialect ./sitemap ./store ./usage ./internal/arrivals ./internal/backend ./internal/exchange ./internal/fanout ./internal/fed ./internal/feed ./internal/gate ./internal/hostname ./internal/judge ./internal/metatags ./internal/netguard ./internal/nofollow ./internal/pace ./internal/policy ./internal/redact ./internal/reporter ./internal/revalidate ./internal/seconds ./internal/track ./internal/typednil ./internal/weburl github.com/gocolly/colly/v2 github.com/gocolly/colly/v2/debug github.com/gocolly/colly/v2/queue github.com/gocolly/colly/v2/storage golang.org/x/time/rate !reflect

	# The pages of a crawl, on disk. It does not know Colly or robots.txt.
	frontier:           ./store ./store/urlstore !net/http
	frontier/disk.go:   github.com/cockroachdb/pebble/v2 github.com/cockroachdb/pebble/v2/bloom
	frontier/files.go:  github.com/cockroachdb/pebble/v2 github.com/cockroachdb/pebble/v2/vfs
	frontier/space.go:  github.com/cockroachdb/pebble/v2/vfs

	# The live page shows reports. It does not know Colly.
	view:              ./report ./store/urlstore ./dialect ./internal/seconds

	# So do the metrics, which have the same meaning in every system.
	metrics/figures:   ./report ./store/urlstore
	metrics/robotsprom:      ./report ./metrics/figures github.com/prometheus/client_golang/prometheus
	metrics/robotsotel:      ./report ./metrics/figures go.opentelemetry.io/otel/attribute go.opentelemetry.io/otel/codes go.opentelemetry.io/otel/metric go.opentelemetry.io/otel/trace

	# A log of what a crawl did on the wire, and its verification.
	audit:                ./report ./audit/internal/tiles ./dialect golang.org/x/mod/sumdb/note golang.org/x/mod/sumdb/tlog !net/http
	audit/internal/tiles: golang.org/x/mod/sumdb/tlog !net !log

	# A web in memory for the tests of any spider.
	robotstest:        ./dialect ./internal/leaktest
	robotstest/web.go: golang.org/x/net/http2

	# A simulation of many processes that uses the real pace.
	internal/benchmarks/internal/scale: . ./internal/pace

	# The conformance suite as data, for every parser, and the runner of the suite.
	conformance:       !os !net/http !log
	conformance/runner:  ./conformance ./dialect
	conformance/runner/crawl: . ./report ./conformance ./dialect ./conformance/runner
	conformance/maketable: ./conformance ./conformance/runner ./conformance/runner/crawl
	internal/interop/adapters/colly: ./conformance github.com/gocolly/colly/v2
	internal/interop/adapters/temoto: ./conformance github.com/temoto/robotstxt
	internal/interop/adapters/grobotstxt: ./conformance github.com/jimsmart/grobotstxt
	internal/interop/adapters/benjaminestes: ./conformance github.com/benjaminestes/robots
	internal/interop/adapters/samclarke: ./conformance github.com/samclarke/robotstxt

	# Decisions about many URLs in files.
	cmd/collyrobots/internal/batch: . ./report ./dialect ./robotstags ./usage github.com/maypok86/otter/v2

	# Output for people, and robots.txt files that were read.
	cmd/collyrobots/internal/term:     golang.org/x/term golang.org/x/text/width !net/http !log
	cmd/collyrobots/internal/robotsfile: ./dialect
	internal/leaktest:
	internal/tooltest: ./robotstest ./internal/leaktest

	# From a robots.txt to its faults.
	cmd/collyrobots/internal/lint:     ./dialect ./usage !io !os !net/http !log !regexp

	# From a file and URLs to the decisions of all dialects, for the command and for the playground.
	cmd/collyrobots/internal/readings: ./dialect ./usage ./cmd/collyrobots/internal/lint !io !os !net/http !log !regexp

	cmd/collyrobots/internal/wasm:     ./cmd/collyrobots/internal/readings !io !os !net !log !regexp
	playground:

	# Small packages in place of those of the standard library, in the WebAssembly of the playground.
	playground/internal/std/net/http: !os !net !log
	playground/internal/std/regexp:   !io !os !net !log !regexp

	# The command that estimates how long a crawl will take.
	cmd/collyrobots/internal/plan:     . ./report ./dialect ./cmd/collyrobots/internal/cli ./cmd/collyrobots/internal/input ./cmd/collyrobots/internal/reasons ./cmd/collyrobots/internal/robotsfile ./cmd/collyrobots/internal/term ./sitemap github.com/gocolly/colly/v2

	# The command that crawls.
	cmd/collyrobots/internal/crawl:    . ./frontier ./report ./store/urlstore ./audit ./cmd/collyrobots/internal/cli ./cmd/collyrobots/internal/input ./cmd/collyrobots/internal/keyfile ./cmd/collyrobots/internal/reasons ./cmd/collyrobots/internal/term ./sitemap ./store ./webbotauth github.com/gocolly/colly/v2
	cmd/collyrobots/internal/crawl/page.go: ./view

	# The service for crawlers in other languages.
	cmd/collyrobots/internal/serve:    . ./audit ./report ./cmd/collyrobots/internal/cli ./cmd/collyrobots/internal/input ./sitemap ./store ./robotstags ./store/redisstore ./usage ./view github.com/redis/go-redis/v9 github.com/redis/go-redis/v9/logging golang.org/x/net/netutil

	# What the tests of the public API share. Their packages, internal/e2e/*, have only tests.
	internal/e2e/kit: . ./report ./store ./store/pacer ./store/urlstore ./dialect ./robotstest ./usage ./webbotauth github.com/gocolly/colly/v2 golang.org/x/net/dns/dnsmessage

	# Compares two versions with random crawls. The driver has only tests, so that it compiles with both versions.
	internal/e2e/compare:

	# Demo sites on loopback, arguments of commands, and the key of a crawler.
	internal/demo:
	cmd/collyrobots/internal/cli:      ./audit ./cmd/collyrobots/internal/term
	cmd/collyrobots/internal/input:    . ./dialect ./usage ./cmd/collyrobots/internal/readings ./cmd/collyrobots/internal/term golang.org/x/time/rate
	cmd/collyrobots/internal/reasons:  . ./report
	cmd/collyrobots/internal/keyfile:  !net/http !log

	# The command.
	cmd/collyrobots:   . ./report ./audit ./conformance ./dialect ./conformance/runner ./conformance/runner/crawl ./cmd/collyrobots/internal/batch ./cmd/collyrobots/internal/cli ./cmd/collyrobots/internal/crawl ./cmd/collyrobots/internal/input ./cmd/collyrobots/internal/keyfile ./cmd/collyrobots/internal/lint ./cmd/collyrobots/internal/plan ./cmd/collyrobots/internal/readings ./cmd/collyrobots/internal/reasons ./cmd/collyrobots/internal/robotsfile ./cmd/collyrobots/internal/serve ./cmd/collyrobots/internal/term ./robotstags ./sitemap ./store ./usage github.com/gocolly/colly/v2 ./webbotauth

	# The examples use what every program can use, and packages that they share.
	examples/*:        . ./report ./dialect ./sitemap ./store github.com/gocolly/colly/v2 github.com/gocolly/colly/v2/queue
	examples/client:   ./internal/demo
	examples/crawl:    ./internal/demo ./view

	# The examples that need more than Colly.
	examples/more/*:   . ./report ./dialect ./sitemap ./store github.com/gocolly/colly/v2 github.com/gocolly/colly/v2/queue
	examples/more/archive: github.com/nlnwa/gowarc/v3 github.com/PuerkitoBio/goquery
	examples/more/browser: ./robotstest github.com/chromedp/chromedp github.com/chromedp/cdproto/cdp github.com/chromedp/cdproto/fetch github.com/chromedp/cdproto/network
	examples/more/resume: ./frontier
`

const modulePath = "github.com/collyrobots/collyrobots"

func TestImportsPointOneWay(t *testing.T) {
	rules := parseRules(t, importRules)
	used := make(map[string]bool)
	for file, imports := range importsBelow(t, ".", false) {
		allowed := rules.of(file, used)
		if allowed == nil {
			t.Errorf("%s: no rule for package %s", file, path.Dir(file))
			continue
		}
		for _, imported := range imports {
			if !permits(allowed, imported) {
				t.Errorf("%s must not import %s", file, imported)
			}
		}
	}
	for subject := range rules {
		if !used[subject] {
			t.Errorf("the rule of %s applies to no file", subject)
		}
	}
}

// TestImportRulesCatch checks that the rules forbid and permit imports.
func TestImportRulesCatch(t *testing.T) {
	rules := parseRules(t, importRules)
	for _, test := range []struct {
		file, imported string
		want           bool
	}{
		{"dialect/parse.go", "strings", true},
		{"dialect/parse.go", "io", false},
		{"dialect/parse.go", "log/slog", false},
		{"dialect/parse.go", "./sitemap", false},
		{"dialect/parse.go", "github.com/gocolly/colly/v2", false},
		{"dialect/parse.go", "github.com/temoto/robotstxt", false},
		{"dialect/temoto.go", "github.com/temoto/robotstxt", true},
		{"dialect/temoto.go", "golang.org/x/net/idna", true},
		{"dialect/decide.go", "./internal/match", true},
		{"internal/match/match.go", "./dialect", false},
		{"sitemap/walk.go", "./dialect", false},
		{"sitemap/walk.go", "net/http/cookiejar", false},
		{"internal/policy/fetch.go", ".", false},
		{"internal/pace/host.go", "./dialect", false},
		{"internal/pace/host.go", "github.com/gocolly/colly/v2", false},
		{"internal/feed/walk.go", "github.com/gocolly/colly/v2", false},
		{"internal/feed/walk.go", "./internal/policy", false},
		{"internal/feed/walk.go", "./internal/feed/resume", true},
		{"internal/feed/resume/journal.go", "./internal/feed", false},
		{"internal/feed/resume/journal.go", "./sitemap", false},
		{"internal/fanout/fanout.go", ".", false},
		{"internal/netguard/guard.go", "./dialect", false},
		{"internal/handoff/handoff.go", "github.com/gocolly/colly/v2", false},
		{"internal/track/requests.go", "./internal/pace", false},
		{"internal/policy/fetch.go", "net/http", true},
		{"plugin.go", "./examples/crawl", false},
		{"plugin.go", "./internal/e2e/kit", false},
		{"robotstest/web.go", "./internal/e2e/kit", false},
		{"internal/e2e/kit/crawl.go", "./robotstest", true},
		{"internal/e2e/kit/crawl.go", "./internal/pace", false},
		{"plugin.go", "./store/redisstore", false},
		{"view/state.go", "./report", true},
		{"view/state.go", ".", false},
		{"view/state.go", "./internal/pace", false},
		{"view/state.go", "github.com/gocolly/colly/v2", false},
		{"plugin.go", "./metrics/robotsprom", false},
		{"metrics/robotsprom/robotsprom.go", "./metrics/figures", true},
		{"metrics/robotsprom/robotsprom.go", "./internal/pace", false},
		{"metrics/figures/figures.go", "github.com/prometheus/client_golang/prometheus", false},
		{"examples/crawl/main.go", ".", true},
		{"examples/crawl/main.go", "./internal/policy", false},
		{"examples/crawl/main.go", "./internal/redact", false},
		{"examples/crawl/main.go", "github.com/hibiken/asynq", false},
		{"hostqueue/run.go", "./internal/pace", false},
		{"plugin.go", "./hostqueue", false},
		{"cmd/collyrobots/internal/term/text.go", "golang.org/x/text/width", true},
		{"cmd/collyrobots/internal/term/text.go", ".", false},
	} {
		if got := permits(rules.of(test.file, make(map[string]bool)), test.imported); got != test.want {
			t.Errorf("%s imports %s: permitted = %v, want %v", test.file, test.imported, got, test.want)
		}
	}
}

// skippedFolders are the names of folders that have no text of this repository. node_modules has
// the packages of npm that internal/interop/adapters/install has installed.
var skippedFolders = []string{".git", "node_modules", "testdata"}

// modulesOf returns the folders of all modules of this repository: "." for the main module.
func modulesOf(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skippedFolders, entry.Name()):
			return fs.SkipDir
		case entry.Name() == "go.mod":
			folders = append(folders, filepath.ToSlash(filepath.Dir(name)))
		}
		return nil
	})
	if err != nil || len(folders) < 5 {
		t.Fatal(folders, err)
	}
	return folders
}

// moduleOf returns the one of the folders that a file or a package is in: the longest one.
func moduleOf(folders []string, name string) string {
	module := "."
	for _, folder := range folders {
		if (name == folder || strings.HasPrefix(name, folder+"/")) && len(folder) > len(module) {
			module = folder
		}
	}
	return module
}

// unreleased are the modules that no user imports or installs; see RELEASING.md.
var unreleased = []string{".ci/tools", "examples/more", "internal/benchmarks", "internal/interop"}

// TestModulesShareNoInternals checks that no released module imports an internal package of another
// one, because a user may upgrade the modules one at a time. Its tests do not either, because go mod
// tidy reads the tests of the packages that a program imports. Programs do not import the command.
func TestModulesShareNoInternals(t *testing.T) {
	folders := modulesOf(t)
	files := importsBelow(t, ".", true)
	for file, imports := range files {
		module := moduleOf(folders, file)
		inCommandTest := module == "cmd/collyrobots" && strings.HasSuffix(file, "_test.go")
		if inCommandTest || slices.Contains(unreleased, module) {
			continue
		}
		for _, imported := range imports {
			folder, own := strings.CutPrefix(imported, "./")
			isInternal := slices.Contains(strings.Split(folder, "/"), "internal")
			if !own || !isInternal || moduleOf(folders, folder) == module {
				continue
			}
			t.Errorf("%s, in the module %s, imports %s, which is internal to another module", file, module, imported)
		}
	}
}

// TestModuleOf checks that the file of a nested module is not taken for one of the main module.
func TestModuleOf(t *testing.T) {
	folders := []string{".", "frontier", "metrics/robotsprom", "cmd/collyrobots"}
	for name, want := range map[string]string{
		"plugin.go": ".", "frontier/disk.go": "frontier", "frontiers/x.go": ".", "internal/redact": ".",
		"cmd/collyrobots/internal/term": "cmd/collyrobots", "metrics/figures": ".", "metrics/robotsprom": "metrics/robotsprom",
	} {
		if got := moduleOf(folders, name); got != want {
			t.Errorf("%s: module %s, want %s", name, got, want)
		}
	}
}

// rules has the words to the right of the colon, by the subject to the left of it.
type rules map[string][]string

func parseRules(t *testing.T, text string) rules {
	t.Helper()
	rules := make(rules)
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if line == "" {
			continue
		}
		subject, allowed, ok := strings.Cut(line, ":")
		if !ok || rules[subject] != nil {
			t.Fatalf("not a rule, or a second rule for its subject: %q", line)
		}
		rules[subject] = append([]string{}, strings.Fields(allowed)...)
	}
	return rules
}

// of returns the words of the rules for a file and for its package, or nil if there are no rules.
// It marks these rules in used.
func (r rules) of(file string, used map[string]bool) []string {
	var allowed []string
	for subject, words := range r {
		folder, _ := path.Match(subject, path.Dir(file))
		if folder || subject == file {
			used[subject] = true
			allowed = append(allowed, words...)
			if allowed == nil {
				allowed = []string{}
			}
		}
	}
	return allowed
}

// permits reports whether the words of rules allow an import.
func permits(allowed []string, imported string) bool {
	if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
		return slices.Contains(allowed, imported)
	}
	return !slices.ContainsFunc(allowed, func(word string) bool {
		forbidden, ok := strings.CutPrefix(word, "!")
		return ok && (imported == forbidden || strings.HasPrefix(imported, forbidden+"/"))
	})
}

// importsBelow returns the imports of each Go file below root, also in nested modules. It leaves out
// tests unless tests is set. The packages of this repository are given by their folders.
func importsBelow(t *testing.T, root string, tests bool) map[string][]string {
	t.Helper()
	files := make(map[string][]string)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(skippedFolders, entry.Name())):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || !tests && strings.HasSuffix(name, "_test.go"):
			return nil
		}
		imports, err := importsOf(name)
		files[filepath.ToSlash(name)] = imports
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func importsOf(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var imports []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if below, ok := strings.CutPrefix(imported, modulePath); ok {
			imported = "." + below
		}
		imports = append(imports, imported)
	}
	return imports, nil
}
