package dialect_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func TestTarget(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"http://example.com", "/"},
		{"http://example.com/", "/"},
		{"http://example.com#a", "/"},
		{"http://example.com/a/b.html?c=d&e#f", "/a/b.html?c=d&e"},
		{"http://example.com?q", "/?q"},
		{"http://example.com/?", "/?"},
		{"http://example.com;p", "/;p"},
		{"http://example.com;p/x?y", "/;p/x?y"},
		{"http://example.com//a//b/", "//a//b/"},
		{"http://example.com/a%2Fb%2fc", "/a%2Fb%2fc"},
		{"http://example.com/%7Ejoe/~joe", "/%7Ejoe/~joe"},
		{"http://example.com/a*b$c", "/a*b$c"},
		{"http://example.com/\u00E9 b", "/%C3%A9%20b"},
		{"http://example.com/?q=\u00E9 b+c&d=%e9", "/?q=%C3%A9%20b+c&d=%e9"},
		{"http://example.com/?u=http://a/?b=[c]", "/?u=http://a/?b=[c]"},
		{"path", "/path"},
		{"mailto:a@example.com", "/"},
	} {
		if got := dialect.Target(parseURL(t, test.url)); got != test.want {
			t.Errorf("%s: %s, want %s", test.url, got, test.want)
		}
	}
	u := parseURL(t, "https://example.com/a/path/of/a~plain-kind_1.html#x")
	if n := testing.AllocsPerRun(100, func() { dialect.Target(u) }); n != 0 {
		t.Errorf("%v allocations for the target of a plain URL", n)
	}
}
