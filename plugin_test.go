package collyrobots_test

import (
	"errors"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestDisallowedPageIsNotRequested checks that no disallowed page is requested, whether a link or
// a redirect leads to it.
func TestDisallowedPageIsNotRequested(t *testing.T) {
	for name, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
		t.Run(name, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{
				"a.test": {
					"/robots.txt": "User-agent: *\nDisallow: /private\nAllow: /private/open\n",
					"/":           robotstest.Page("/private/1", "/private/open", "/away", "http://b.test/", "/redirect"),
					"/private/1":  robotstest.Page(), "/private/open": robotstest.Page(),
					"/away":     robotstest.Redirect("http://b.test/closed"),
					"/redirect": robotstest.Redirect("/private/2"), "/private/2": robotstest.Page(),
				},
				"b.test": {"/robots.txt": "User-agent: examplebot\nDisallow: /closed", "/": robotstest.Page(), "/closed": robotstest.Page()},
			})
			c := kit.Start(t, web, options).Follow()
			c.Visit("http://a.test/")
			c.Wait()
			kit.WantSortedURIs(t, web, "a.test", "/ /away /private/open /redirect /robots.txt")
			kit.WantSortedURIs(t, web, "b.test", "/ /robots.txt")
			kit.WantDenied(t, c, "http://a.test/private/1", report.ReasonRule, 2)
			kit.WantDenied(t, c, "http://a.test/redirect", report.ReasonRule, 2) // Colly knows the request by its first URL
			kit.WantDenied(t, c, "http://a.test/away", report.ReasonRule, 2)
			if len(c.Denied) != 3 {
				t.Errorf("OnDenied got %v, want 3 denials", c.Denied)
			}
			for _, u := range []string{"http://a.test/redirect", "http://a.test/away"} {
				if !errors.Is(c.Errs[u], colly.ErrRobotsTxtBlocked) {
					t.Errorf("%s: OnError got %v, want ErrRobotsTxtBlocked", u, c.Errs[u])
				}
			}
		})
	}
}

// TestVisitReturnsDenialOfRedirect checks the error of Visit for a page that redirects to a
// disallowed one.
func TestVisitReturnsDenialOfRedirect(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /x", "/": robotstest.Redirect("/x"), "/x": robotstest.Page(),
	}})
	c := kit.Start(t, web, nil)
	if err := c.Visit("http://a.test/"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
		t.Errorf("Visit returned %v, want ErrRobotsTxtBlocked", err)
	}
}

// TestNothingIsSentAfterClose checks that requests and calls after Close fail with ErrClosed, and
// that Close may be called twice.
func TestNothingIsSentAfterClose(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, kit.NoDenys)})
	c := kit.Start(t, web, nil)
	c.Visit("http://a.test/")
	for range 2 {
		if err := c.Robots.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.Visit("http://a.test/0")
	if _, err := c.Robots.Check(t.Context(), "http://a.test/"); !errors.Is(err, collyrobots.ErrClosed) {
		t.Errorf("Check returned %v, want ErrClosed", err)
	}
	if !errors.Is(c.Denied["http://a.test/0"], collyrobots.ErrClosed) || kit.URIsOf(web.Log("a.test")) != "/robots.txt /" {
		t.Errorf("OnDenied got %v, requests to a.test: %s; want ErrClosed and no request after Close", c.Denied, kit.URIsOf(web.Log("a.test")))
	}
}

// TestBuiltInCheckIsTurnedOff checks that Colly's own check does not read robots.txt, even if the
// environment asks for it.
func TestBuiltInCheckIsTurnedOff(t *testing.T) {
	t.Setenv("COLLY_IGNORE_ROBOTSTXT", "no")
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, "Disallow: /\nUser-agent: *\nDisallow: /x")}) // temoto rejects this file
	c := kit.Start(t, web, nil)
	if err := c.Visit("http://a.test/"); err != nil || kit.URIsOf(web.Log("a.test")) != "/robots.txt /" {
		t.Errorf("got %v, requests to a.test: %s; want both requests", err, kit.URIsOf(web.Log("a.test")))
	}
}
