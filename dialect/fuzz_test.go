package dialect_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// underRace is set if the race detector is enabled.
var underRace bool

// published are the dialects that this package implements itself.
var published = slices.DeleteFunc(dialect.All(), func(d dialect.Dialect) bool { return d == dialect.Temoto() })

// agree checks that the package and the naive implementation interpret a file in the same way.
func agree(t testing.TB, body, token string, targets ...string) {
	t.Helper()
	for _, d := range published {
		file := naiveParse(d, body)
		rules := d.Parse([]byte(body))
		want := naiveGroupFor(d, file, []string{token})
		got := rules.Group(token)
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
		if w, g := want.schedule(), got.WrittenSchedule(); !reflect.DeepEqual(g, w) {
			t.Fatalf("%s\nschedule %+v, want %+v", context, g, w)
		}
		if g := rules.Sitemaps(); !slices.Equal(g, file.sitemaps) {
			t.Fatalf("%s\nsitemaps %q, want %q", context, g, file.sitemaps)
		}
	}
}

// The pieces of generated files, paths and names. They include everything that has a meaning in
// some dialect, and similar text without a meaning.
var (
	linePieces = []string{
		"User-agent: *", "user-agent:FooBot", "USER-AGENT : Foo-Bot", "User-agent: Foo-Bot-News", "User-agent: Foo/1.0 Bar",
		"useragent: foo", "user agent FooBot", "User-agent FooBot", "User-agent: * x", "User-agent: *x", "User-agent:",
		"Disallow: /", "Disallow:", "Allow:", "Allow: /", "Disallow /a", "Disalow: /a", "allowed: /a", "Crawl-delay: 5",
		"Crawl-delay: 1.5", "Crawl-delay: 1e9", "crawl-delay: 99999999999999999999", "Crawl-delay: .0000000001", "Crawl-delay: 3.",
		"Request-rate: 10/1m", "request-rate: 1/5 0600-1459", "Request-rate: 3/2H  1500 - 0559", "Request-rate: 1/9999999999d", "Request-rate: 0/1", "Request-rate: 1/1 x",
		"Visit-time: 0100-0059", "Visit-time:0600 - 0845", "Visit-time: 2400-0100", "Visit-time: 0000-2400", "Clean-param: a&b /x*y", "Clean-param: a&&b",
		"User-agent: Yandex", "User-agent: yandexbot/3.0",
		"Sitemap: https://example.com/s.xml", "site-map: /s.xml", "Sitemap: x://", "", " ", "# a comment", "  # one", "noise", "foo: bar",
		"Disallow: /a # b", "Disallow: a", "Disallow: fish/", "Allow: /a/index.html", "Allow: /index.htm$", "Disallow: /a\x00b",
	}
	pathPieces = []string{
		"/", "/", "/", "a", "b", "ab", "*", "*", "**", "$", "$", "?", "=", "&", "%2F", "%2f", "%3F", "%3a", ":", "@", "[", "]", "%61", "%41", "~", "%7E",
		"%2A", "%24", "%", "%%", "%2", "é", "\xE9", "%C3%A9", "%c3%a9", " ", "\t", "\x01", "<", "\"", "|", ".html", "index.htm", "robots.txt", "+", "%20", "%25", "%5B", "!",
	}
	agentPieces = []string{"*", "FooBot", "foo", "Foo-Bot", "Foo-Bot-News", "bar", "MJ12bot", "Foo/1.0", "", "-", "Foo-", "YandexBot", "YandexImages/3.0"}
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

// generated is the number of files in TestAgainstNaive, and 200 times that in TestHeads. With 40000,
// TestAgainstNaive compares more than a million decisions.
var generated = flag.Int("generated", 2000, "TestAgainstNaive: number of small files; TestHeads: 200 times the number of files")

// TestAgainstNaive compares both implementations on generated files. Some of them are large,
// because large groups are searched by an index.
func TestAgainstNaive(t *testing.T) {
	for _, size := range []struct{ files, lines, targets int }{{*generated, 12, 8}, {*generated / 100, 400, 40}} {
		r := rand.New(rand.NewPCG(9309, uint64(size.lines)))
		if testing.Short() || underRace {
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

// seed adds the readings to the seed corpus of a fuzz target.
func seed(f *testing.F) {
	for _, r := range slices.Concat(readings, yandexReadings, seznamReadings) {
		for _, target := range strings.Fields(r.allow + " " + r.deny) {
			f.Add([]byte(strings.ReplaceAll(r.file, "|", "\n")), r.agent, target)
		}
	}
	f.Add([]byte("User-agent: *\nCrawl-delay: 1e400\nCrawl-delay: 99999999999999999999.5\n"), "x", "/")
	f.Add([]byte("\xFF\xFEU\x00s\x00e\x00r\x00"), "MJ12bot", "//")
}

// FuzzDecide checks that both implementations make the same decision for any file, name and target.
func FuzzDecide(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body []byte, token, target string) {
		if len(body) > 4096 || len(target) > 256 || len(token) > 64 {
			t.Skip("too much for the naive implementation")
		}
		agree(t, string(body), token, target)
	})
}

// FuzzParse checks that any bytes can be parsed, that the result is the same each time, and that it
// does not depend on which of the three line ends a file has.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body []byte, token, target string) {
		lines := newline.Split(string(body), -1)
		for _, d := range dialect.All() {
			want := read(d, string(body), token, target)
			if again := read(d, string(body), token, target); again != want {
				t.Fatalf("%s: %q parsed twice:\n%s\n%s", d, body, want, again)
			}
			if d == dialect.Temoto() || len(body) > dialect.SizeLimit/2 {
				continue
			}
			for _, end := range []string{"\n", "\r", "\r\n"} {
				if got := read(d, strings.Join(lines, end), token, target); got != want {
					t.Fatalf("%s: %q with the line end %q\ngot  %s\nwant %s", d, body, end, got, want)
				}
			}
		}
	})
}

