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

// TestShadowsWithForHosts checks that a shadow uses the settings of the host, and does not compare
// hosts whose robots.txt is ignored.
func TestShadowsWithForHosts(t *testing.T) {
	rules := "User-agent: *\nDisallow: /\n\nUser-agent: Own\nDisallow: /1\n"
	web := robotstest.New(t, robotstest.Sites{"ours.test": robotstest.Pages(3, rules), "own.test": robotstest.Pages(3, rules), "a.test": robotstest.Pages(3, kit.NoDenys)})
	c := kit.Start(t, web, nil, collyrobots.Shadow(dialect.RFC9309(), dialect.Google()),
		collyrobots.ForHosts("ours.test", collyrobots.IgnoreRobotsWithPermission()),
		collyrobots.ForHosts("own.test", collyrobots.ProductToken("Own"), collyrobots.Dialect(dialect.Google()))).Follow()
	c.Impolite = true // by permission, and under another name
	for _, host := range []string{"ours", "own", "a"} {
		c.Visit("http://" + host + ".test/")
	}
	kit.WantURIs(t, web, "ours.test", "/ /0 /1 /2")
	kit.WantURIs(t, web, "own.test", "/robots.txt / /0 /2")
	kit.WantURIs(t, web, "a.test", "/robots.txt / /0 /1 /2")
	for _, s := range c.Robots.Stats().Shadows {
		if s.Compared != 8 || s.Stricter+s.Laxer > 0 || len(s.Differences) > 0 {
			t.Errorf("%s: got %+v, want 8 pages of two hosts compared and no difference", s.Dialect, s)
		}
	}
}
