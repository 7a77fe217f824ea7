package dialect_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func parseURL(tb testing.TB, s string) *url.URL {
	tb.Helper()
	u, err := url.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// TestLocate follows Google, "Examples of valid robots.txt URLs"; "" is an error.
func TestLocate(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"https://example.com/folder/file", "https://example.com/robots.txt"},
		{"http://example.com", "http://example.com/robots.txt"},
		{"HTTP://WWW.Example.COM/A?b#c", "http://www.example.com/robots.txt"},
		{"https://www.ex\u00E4mple.com/", "https://www.xn--exmple-cua.com/robots.txt"},
		{"https://WWW.XN--exmple-cua.com/", "https://www.xn--exmple-cua.com/robots.txt"},
		{"https://\u30C6\u30B9\u30C8\u3002\u65E5\u672C/", "https://xn--zckzah.xn--wgv71a/robots.txt"},
		{"http://my_host.example/", "http://my_host.example/robots.txt"},
		{"http://R3---sn-a-.example/", "http://r3---sn-a-.example/robots.txt"},
		{"ftp://example.com/pub/", "ftp://example.com/robots.txt"},
		{"ftp://example.com:21/pub/", "ftp://example.com/robots.txt"},
		{"https://212.96.82.21/", "https://212.96.82.21/robots.txt"},
		{"https://example.com:443/", "https://example.com/robots.txt"},
		{"http://example.com:080/", "http://example.com/robots.txt"},
		{"http://example.com:/", "http://example.com/robots.txt"},
		{"http://example.com:443/", "http://example.com:443/robots.txt"},
		{"https://example.com:8181/", "https://example.com:8181/robots.txt"},
		{"http://user:secret@example.com/", "http://example.com/robots.txt"},
		{"http://[2001:DB8:0::1]:80/x", "http://[2001:db8::1]/robots.txt"},
		{"http://[2001:db8::1]:81/x", "http://[2001:db8::1]:81/robots.txt"},
		{"http://[fe80::1%25en0]/", "http://[fe80::1%25en0]/robots.txt"},
		{"http://example.com./", "http://example.com/robots.txt"}, // one host, with and without the dot
		{"mailto:a@example.com", ""},
		{"data:text/plain,x", ""},
		{"file:///etc/passwd", ""},
		{"javascript:alert(1)", ""},
		{"//example.com/", ""},
		{"/path", ""},
		{"", ""},
		{"http:///path", ""},
		{"http://:80/", ""},
		{"http://example.com:99999/", ""},
		{"http://xn--a.example/", ""},
	} {
		got, err := dialect.Locate(parseURL(t, test.url))
		switch {
		case err != nil && test.want != "":
			t.Errorf("%s: %v", test.url, err)
		case err == nil && got.String() != test.want:
			t.Errorf("%s: %s, want %q", test.url, got, test.want)
		}
	}
}

// TestLocateHost: a host that url.Parse would not take has no robots.txt.
func TestLocateHost(t *testing.T) {
	for _, host := range []string{"a b", "a/b", "a?b", "a@b", "a#b", "\x00", "a\x7f", "[", "a:b:c", ";", "%", ".", "..", "[::%25\xff]", "[::%25a b]"} {
		if got, err := dialect.Locate(&url.URL{Scheme: "http", Host: host}); err == nil {
			t.Errorf("%q: %s", host, got)
		}
	}
}

