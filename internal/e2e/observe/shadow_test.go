package observe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestShadowDifferences checks the pages that Stats lists for each shadow dialect, and that a
// shadow neither denies pages nor fetches robots.txt again.
func TestShadowDifferences(t *testing.T) { kit.ForEachClient(t, testShadowDifferences) }

func testShadowDifferences(t *testing.T, start kit.Starter) {
	web := robotstest.New(t, robotstest.Sites{
		"a.test": robotstest.Pages(3, "User-agent: *\nDisallow: /*1$\nAllow: /2\nDisallow: /2\n"),
		"b.test": {"/robots.txt": "Disallow: /\nUser-agent: *\nDisallow: /x", "/": robotstest.Page()}, // temoto rejects this file
		"c.test": {"/robots.txt": 503, "/": robotstest.Page()},
	})
	c := start(t, web, nil, collyrobots.Shadow(dialect.Original1994(), dialect.Temoto(), dialect.RFC9309())).Follow()
	for _, host := range []string{"a", "b", "c"} {
		c.Visit("http://" + host + ".test/")
	}
	for _, host := range []string{"a.test", "b.test", "c.test"} {
		if n := strings.Count(kit.URIsOf(web.Log(host)), "robots.txt"); n != 1 {
			t.Errorf("robots.txt of %s was fetched %d times, want once", host, n)
		}
	}
	want := []string{
		"original1994: 6 compared, 1 stricter, 1 laxer: http://a.test/1 allowed, http://a.test/2 denied",
		"temoto: 6 compared, 1 stricter, 1 laxer: http://b.test/ denied, http://c.test/ allowed",
		"rfc9309: 6 compared, 0 stricter, 0 laxer: ",
	}
	for i, s := range c.Robots.Stats().Shadows {
		var differ []string
		for _, d := range s.Differences {
			verdict := map[bool]string{true: "allowed", false: "denied"}
			if d.Enforced.Allowed == d.Shadow.Allowed || d.Enforced.URL != d.Shadow.URL || d.Shadow.Dialect != s.Dialect {
				t.Errorf("the listed page has no difference: %+v", d)
			}
			differ = append(differ, d.Shadow.URL+" "+verdict[d.Shadow.Allowed])
		}
		got := fmt.Sprintf("%s: %d compared, %d stricter, %d laxer: %s", s.Dialect, s.Compared, s.Stricter, s.Laxer, strings.Join(differ, ", "))
		if got != want[i] {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
	if got, want := kit.URIsOf(web.Log("a.test")), "/robots.txt / /0 /2"; got != want {
		t.Errorf("got requests %s to a.test, want %s", got, want)
	}
}
