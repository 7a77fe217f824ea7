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
		{"http://example.com/a%2Fb%2fc", "/a%2Fb%2Fc"},
		{"http://example.com/%7Ejoe/~joe", "/%7Ejoe/~joe"},
		{"http://example.com/a*b$c", "/a*b$c"},
		{"http://example.com/\u00E9 b", "/%C3%A9%20b"},
		{"http://example.com/?q=\u00E9 b+c&d=%e9", "/?q=%C3%A9%20b+c&d=%E9"},
		{"http://example.com/?u=http://a/?b=[c]", "/?u=http://a/?b=[c]"},
		{"http://example.com/%c3%a4/%25", "/%C3%A4/%25"},
		{"http://example.com/?q=5%off&r=%", "/?q=5%25off&r=%25"},
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

// TestTargetEscapes decides about URLs with lower-case escapes and lone percent signs, which each
// dialect compares in the normal form of RFC 3986, section 6.2.2.1.
func TestTargetEscapes(t *testing.T) {
	for _, test := range []struct{ pattern, url string }{
		{"/%C3%A4", "http://example.com/%c3%a4"},
		{"/%c3%a4", "http://example.com/%c3%a4"},
		{"/%c3%a4", "http://example.com/%C3%A4"},
		{"/a?q=%c3%a4", "http://example.com/a?q=%c3%A4"},
		{"/a?q=5%off", "http://example.com/a?q=5%off"},
		{"/a?q=5%off", "http://example.com/a?q=5%25off"},
		{"/5%off", "http://example.com/5%25off"},
		{"/5%25off", "http://example.com/5%25off"},
	} {
		for _, d := range published {
			u := parseURL(t, test.url)
			group := d.Parse([]byte("User-agent: *\nDisallow: " + test.pattern + "\n")).Group("x")
			if group.DecideURL(u).Allowed || group.Decide(dialect.Target(u)).Allowed {
				t.Errorf("%s: %s does not match %s", d, test.pattern, test.url)
			}
		}
	}
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc()} {
		u := parseURL(t, "http://example.com/%c3%a4")
		if d.Parse([]byte("User-agent: *\nDisallow: /\u00E4\n")).Group("x").DecideURL(u).Allowed {
			t.Errorf("%s: /\u00E4 does not match %s", d, u)
		}
	}
}
