package collectors

import (
	"errors"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestTemotoUsesOneNameForRedirectsAndShadows checks that this name also applies to redirects and
// to the decisions of shadows. A shadow whose dialect has product tokens uses the token of the
// name.
func TestTemotoUsesOneNameForRedirectsAndShadows(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: ExampleBot\nDisallow: /0\n\nUser-agent: Other\nDisallow: /1\n",
		"/moved/0":    robotstest.Redirect("/0"), "/moved/1": robotstest.Redirect("/1"), "/0": robotstest.Page(), "/1": robotstest.Page(),
	}})
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+http://x.test)"))
	c.WithTransport(web.Transport())
	c.OnRequest(func(r *colly.Request) { r.Headers.Set("User-Agent", "Other/1.0") })
	p, err := collyrobots.WithRobots(c, collyrobots.Dialect(dialect.Temoto()), collyrobots.Shadow(dialect.RFC9309(), dialect.Original1994()))
	kit.Must(t, err)
	defer p.Close()
	if err := c.Visit("http://a.test/moved/0"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("/moved/0: Visit returned %v, want a denial", err)
	}
	kit.Must(t, c.Visit("http://a.test/moved/1"))
	c.Visit("http://a.test/0?")
	kit.WantURIs(t, web, "a.test", "/robots.txt /moved/0 /moved/1 /1")
	for _, s := range p.Stats().Shadows {
		if s.Compared != 5 || s.Stricter+s.Laxer != 0 {
			t.Errorf("%v: got %+v, want 5 compared pages and no difference", s.Dialect, s)
		}
	}
}
