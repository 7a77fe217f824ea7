package lint

import (
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func TestMatchesResources(t *testing.T) {
	for _, test := range []struct {
		pattern, extension string
		want               bool
	}{
		{"/*.css", "", true},
		{"/*.CSS$", "", true},
		{"/a.js?v=*", "", true},
		{"/a.js*$?v", "", true},
		{"/a?file=b.js", "", true},
		{"/a.js?b.html?c", "", true},
		{"/a.json", "", false},
		{"/a.css/b", "", false},
		{"/js", ".js", true},
		{"/static/Scripts/*", ".js", true},
		{"/stylesheets/**", ".css", true},
		{"/css/a", "", false},
		{"/css//", "", false},
		{"/css$", "", false},
		{"/typescripts/", "", false},
		{"css", "", false},
		{"", "", false},
	} {
		extension, ok := matchesResources(test.pattern)
		if ok != test.want || extension != test.extension {
			t.Errorf("%q: %q, %t", test.pattern, extension, ok)
		}
	}
}

// TestDialectsDiffer checks that the finding names each verdict and line once, with its dialects.
func TestDialectsDiffer(t *testing.T) {
	const file = "User-agent: *\nDisallow: /\nAllow: /help\nAllow: /\n"
	want := "https://example.com/, for a crawler without a group: allowed by line 4 in rfc9309, google; denied by line 2 in original1994; denied in temoto"
	dialects := []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.Original1994(), dialect.Temoto()}
	for _, f := range Lint([]byte(file), Options{Dialects: dialects}) {
		if f.ID == "dialects-differ" && f.Text == want {
			return
		}
		t.Logf("%s %s", f.ID, f.Text)
	}
	t.Errorf("no finding says %s", want)
}
