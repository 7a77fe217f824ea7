package feed

import (
	"fmt"
	"strings"
	"testing"
)

func TestScopes(t *testing.T) {
	scopes := []Scope{ScopeHost, ScopeWWW, ScopeSite, ScopeAny}
	for _, test := range []struct {
		root, host string
		needs      Scope
	}{
		{"a.test", "a.test", ScopeHost},
		{"a.test", "www.a.test", ScopeWWW},
		{"www.a.test", "a.test", ScopeWWW},
		{"a.test", "blog.a.test", ScopeSite},
		{"x.y.a.test", "www.a.test", ScopeSite},
		{"a.test", "b.test", ScopeAny},
		{"a.test", "a.test:8080", ScopeSite},
		{"www.a.test:8080", "a.test:8080", ScopeWWW},
		{"a.co.uk", "b.co.uk", ScopeAny},
		{"a.co.uk", "shop.a.co.uk", ScopeSite},
		{"a.github.io", "b.github.io", ScopeAny},
		{"github.io", "a.github.io", ScopeAny},
		{"www.test", "test", ScopeWWW},
		{"10.0.0.1", "10.0.0.1", ScopeHost},
		{"10.0.0.1", "11.0.0.1", ScopeAny},
		{"10.0.0.1:80", "10.0.0.1:81", ScopeSite},
		{"[2001:db8::1]", "[2001:db8::2]", ScopeAny},
		{"localhost", "a.localhost", ScopeAny},
		{"xn--bcher-kva.test", "www.xn--bcher-kva.test", ScopeWWW},
	} {
		for _, kind := range scopes {
			s := newScope(kind, test.root)
			if got, want := s.has(test.host), kind >= test.needs; got != want {
				t.Errorf("%v of %s has %s: %v, want %v", kind, test.root, test.host, got, want)
			}
		}
		if got := newScope(ScopeHost, test.root).needs(test.host); got != test.needs {
			t.Errorf("%s needs %v to have %s, want %v", test.root, got, test.host, test.needs)
		}
	}
}

func TestWhatASitemapMayList(t *testing.T) {
	files := map[string]any{
		"http://a.test/own.xml":        urlset("http://a.test/1", "https://a.test/2", "HTTP://A.TEST:80/3", "https://a.test:443/4", "https://a.test:80/no", "http://a.test:80/5", "http://a.test:81/no", "http://b.test/no"),
		"http://cdn.test/a.xml":        urlset("http://a.test/1", "http://cdn.test/2", "http://c.test/no"),
		"http://a.test/moved.xml":      "-> https://www.a.test/moved.xml",
		"https://www.a.test/moved.xml": urlset("http://a.test/1", "http://www.a.test/2"),
		"http://a.test/index.xml":      index("http://cdn.test/part.xml"),
		"http://cdn.test/part.xml":     urlset("http://a.test/1", "http://cdn.test/no"),
		"http://a.test/sub/deep/x.xml": urlset("http://a.test/1"), // the directory does not matter
		"http://a.test/cdn/index.xml":  index("http://a.test/index2.xml"),
		"http://a.test/index2.xml":     index("http://a.test/own.xml"),
		"http://a.test/wide.xml":       urlset("http://www.a.test/1", "http://b.a.test/2", "http://b.test/3"),
	}
	for _, test := range []struct {
		sitemap string
		scope   Scope
		want    string
		left    int
	}{
		{"http://a.test/own.xml", ScopeHost, "HTTP://A.TEST:80/3 a.test/1 a.test:80/5 https://a.test/2 https://a.test:443/4", 3},
		{"http://cdn.test/a.xml", ScopeHost, "a.test/1 cdn.test/2", 1},
		{"http://a.test/moved.xml", ScopeHost, "a.test/1 www.a.test/2", 0},
		{"http://a.test/index.xml", ScopeHost, "a.test/1", 1},
		{"http://a.test/sub/deep/x.xml", ScopeHost, "a.test/1", 0},
		{"http://a.test/cdn/index.xml", ScopeHost, "HTTP://A.TEST:80/3 a.test/1 a.test:80/5 https://a.test/2 https://a.test:443/4", 3},
		{"http://a.test/wide.xml", ScopeHost, "", 3},
		{"http://a.test/wide.xml", ScopeWWW, "www.a.test/1", 2},
		{"http://a.test/wide.xml", ScopeSite, "b.a.test/2 www.a.test/1", 1},
		{"http://a.test/wide.xml", ScopeAny, "b.a.test/2 b.test/3 www.a.test/1", 0},
	} {
		t.Run(fmt.Sprint(test.sitemap, " ", test.scope), func(t *testing.T) {
			w := newWorld(files).start(Options{Scope: test.scope})
			w.crawl(t.Context(), "http://a.test", test.sitemap)
			w.want(t, "visited", w.visits(), test.want)
			if got := w.feed.Count(OutOfScope); got != test.left {
				t.Errorf("%d pages are out of scope, want %d", got, test.left)
			}
		})
	}
}

// TestOutOfScopeIsLogged checks that pages out of scope are logged once for a file, with the scope
// that would include most of them.
func TestOutOfScopeIsLogged(t *testing.T) {
	w := newWorld(map[string]any{
		"http://a.test/map.xml": urlset("http://www.a.test/1", "http://b.test/2", "http://www.a.test/3", "http://a.test/4"),
		"http://a.test/far.xml": urlset("http://b.test/5"),
	}).start(Options{})
	w.crawl(t.Context(), "http://a.test", "http://a.test/map.xml", "http://a.test/far.xml")
	got := w.log.String()
	for _, want := range []string{
		"sitemap=http://a.test/map.xml count=3 url=http://www.a.test/1 option=\"Scope: ScopeWWW\"\n",
		"sitemap=http://a.test/far.xml count=1 url=http://b.test/5 option=\"Scope: ScopeAny\"\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the log does not contain %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, got)
	}
}
