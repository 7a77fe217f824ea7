package dialect_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestDecideURL checks that DecideURL makes the same decision as Decide with the Target, and that
// it does not allocate.
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
				continue // see TestTemotoHosts
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

func TestRuleString(t *testing.T) {
	for want, r := range map[string]dialect.Rule{
		"":           {},
		"Allow: /a*": {Allow: true, Pattern: "/a*", Line: 3},
		"Disallow: ": {Line: 1},
	} {
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