// read returns all results of a dialect for a file as text.
func read(d dialect.Dialect, body, token, target string) string {
	rules := d.Parse([]byte(body))
	group := rules.Group(token)
	delay, ok := group.CrawlDelay()
	return fmt.Sprintf("%+v %q %v %v %+v %q %+v %v", group.Decide(target), group.Name(), delay, ok,
		group.WrittenSchedule(), rules.Sitemaps(), rules.CleanParams(), d.Lint([]byte(body)))
}

// FuzzNeutral checks that a group for another crawler, and comments and Sitemap lines between the
// lines, do not change any decision. For Yandex, such lines end a run of User-agent lines.
func FuzzNeutral(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body []byte, token, target string) {
		file := string(body)
		if strings.HasPrefix(file, "\xEF") || len(file) > 1<<16 || strings.Count(strings.ToLower(file), "allow") > 2000 {
			return // it would not be a byte order mark after the other group, or there would be too many rules
		}
		lines := newline.Split(file, -1)
		for name, changed := range map[string]string{
			"another group": "User-agent: other-crawler\nDisallow: /\nAllow: /a\n\n" + file,
			"comments":      strings.Join(lines, "\n# Disallow: /\n"),
			"sitemaps":      strings.Join(lines, "\nSitemap: https://example.com/s.xml\n"),
		} {
			for _, d := range published {
				if strings.Contains(strings.ToLower(token), "other") || d == dialect.Yandex() && name != "another group" {
					continue
				}
				before := d.Parse(body).Group(token)
				after := d.Parse([]byte(changed)).Group(token)
				a := before.Decide(target)
				b := after.Decide(target)
				a.Rule.Line = 0
				b.Rule.Line = 0
				if a != b || before.Name() != after.Name() {
					t.Fatalf("%s, %q for %q: %q: %+v, with %s %+v", d, body, token, target, a, name, b)
				}
			}
		}
	})
}

// FuzzURL checks that the target of any URL begins with a slash and has no fragment, that Locate
// ignores the case of the host, and that the robots.txt of a robots.txt is itself.
func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"http://example.com", "HTTPS://EX\u00C4MPLE.com:443/a?b#c", "http://[::1%25x]:80/", "http://a;b?c", "ftp://a:21//;#",
		"Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)", "http://xn--/", "//x", "a%zz",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name := dialect.TokenOf(s); strings.ContainsAny(name, " /;()#\t\r\n") {
			t.Fatalf("product token %q of %q", name, s)
		}
		u, err := url.Parse(s)
		if err != nil {
			return
		}
		if target := dialect.Target(u); target[0] != '/' || strings.ContainsAny(target, "# \t\r\n") {
			t.Fatalf("target %q of %q", target, s)
		}
		robots, err := dialect.Locate(u)
		if !strings.ContainsFunc(u.Host, func(c rune) bool { return c == '%' || c > 0x7e }) {
			u.Host = strings.ToUpper(u.Host)
			if upper, err2 := dialect.Locate(u); (err == nil) != (err2 == nil) || err == nil && *upper != *robots {
				t.Fatalf("%q: located at %v %v, in upper case at %v %v", s, robots, err, upper, err2)
			}
		}
		if err != nil {
			return
		}
		parsed, err := url.Parse(robots.String())
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		again, err := dialect.Locate(parsed)
		if err != nil || again.String() != robots.String() || robots.Path != "/robots.txt" {
			t.Fatalf("%q: located at %s, which is located at %v, %v", s, robots, again, err)
		}
	})
}
