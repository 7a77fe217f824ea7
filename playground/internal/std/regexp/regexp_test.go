package regexp_test

import (
	stdregexp "regexp"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/playground/internal/std/regexp"
)

// expression returns the regular expression that temoto/robotstxt makes for a pattern.
func expression(pattern string) string {
	expr := regexp.QuoteMeta(pattern)
	expr = strings.ReplaceAll(expr, `\*`, `.*`)
	return strings.ReplaceAll(expr, `\$`, `$`)
}

// FuzzMatch checks that all functions have the results of the standard library.
func FuzzMatch(f *testing.F) {
	for _, pattern := range []string{
		"", "/*.pdf", "/*.pdf$", "*", "**", "$", "$$", "*$", "$*", "$*$", "/a*b*c", "/a*b$c", "/a$*", "/a$*b", "a*a$", "*aa$", "/a.b*", "/(*", "/[a-z]*",
		`/\*`, `/\\*`, `\$`, `\d*`, "/ä*", "/\xff*", "/\uFFFD*", "/a+*", "/{2}*", "^/*", "/a|b*", "/x#*",
	} {
		for _, path := range []string{"", "/", "/a", "/a.pdf", "/a.pdf?x", "/abc", "/a/a", "/aXbXc", "/aaa", "/axb", `/\x`, `/\`, "/%C3%A4", "/(a)", "/[a-z]b", "/{2}$"} {
			f.Add(pattern, path)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		path = strings.Map(func(c rune) rune {
			if c == '\n' || c > 0x7f {
				return '.'
			}
			return c
		}, path)
		if got, want := regexp.QuoteMeta(pattern), stdregexp.QuoteMeta(pattern); got != want {
			t.Fatalf("QuoteMeta(%q) = %q, want %q", pattern, got, want)
		}
		expr := expression(pattern)
		want, wantErr := stdregexp.Compile(expr)
		got, err := regexp.Compile(expr)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("Compile(%q): %v, want %v", expr, err, wantErr)
		}
		if err != nil {
			return
		}
		if got.String() != want.String() {
			t.Fatalf("%q: String returns %q", expr, got.String())
		}
		if match := got.MatchString(path); match != want.MatchString(path) {
			t.Fatalf("%q matches %q: %t", expr, path, match)
		}
	})
}

// TestCompileUnsupported checks that Compile refuses an expression that it would misread.
func TestCompileUnsupported(t *testing.T) {
	for _, expr := range []string{"a|b", "a.", "a*", "(a)", "[a]", "a+", "a?", "a{2}", "^a", `\d`, `\`} {
		_, err := regexp.Compile(expr)
		if err == nil {
			t.Errorf("%q has no error", expr)
		}
	}
}
