package dialect_test

import (
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
		unsupported = "key not supported by this dialect, line ignored"
		noColon     = "no key and colon, line ignored"
		typo        = "misspelt key, line ignored"
		accepted    = "misspelt key, accepted"
		colon       = "missing colon, accepted"
		orphan      = "no User-agent line before, line is for nobody"
		nobodys     = "no product token, group is for nobody"
		cut         = "only the beginning of the name, letters, _ and -, is compared"
		noSlash     = "pattern begins with neither / nor *, never matches"
		badDelay    = "not a number of seconds, line ignored"
		delayRead   = "delay read as another number of seconds"
		noURL       = "not an absolute URL"
		relative    = "relative URL, resolved against this file's"
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
		{"User-agent: a\n\nUser-agent: *\nDisallow: /b\n", "original1994", []string{"line 1: record without a Disallow, ignored"}},
		{"User-agent: MJ12bot\nDisallow: /\nUser-agent:\nDisallow: /\n", "rfc9309", []string{"line 1: " + nobodys + ": MJ12bot", "line 3: " + nobodys}},
		{"User-agent: MJ12bot\nDisallow: /\nUser-agent: 1\nDisallow: /\nUser-agent: * x\n", "google", []string{"line 1: " + cut + ": MJ12bot", "line 3: " + nobodys + ": 1", "line 5: " + cut + ": * x"}},
		{"User-agent: MJ12bot\nDisallow: /\nUser-agent: a b\nDisallow: /\n", "coccoc", []string{"line 3: " + nobodys + ": a b"}},
		{"User-agent: *\nDisallow: a\nAllow: https://example.com/\nAllow: *b\n", modern, []string{"line 2: " + noSlash + ": a", "line 3: " + noSlash + ": https://example.com/"}},
		{"User-agent: *\nDisallow: *a\nDisallow: /*b\nDisallow: /c$\n", "original1994", []string{"line 2: " + noSlash + ": *a", "line 3: " + plain + ": /*b", "line 4: " + plain + ": /c$"}},
		{"User-agent: *\nAllow: /a\nSitemap: https://a.example/\nCrawl-delay: 5\nDisallow:\n", "original1994", []string{"line 2: " + unsupported + ": Allow", "line 3: " + unsupported + ": Sitemap", "line 4: " + unsupported + ": Crawl-delay"}},
		{"User-agent: *\nAllow:\nDisallow:\n", modern, []string{"line 2: no pattern, line ignored"}},
		{"User-agent: *\nCrawl-delay: 5\nCrawl-delay: x\n", "google", []string{"line 2: " + unsupported + ": Crawl-delay", "line 3: " + unsupported + ": Crawl-delay"}},
		{"Crawl-delay: 5\nUser-agent: *\nCrawl-delay: 5s\nCrawl-delay: NaN\nCrawl-delay: 1e400\nCrawl-delay: -1\nCrawl-delay: 1,5\nCrawl-delay: 5\nCrawl-delay:\n", encoded,
			[]string{"line 1: " + orphan + ": Crawl-delay", "line 3: " + badDelay + ": 5s", "line 4: " + badDelay + ": NaN", "line 5: " + badDelay + ": 1e400", "line 6: " + badDelay + ": -1", "line 7: " + badDelay + ": 1,5", "line 9: " + badDelay}},
		{"User-agent: *\nCrawl-delay: 100\nCrawl-delay: 1.5\n", "coccoc", []string{"line 2: " + delayRead + ": 100", "line 3: " + delayRead + ": 1.5"}},
		{"Sitemap: /s.xml\nSitemap:\n", "google", []string{"line 1: " + noURL + ": /s.xml", "line 2: " + noURL}},
		{"Sitemap: /s.xml\nSitemap:\n", "rfc9309 coccoc", []string{"line 1: " + relative + ": /s.xml", "line 2: " + noURL}},
		{"User-agent: *\nDisallow: /\xE9\nDisallow: /é\n", all, []string{"line 2: not UTF-8, octets are compared as they stand: /\xE9"}},
		{"\xFF\xFEU\x00s\x00e\x00r\x00", modern, []string{"file is UTF-16, not UTF-8, nothing is understood"}},
		{"User-agent: *\nDisallow: /a\x00b\n", "google", []string{"line 2: NUL or extreme length, rest of the line ignored"}},
		{"User-agent: *\nDisallow: /" + strings.Repeat("a", 17000) + "\n", "google", []string{"line 2: NUL or extreme length, rest of the line ignored"}},
		{"Disallow: /a\nUser-agent: *\nCrawl-delay: 5s\n", "temoto", []string{"line 1: " + refused + ": Disallow: /a", "line 3: " + refused + ": Crawl-delay: 5s"}},
		{"User-agent: *\nDisallow: /s?b=1&a=2\nDisallow: /s?a=2&b=1\n", "temoto", []string{"line 2: " + unsorted + ": /s?b=1&a=2"}},
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

// TestLintSize: a file that is cut is said to be.
func TestLintSize(t *testing.T) {
	for _, d := range published {
		file := strings.Repeat("#", dialect.SizeLimit)
		if got := issues(d, file); got != "" {
			t.Errorf("%s: a file of 500 KiB: %s", d, got)
		}
		if got, want := issues(d, file+"\n"), "file is larger than 500 KiB, rest and cut line ignored: 512001 octets\n"; got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
