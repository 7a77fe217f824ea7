package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// published are the dialects that this package implements itself.
var published = []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc(), dialect.Original1994()}

// agree compares the package with the naive implementation.
func agree(t testing.TB, body, token string, targets ...string) {
	t.Helper()
	for _, d := range published {
		file, rules := naiveParse(d, body), d.Parse([]byte(body))
		want, got := naiveGroupFor(d, file, []string{token}), rules.Group(token)
		context := fmt.Sprintf("%s\n%q\n%q", d, body, token)
		for _, target := range targets {
			if w, g := want.decide(d, target), got.Decide(target); g != w {
				t.Fatalf("%s %q\ngot  %+v\nwant %+v", context, target, g, w)
			}
		}
		if g := got.Name(); g != want.agents[0] {
			t.Fatalf("%s\ngroup %q, want %q", context, g, want.agents[0])
		}
		wd, wok := want.crawlDelay(d)
		if gd, gok := got.CrawlDelay(); gd != wd || gok != wok {
			t.Fatalf("%s\ndelay %v %v, want %v %v", context, gd, gok, wd, wok)
		}
		wd, wok = want.writtenDelay()
		if gd, gok := got.WrittenDelay(); gd != wd || gok != wok {
			t.Fatalf("%s\nwritten delay %v %v, want %v %v", context, gd, gok, wd, wok)
		}
		if g := rules.Sitemaps(); !slices.Equal(g, file.sitemaps) {
			t.Fatalf("%s\nsitemaps %q, want %q", context, g, file.sitemaps)
		}
	}
}

// pieces are what generated files, names and URLs are made of: everything that
// means something in some dialect, and what is next to it.
var (
	linePieces = []string{
		"User-agent: *", "user-agent:FooBot", "USER-AGENT : Foo-Bot", "User-agent: Foo-Bot-News", "User-agent: Foo/1.0 Bar",
		"useragent: foo", "user agent FooBot", "User-agent FooBot", "User-agent: * x", "User-agent: *x", "User-agent:",
		"Disallow: /", "Disallow:", "Allow:", "Allow: /", "Disallow /a", "Disalow: /a", "allowed: /a", "Crawl-delay: 5",
		"Crawl-delay: 1.5", "Crawl-delay: 1e9", "crawl-delay: 99999999999999999999", "Crawl-delay: .0000000001", "Crawl-delay: 3.",
		"Sitemap: https://example.com/s.xml", "site-map: /s.xml", "Sitemap: x://", "", " ", "# a comment", "  # one", "noise", "foo: bar",
		"Disallow: /a # b", "Disallow: a", "Disallow: fish/", "Allow: /a/index.html", "Allow: /index.htm$", "Disallow: /a\x00b",
	}
	pathPieces = []string{
		"/", "/", "/", "a", "b", "ab", "*", "*", "**", "$", "$", "?", "=", "&", "%2F", "%2f", "%3F", "%3a", ":", "@", "[", "]", "%61", "%41", "~", "%7E",
		"%2A", "%24", "%", "%%", "%2", "é", "\xE9", "%C3%A9", "%c3%a9", " ", "\t", "\x01", "<", "\"", "|", ".html", "index.htm", "robots.txt", "+", "%20", "%25", "%5B", "!",
	}
	agentPieces = []string{"*", "FooBot", "foo", "Foo-Bot", "Foo-Bot-News", "bar", "MJ12bot", "Foo/1.0", "", "-", "Foo-"}
	endings     = []string{"\n", "\n", "\r\n", "\r"}
)

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

func generatePath(r *rand.Rand, n int) string {
	var b strings.Builder
	if r.IntN(8) > 0 {
		b.WriteByte('/')
	}
	for range r.IntN(n) {
		b.WriteString(pick(r, pathPieces))
	}
	return b.String()
}

func generateFile(r *rand.Rand, lines int) string {
	var b strings.Builder
	if r.IntN(20) == 0 {
		b.WriteString("\xEF\xBB\xBF"[:1+r.IntN(3)])
	}
	if r.IntN(4) > 0 {
		b.WriteString("User-agent: *\n")
	}
	for range r.IntN(lines) {
		switch r.IntN(3) {
		case 0:
			b.WriteString(pick(r, linePieces))
		case 1:
			b.WriteString("Disallow: " + generatePath(r, 7))
		case 2:
			b.WriteString("Allow: " + generatePath(r, 7))
		}
		b.WriteString(pick(r, endings))
	}
	return b.String()
}

// TestAgainstNaive asks both implementations the same generated questions: small
// files, and groups so large that they are searched in another way.
func TestAgainstNaive(t *testing.T) {
	for _, size := range []struct{ files, lines, targets int }{{4000, 12, 8}, {40, 400, 40}} {
		r := rand.New(rand.NewPCG(9309, uint64(size.lines)))
		if testing.Short() {
			size.files /= 10
		}
		for range size.files {
			var targets []string
			for range size.targets {
				targets = append(targets, generatePath(r, 10))
			}
			agree(t, generateFile(r, size.lines), pick(r, agentPieces), targets...)
		}
	}
}
