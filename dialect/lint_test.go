package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// issues lints a file and returns a line for each issue.
func issues(d dialect.Dialect, file string) string {
	var b strings.Builder
	for _, issue := range d.Lint([]byte(file)) {
		b.WriteString(issue.String() + "\n")
	}
	return b.String()
}

func TestLint(t *testing.T) {
	const (
		unknown     = "unknown key, line ignored"
		ignored     = "key not supported by this dialect, value ignored"
		badVisit    = "not a window such as 0600-0845, value ignored"
		unsupported = "key not supported by this dialect, line ignored"
		noColon     = "no key and colon, line ignored"
		typo        = "misspelt key, line ignored"
		accepted    = "misspelt key, accepted"
		colon       = "missing colon, accepted"
		orphan      = "no User-agent line before it, line ignored"
		noToken     = "names no product token"
		continues   = "same group as the User-agent lines above, despite the blank line or Crawl-delay between them"
		ended       = "another group than the User-agent lines above, which have no rules, because of a line between them"
		cut         = "only the letters, _ and - at the beginning of the name are compared"
		noSlash     = "pattern begins with neither / nor *, never matches"
		badDelay    = "not a number of seconds, value ignored"
		delayRead   = "changed to another number of seconds"
		badRate     = "not a rate such as 10/1m or 10/1m 0600-1459, value ignored"
		badClean    = "not a list of parameters and a path, line ignored"
		noURL       = "not an absolute URL"
		relative    = "relative URL, resolved against the URL of this file"
		plain       = "* and $ stand for themselves in this dialect"
		refused     = "whole file refused, every visit fails"
		unsorted    = "query not in alphabetical order, never matches"
	)
	for _, test := range []struct {
		file     string
		dialects string
		want     []string
	}{
		{"User-agent: *\nDisallow: /a # b\n\n# c\nSitemap: https://example.com/s.xml\n", modern + " temoto", nil},
		{"User-agent: *\nDisallow: /a\n", all + " temoto", nil},
		{"User-agent: *\nNoindex: /a\nhello world\nDisallow: /b\n", all, []string{"line 2: " + unknown + ": Noindex", "line 3: " + noColon + ": hello world"}},
		{"User-agent: *\nDisalow: /a\nDisallow: /b\n", "rfc9309 coccoc original1994", []string{"line 2: " + typo + ": Disalow"}},
		{"Useragent: *\nDisalow: /a\nDisallowed: /b\n", "google", []string{"line 1: " + accepted + ": Useragent", "line 2: " + accepted + ": Disalow", "line 3: " + accepted + ": Disallowed"}},
		{"User-agent: *\nDisallow /a\n", "google", []string{"line 2: " + colon + ": Disallow /a"}},
		{"User-agent: *\nDisallow /a\nDisallow:\n", "rfc9309 coccoc original1994", []string{"line 2: " + noColon + ": Disallow /a"}},
		{"Disallow: /a\nUser-agent: *\nDisallow: /b\n", all, []string{"line 1: " + orphan + ": Disallow"}},
		{"User-agent: *\nDisallow: /b\n\nDisallow: /a\n", "original1994", []string{"line 4: " + orphan + ": Disallow"}},
		{"User-agent: a\n\nUser-agent: *\nDisallow: /b\n", "original1994 seznam", []string{"line 1: record without a rule, ignored"}},
		{"User-agent: MJ12bot\nDisallow: /\nUser-agent:\nDisallow: /\n", "rfc9309", []string{"line 1: " + noToken + ": MJ12bot", "line 3: " + noToken}},
		{"User-agent: MJ12bot\nDisallow: /\nUser-agent: 1\nDisallow: /\nUser-agent: * x\n", "google", []string{"line 1: " + cut + ": MJ12bot", "line 3: " + noToken + ": 1", "line 5: " + cut + ": * x"}},
		{"User-agent: MJ12bot\nDisallow: /\nUser-agent: a b\nDisallow: /\n", "coccoc", []string{"line 3: " + noToken + ": a b"}},
		{"User-agent: *\nCrawl-delay: 120\n\nUser-agent: 008\nDisallow: /\n", "rfc9309", []string{"line 4: " + noToken + ": 008", "line 4: " + continues + ": 008"}},
		{"User-agent: *\nCrawl-delay: 1\nUser-agent: a\nDisallow: /\n", "rfc9309", []string{"line 3: " + continues + ": a"}},
		{"User-agent: *\nCrawl-delay: 1\nUser-agent: a\nDisallow: /\n", "yandex", []string{"line 2: " + unsupported + ": Crawl-delay", "line 3: " + ended + ": a"}},
		{"User-agent: a\n\nUser-agent: b\n# x\nUser-agent: c\nUser-agent: d\nSitemap: https://example.com/\nUser-agent: e\n# x\nDisallow: /\n\nUser-agent: f\nx\nUser-agent: g\nAllow: /\n", "yandex",
			[]string{"line 3: " + ended + ": b", "line 5: " + ended + ": c", "line 8: " + ended + ": e", "line 13: " + noColon + ": x"}},
		{"User-agent: *\nCrawl-delay: 1\nUser-agent: a\nDisallow: /\n", "google original1994", []string{"line 2: " + unsupported + ": Crawl-delay", "line 3: " + continues + ": a"}},
		{"User-agent: *\nCrawl-delay: 1\nUser-agent: a\nDisallow: /\n", "coccoc", nil},
		{"User-agent: *\nCrawl-delay: 1\nUser-agent: a\nDisallow: /\n", "seznam", []string{"line 2: " + ignored + ": Crawl-delay"}},
		{"User-agent: *\n# a\nUser-agent: a\n\t\nUser-agent: b\nUser-agent: c\nDisallow: /\n\nUser-agent: d\nDisallow: /\n", "rfc9309 google coccoc", []string{"line 5: " + continues + ": b"}},
		{"\nUser-agent: *\n\nCrawl-delay: 1\nDisallow:\nCrawl-delay: 2\n\nUser-agent: a\nDisallow: /\n", "rfc9309 coccoc", nil},
		{"User-agent: *\nAllow:\n\nUser-agent: a\nDisallow: /\n", modern, []string{"line 2: no pattern, allows nothing"}},
		{"User-agent: a\nCrawl-delay: x\nUser-agent: b\nDisallow: /\n", "coccoc", []string{"line 2: " + badDelay + ": x"}},
		{"Sitemap:\u00a0https://example.com/s.xml\u2003\n", modern, nil},
		{"User-agent: *\nDisallow: a\nAllow: https://example.com/\nAllow: *b\n", modern, []string{"line 2: " + noSlash + ": a", "line 3: " + noSlash + ": https://example.com/"}},
		{"User-agent: *\nDisallow: *a\nDisallow: /*b\nDisallow: /c$\n", "original1994", []string{"line 2: " + noSlash + ": *a", "line 3: " + plain + ": /*b", "line 4: " + plain + ": /c$"}},
		{"User-agent: *\nAllow: /a\nSitemap: https://a.example/\nCrawl-delay: 5\nDisallow:\n", "original1994", []string{"line 2: " + unsupported + ": Allow", "line 3: " + unsupported + ": Sitemap", "line 4: " + unsupported + ": Crawl-delay"}},
		{"User-agent: *\nAllow:\nDisallow:\n", modern, []string{"line 2: no pattern, allows nothing"}},
		{"User-agent: *\nCrawl-delay: 5\nCrawl-delay: x\n", "google yandex", []string{"line 2: " + unsupported + ": Crawl-delay", "line 3: " + unsupported + ": Crawl-delay"}},
		{"User-agent: *\nCrawl-delay: 5\nCrawl-delay: x\n", "seznam", []string{"line 2: " + ignored + ": Crawl-delay", "line 3: " + ignored + ": Crawl-delay"}},
		{"Crawl-delay: 5\nUser-agent: *\nCrawl-delay: 5s\nCrawl-delay: NaN\nCrawl-delay: 1e400\nCrawl-delay: -1\nCrawl-delay: 1,5\nCrawl-delay: 5\nCrawl-delay:\n", "rfc9309 coccoc",
			[]string{"line 1: " + orphan + ": Crawl-delay", "line 3: " + badDelay + ": 5s", "line 4: " + badDelay + ": NaN", "line 5: " + badDelay + ": 1e400", "line 6: " + badDelay + ": -1", "line 7: " + badDelay + ": 1,5", "line 9: " + badDelay}},
		{"User-agent: *\nCrawl-delay: 100\nCrawl-delay: 1.5\n", "coccoc", []string{"line 2: " + delayRead + ": 100", "line 3: " + delayRead + ": 1.5"}},
		{"Sitemap: /s.xml\nSitemap:\n", "google yandex", []string{"line 1: " + noURL + ": /s.xml", "line 2: " + noURL}},
		{"Sitemap: /s.xml\nSitemap:\n", "rfc9309 coccoc seznam", []string{"line 1: " + relative + ": /s.xml", "line 2: " + noURL}},
		{"User-agent: *\nDisallow: /\xE9\nDisallow: /é\n", all, []string{"line 2: not UTF-8, bytes are compared unchanged: /\xE9"}},
		{"\xFF\xFEU\x00s\x00e\x00r\x00", modern, []string{"file is in UTF-16 instead of UTF-8, all lines ignored"}},
		{"\xFF\xFEx: 1\nUser-agent: *\nDisallow: /a\n", modern, []string{"line 1: " + unknown + ": \xFF\xFEx"}},
		{"\xFF\xFEx: 1\nUser-agent: *\nDisallow: /a #\x00\n", modern, []string{"line 1: " + unknown + ": \xFF\xFEx"}},
		{"User-agent: *\nDisallow: /a\x00b\n", "google", []string{"line 2: line has a NUL or is too long, rest of the line ignored"}},
		{"User-agent: *\nDisallow: /" + strings.Repeat("a", 17000) + "\n", "google", []string{"line 2: line has a NUL or is too long, rest of the line ignored"}},
		{"Disallow: /a\nUser-agent: *\nCrawl-delay: 5s\n", "temoto", []string{"line 1: " + refused + ": Disallow: /a", "line 3: " + refused + ": Crawl-delay: 5s"}},
		{"User-agent: *\nDisallow: /s?b=1&a=2\nDisallow: /s?a=2&b=1\n", "temoto", []string{"line 2: " + unsorted + ": /s?b=1&a=2"}},
		{"User-agent: *\nDisallow: /s?b=1&\nDisallow: /s?ab=1&a\nDisallow: /s?%5B=1&A=2\nDisallow: /s?b=1&a\n", "temoto",
			[]string{"line 4: " + unsorted + ": /s?%5B=1&A=2", "line 5: " + unsorted + ": /s?b=1&a"}},
		{"User-agent: a\nRequest-rate: 1/5\nVisit-time: x\nClean-param: a\nDisallow: /b\n", "rfc9309 google coccoc original1994",
			[]string{"line 2: " + unsupported + ": Request-rate", "line 3: " + badVisit + ": x", "line 4: " + unsupported + ": Clean-param"}},
		{"User-agent: a\nRequest-rate: 5\nVisit-time: 0600-0845\nVisit-time: 6-8\nDisallow: /b\n", "rfc9309 google coccoc original1994 yandex",
			[]string{"line 2: " + badRate + ": 5", "line 3: " + unsupported + ": Visit-time", "line 4: " + badVisit + ": 6-8"}},
		{"User-agent: a\nRequest-rate: 1/5\nRequest-rate: 5\nRequest-rate: 1/1 0600-0860\nVisit-time: 0600-0845\nDisallow: /b\n", "seznam",
			[]string{"line 3: " + badRate + ": 5", "line 4: " + badRate + ": 1/1 0600-0860", "line 5: " + ignored + ": Visit-time"}},
		{"User-agent: a\nVisit-time: 0600-0860\nDisallow: /b\n", "seznam", []string{"line 2: " + badVisit + ": 0600-0860"}},
		{"User-agent: *\nRequest-rate: 1/5\nUser-agent: a\nDisallow: /b\n", "seznam", nil},
		{"Clean-param: a&b /c\nClean-param: a&&b\nClean-param:\nUser-agent: *\nDisallow: /b\n", "yandex", []string{"line 2: " + badClean + ": a&&b", "line 3: " + badClean}},
		{"Clean-param: ref /a?b$\nClean-param: ref$x\nUser-agent: *\nDisallow: /b\n", "yandex", []string{"line 1: " + badClean + ": ref /a?b$", "line 2: " + badClean + ": ref$x"}},
		{"User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n", "yandex", []string{"line 4: another group of *, combined with the first"}},
		{"User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n", "rfc9309 google coccoc original1994 seznam", nil},
		{"User-agent: *\nDisallow: /" + strings.Repeat("a", 1024) + "\n", "yandex", []string{"line 2: pattern has more than 1024 characters, never matches: /" + strings.Repeat("a", 1024)}},
		{"User-agent: *\n" + strings.Repeat("Disallow: /a\n", 2049), "yandex", []string{"file has more than 2048 rules, everything is allowed: 2049 rules"}},
		{"User-agent: *\n" + strings.Repeat("Disallow: /a\n", 2048), "yandex", nil},
	} {
		for _, name := range strings.Fields(test.dialects) {
			d, _ := dialect.ByName(name)
			got := issues(d, test.file)
			if want := strings.Join(append(test.want, ""), "\n"); got != want {
				t.Errorf("%s: %.200q\n%swant\n%s", d, test.file, got, want)
			}
		}
	}
}

