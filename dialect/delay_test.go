package dialect_test

import (
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestDelayLine checks that DelayLine returns the line of the longest Crawl-delay of the groups
// that apply.
func TestDelayLine(t *testing.T) {
	long := strings.Repeat("# a comment\n", 40_000) // 480 KB
	for _, tc := range []struct {
		name, file string
		group      string
		line       int
	}{
		{"none", "User-agent: *\nDisallow: /\n", "*", 0},
		{"one", "User-agent: *\nDisallow: /\nCrawl-delay: 2\n", "*", 3},
		{"before the rules", "User-agent: *\nCrawl-delay: 2\nDisallow: /a\nDisallow: /b*c\n", "*", 2},
		{"zero", "User-agent: *\nCrawl-delay: 0\n", "*", 2},
		{"not a number", "User-agent: *\nCrawl-delay: x\nCrawl-delay: 1\n", "*", 3},
		{"the longest", "User-agent: *\nCrawl-delay: 1\nCrawl-delay: 3\nCrawl-delay: 2\n", "*", 3},
		{"the first of two", "User-agent: *\nCrawl-delay: 3\n\n\nCrawl-delay: 3.0\n", "*", 2},
		{"the longest, near the limit of Duration", "User-agent: *\nCrawl-delay: 9223372030\nCrawl-delay: 9223372036\n", "*", 3},
		{"of another group", "User-agent: a\nCrawl-delay: 1\nDisallow:\n\nUser-agent: *\nDisallow:\n", "*", 0},
		{"of two groups", "User-agent: bot\nCrawl-delay: 1\nDisallow:\n\nUser-agent: *\nDisallow:\n\nUser-agent: Bot\nCrawl-delay: 2\n", "bot", 9},
		{"before any User-agent line", "Crawl-delay: 5\nUser-agent: x\nDisallow: /\n", "", 0},
		{"with many lines before it", long + "User-agent: *\nCrawl-delay: 9\n", "*", 40_002},
	} {
		g := dialect.RFC9309().Parse([]byte(tc.file)).Group("bot")
		if got := g.DelayLine(); got != tc.line || g.Name() != tc.group {
			t.Errorf("%s: line %d of group %q, want %d of %q", tc.name, got, g.Name(), tc.line, tc.group)
		}
	}
	file := []byte("User-agent: *\nCrawl-delay: 20\nDisallow: /x\n")
	for _, d := range dialect.All() {
		want := 2
		if d == dialect.Temoto() {
			want = 0
		}
		if got := d.Parse(file).Group().DelayLine(); got != want {
			t.Errorf("%v: line %d, want %d", d, got, want)
		}
	}
}
