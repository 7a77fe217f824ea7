package collyrobots_test

import (
	"errors"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestADisallowedPageIsNeverRequested(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": async} {
		t.Run(name, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{
				"a.test": {
					"/robots.txt": "User-agent: *\nDisallow: /private\nAllow: /private/open\n",
					"/":           robotstest.Page("/private/1", "/private/open", "/away", "http://b.test/", "/hop"),
					"/private/1":  robotstest.Page(), "/private/open": robotstest.Page(),
					"/away": robotstest.Redirect("http://b.test/closed"),
					"/hop":  robotstest.Redirect("/private/2"), "/private/2": robotstest.Page(),
				},
				"b.test": {"/robots.txt": "User-agent: examplebot\nDisallow: /closed", "/": robotstest.Page(), "/closed": robotstest.Page()},
			})
			c := start(t, web, options).follow()
			c.Visit("http://a.test/")
			c.Wait()
			wantSortedURIs(t, web, "a.test", "/ /away /hop /private/open /robots.txt")
			wantSortedURIs(t, web, "b.test", "/ /robots.txt")
			wantDenied(t, c, "http://a.test/private/1", collyrobots.ReasonRule, 2)
			wantDenied(t, c, "http://a.test/hop", collyrobots.ReasonRule, 2) // Colly knows the request by its first URL
			wantDenied(t, c, "http://a.test/away", collyrobots.ReasonRule, 2)
			if len(c.denied) != 3 {
				t.Errorf("OnDenied was told of %v, want 3", c.denied)
			}
			for _, u := range []string{"http://a.test/hop", "http://a.test/away"} {
				if !errors.Is(c.errs[u], colly.ErrRobotsTxtBlocked) {
					t.Errorf("OnError of %s: %v, want ErrRobotsTxtBlocked", u, c.errs[u])
				}
			}
		})
	}
}

func TestASyncVisitReturnsTheDenialOfARedirect(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /x", "/": robotstest.Redirect("/x"), "/x": robotstest.Page(),
	}})
	c := start(t, web, nil)
	if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("Visit: %v, want ErrRobotsTxtBlocked", err)
	}
}

func TestAfterCloseNothingIsSent(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, noDenys)})
	c := start(t, web, nil)
	c.Visit("http://a.test/")
	for range 2 {
		if err := c.robots.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.Visit("http://a.test/0")
	if _, err := c.robots.Check(t.Context(), "http://a.test/"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("Check: %v, want ErrClosed", err)
	}
	if !errors.Is(c.denied["http://a.test/0"], collyrobots.ErrClosed) || urisOf(web.Log("a.test")) != "/robots.txt /" {
		t.Errorf("OnDenied was told %v, a.test was asked for %s", c.denied, urisOf(web.Log("a.test")))
	}
}

func TestTheBuiltInCheckIsTurnedOff(t *testing.T) {
	t.Setenv("COLLY_IGNORE_ROBOTSTXT", "no")
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, "Disallow: /\nUser-agent: *\nDisallow: /x")}) // temoto refuses this file
	c := start(t, web, nil)
	if err := c.Visit("http://a.test/"); err != nil || urisOf(web.Log("a.test")) != "/robots.txt /" {
		t.Errorf("%v; a.test was asked for %s", err, urisOf(web.Log("a.test")))
	}
}