// TestLocateError: errors name the URL, but no password.
func TestLocateError(t *testing.T) {
	_, err := dialect.Locate(parseURL(t, "gopher://user:secret@example.com/"))
	if want := `dialect: no robots.txt for the scheme of "gopher://user:xxxxx@example.com/"`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

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

func TestProductToken(t *testing.T) {
	for _, test := range []struct{ userAgent, want string }{
		{"ExampleBot", "ExampleBot"},
		{"ExampleBot/1.0 (+https://example.com/bot)", "ExampleBot"},
		{"Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)", "ExampleBot"},
		{"Mozilla/5.0 (Compatible;ExampleBot/0.1)", "ExampleBot"},
		{"colly - https://github.com/gocolly/colly", "colly"},
		{"Googlebot-Image/1.0", "Googlebot-Image"},
		{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/1.2.3.4 Safari/537.36", "Googlebot"},
		{"Mozilla/5.0 (Linux; Android 6.0.1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1.2.3.4 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"},
		{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)", "Applebot"},
		{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/1 Safari/537.36 ExampleBot/1.0 (+https://example.com/bot)", "ExampleBot"},
		{"Mozilla/5.0 (compatible; coccocbot-web/1.0; +http://help.coccoc.com/searchengine)", "coccocbot-web"},
		{"Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)", "MJ12bot"},
		{"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", "archive.org_bot"},
		{"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)", "Slurp"},
		{"Baiduspider+(+http://www.baidu.com/search/spider.htm)", "Baiduspider"},
		{"Go-http-client/1.1", "Go-http-client"},
		{"python-requests/2.31.0", "python-requests"},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36", ""},
		{"Mozilla/5.0 (Windows NT 10.0; rv:120.0) Gecko/20100101 Firefox/120.0", ""},
		{"Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0)", ""},
		{"Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18", ""},
		{"", ""},
		{"   ", ""},
		{"(+https://example.com)", ""},
		{"compatible;", ""},
		{"compatible;;;(", ""},
		{"://", ""},
	} {
		if got := dialect.ProductToken(test.userAgent); got != test.want {
			t.Errorf("%q: %q, want %q", test.userAgent, got, test.want)
		}
	}
}

// TestCheckToken: the names that no line can match are told, and only those.
func TestCheckToken(t *testing.T) {
	for _, test := range []struct {
		token string
		bad   string // dialects
	}{
		{"ExampleBot", ""},
		{"Example_Bot-News", ""},
		{"MJ12bot", "rfc9309 google "},
		{"archive.org_bot", "rfc9309 google "},
		{"ExampleBot/1.0", "rfc9309 google "},
		{"Example Bot", "rfc9309 google coccoc "},
		{"Bot#1", "rfc9309 google coccoc "},
		{"", "rfc9309 google coccoc original1994 temoto "},
		{"*", "rfc9309 google coccoc original1994 temoto "},
	} {
		bad := ""
		for _, d := range dialect.All() {
			if d.CheckToken(test.token) != nil {
				bad += d.String() + " "
			}
		}
		if bad != test.bad {
			t.Errorf("%q: %q, want %q", test.token, bad, test.bad)
		}
	}
	for _, d := range published {
		for _, token := range []string{"ExampleBot", "MJ12bot", "archive.org_bot", "Example Bot", "Bot#1"} {
			group := d.Parse([]byte("User-agent: " + token + "\nDisallow: /\n")).Group(token)
			if found := group.Name() != ""; found != (d.CheckToken(token) == nil) {
				t.Errorf("%s, %s: group found %v, CheckToken %v", d, token, found, d.CheckToken(token))
			}
		}
	}
}

// TestDecideURL: it decides as Decide does of the Target, and allocates nothing.
func TestDecideURL(t *testing.T) {
	body := []byte("User-agent: *\nDisallow: /a?b=1\nDisallow: /*%20\nDisallow: /%C3%A9\nAllow: /a?b=12$\nDisallow: /;\n")
	urls := []string{"http://h", "http://h?", "http://h?b", "http://h/a?b=1", "http://h/a?b=12", "http://h/a?b=1#b=12",
		"http://h/a?x y", "http://h/a?%20", "http://h/\u00e9?q", "http://h/a?\xff", "http://h;p/?q", "http://h/robots.txt?x"}
	for _, d := range dialect.All() {
		g := d.Parse(body).Group("x")
		for _, raw := range urls {
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if d == dialect.Temoto() && strings.Contains(u.Host, ";") {
				continue // see TestTemotoURLIsBuiltIn
			}
			if got, want := g.DecideURL(u), g.Decide(dialect.Target(u)); got != want {
				t.Errorf("%v, %s: %v, want %v", d, raw, got, want)
			}
		}
	}
	g := dialect.RFC9309().Parse(body).Group("x")
	u, _ := url.Parse("http://h/a?b=1&c=2")
	if n := testing.AllocsPerRun(100, func() { g.DecideURL(u) }); n != 0 && !underRace {
		t.Errorf("DecideURL allocates %v times", n)
	}
}

// TestLongHosts: what no DNS name can be costs no time.
func TestLongHosts(t *testing.T) {
	for n, ok := range map[int]bool{300: true, 10_000: false} {
		u := &url.URL{Scheme: "http", Host: strings.Repeat("\u00e9.", n/3)}
		if _, err := dialect.Locate(u); (err == nil) != ok {
			t.Errorf("%d octets: %v", n, err)
		}
	}
}

func TestRuleString(t *testing.T) {
	for want, r := range map[string]dialect.Rule{"": {}, "Allow: /a*": {true, "/a*", 3}, "Disallow: ": {false, "", 1}} {
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