// TestLintSize checks that Lint reports a file that is larger than SizeLimit.
func TestLintSize(t *testing.T) {
	for _, d := range published {
		file := strings.Repeat("#", dialect.SizeLimit)
		if got := issues(d, file); got != "" {
			t.Errorf("%s: a file of 500 KiB: %s", d, got)
		}
		want := "file is larger than 500 KiB, rest and cut line ignored: 512001 bytes\n"
		if d == dialect.Yandex() {
			want = "file is larger than 500 KiB, everything is allowed: 512001 bytes\n"
		}
		if got := issues(d, file+"\n"); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// TestLintIgnoredLines checks, on generated files, that the lines that Lint reports as ignored have
// no effect: if such a line is changed, the file permits the same.
func TestLintIgnoredLines(t *testing.T) {
	ignored := map[dialect.Problem]string{
		dialect.NoColon: "#", dialect.UnknownKey: "#", dialect.Unsupported: "#", dialect.TypoIgnored: "#", dialect.OrphanRule: "#",
		dialect.BadSitemap: "#", dialect.NoSlash: "Disallow:", dialect.EmptyAllow: "Disallow:", dialect.BadDelay: "Crawl-delay: .",
		dialect.BadRate: "Request-rate: .", dialect.BadCleanParam: "#",
		dialect.BadVisit: "Visit-time: .", dialect.ValueIgnored: "Visit-time: .",
	}
	agents := []string{"x", "FooBot", "Foo-Bot", "Foo-Bot-News"}
	r := rand.New(rand.NewPCG(18, 19))
	checked := make(map[dialect.Problem]int)
	for range 3000 {
		lines := newline.Split("\n"+generateFile(r, 12), -1) // a byte order mark is not at the start
		file := strings.Join(lines, "\n")
		targets := []string{"/", generatePath(r, 5), generatePath(r, 5), generatePath(r, 5)}
		for _, d := range published {
			for _, issue := range d.Lint([]byte(file)) {
				other, ok := ignored[issue.Problem]
				if !ok {
					continue
				}
				switch {
				case other == "Disallow:" && d == dialect.Yandex():
					other = "Allow:" // an empty Disallow would allow everything
				case issue.Problem == dialect.NoColon && d == dialect.Yandex():
					other = "x" // a comment would end a run of User-agent lines
				}
				checked[issue.Problem]++
				changed := slices.Clone(lines)
				changed[issue.Line-1] = other
				want := permissions(d, file, agents, targets)
				if got := permissions(d, strings.Join(changed, "\n"), agents, targets); got != want {
					t.Fatalf("%s: %q\n%s\nwith %q instead: %s, want %s", d, file, issue, other, got, want)
				}
			}
		}
	}
	for problem := range ignored {
		if checked[problem] < 20 {
			t.Errorf("%s: %d lines checked, want at least 20", problem, checked[problem])
		}
	}
}

// permissions returns the results of a dialect for a file as text, without the rules that decide.
func permissions(d dialect.Dialect, file string, agents, targets []string) string {
	var b strings.Builder
	rules := d.Parse([]byte(file))
	for _, agent := range agents {
		group := rules.Group(agent)
		delay, ok := group.CrawlDelay()
		fmt.Fprintf(&b, "%s %v %v %+v\n", group.Name(), delay, ok, group.Schedule())
		for _, target := range targets {
			fmt.Fprintln(&b, group.Decide(target).Allowed)
		}
	}
	return b.String() + fmt.Sprint(rules.Sitemaps(), rules.CleanParams())
}

// TestLintUnsortedQuery checks, on generated patterns, that a pattern that Lint reports as unsorted
// matches no URL.
func TestLintUnsortedQuery(t *testing.T) {
	parts := []string{"a", "b", "ab", "=", "=", "1", "&", "&", "%5B", "+"}
	r := rand.New(rand.NewPCG(19, 1))
	query := func(n int) string {
		var b strings.Builder
		for range 1 + r.IntN(n) {
			b.WriteString(pick(r, parts))
		}
		return b.String()
	}
	checked := 0
	for range 1500 {
		pattern := "/s?" + query(7)
		file := "User-agent: *\nDisallow: " + pattern + "\n"
		if issues(dialect.Temoto(), file) == "" {
			continue
		}
		checked++
		group := dialect.Temoto().Parse([]byte(file)).Group("x")
		for i := range 200 {
			target := "/s?" + query(7)
			if i%2 == 0 {
				target = pattern + query(3)
			}
			if !group.Decide(target).Allowed {
				t.Fatalf("%s matches %s", pattern, target)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d patterns checked, want at least 100", checked)
	}
}
