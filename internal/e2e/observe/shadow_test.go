package observe

import (
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestShadowsWithForHosts checks that a shadow uses the settings of the host, and does not compare
// hosts whose robots.txt is ignored.
func TestShadowsWithForHosts(t *testing.T) {
	rules := "User-agent: *\nDisallow: /\n\nUser-agent: Own\nDisallow: /1\n"
	web := robotstest.New(t, robotstest.Sites{"ours.test": robotstest.Pages(3, rules), "own.test": robotstest.Pages(3, rules), "a.test": robotstest.Pages(3, kit.NoDenys)})
	c := kit.Start(t, web, nil, collyrobots.Shadow(dialect.RFC9309(), dialect.Google()),
		collyrobots.ForHosts("ours.test", kit.IgnoreRobots()),
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
