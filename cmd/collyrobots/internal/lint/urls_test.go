package lint

import "testing"

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
