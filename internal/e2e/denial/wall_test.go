package denial

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestWalls requests robots.txt from sites in the form of bot walls, and from sites that look similar. A
// wall changes no decision.
func TestWalls(t *testing.T) {
	answer := func(status int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	const html = "<!DOCTYPE html><html><title>Just a moment...</title></html>"
	for name, test := range map[string]struct {
		answer  http.HandlerFunc
		status  report.RobotsStatus
		allowed bool // by RFC 9309
	}{
		"Cloudflare":                    {answer(403, html, "Cf-Mitigated", "challenge", "Content-Type", "text/html"), report.RobotsWalled, true},
		"Cloudflare, a block":           {answer(403, html, "Content-Type", "text/html; charset=UTF-8"), report.RobotsWalled, true},
		"Cloudflare, JSON":              {answer(403, "{}", "Cf-Mitigated", "challenge", "Content-Type", "application/json"), report.RobotsWalled, true},
		"AWS WAF, a challenge":          {answer(202, "", "X-Amzn-Waf-Action", "challenge", "Content-Type", "text/html"), report.RobotsWalled, true},
		"AWS WAF, a CAPTCHA":            {answer(405, html, "X-Amzn-Waf-Action", "captcha", "Content-Type", "text/html"), report.RobotsWalled, true},
		"Vercel":                        {answer(429, html, "X-Vercel-Mitigated", "challenge", "Content-Type", "text/html"), report.RobotsWalled, true},
		"Imperva":                       {answer(200, "\n<html style=\"height:100%\"><head><META NAME=\"ROBOTS\" CONTENT=\"NOINDEX, NOFOLLOW\">", "Content-Type", "text/html"), report.RobotsWalled, true},
		"Anubis":                        {answer(200, "\ufeff  "+html, "Content-Type", "text/html"), report.RobotsWalled, true},
		"a login":                       {answer(401, html, "Content-Type", "text/html"), report.RobotsWalled, true},
		"503 with a page":               {answer(503, html, "Content-Type", "text/html"), report.RobotsWalled, false},
		"403 without a Content-Type":    {answer(403, html), report.RobotsWalled, true},
		"403 with text":                 {answer(403, "forbidden", "Content-Type", "text/plain"), report.RobotsNone, true},
		"403 without a body":            {answer(403, "", "Content-Type", "text/plain"), report.RobotsNone, true},
		"404 with a page":               {answer(404, html, "Content-Type", "text/html"), report.RobotsNone, true},
		"500 with a page":               {answer(500, html, "Content-Type", "text/html"), report.RobotsUnreachable, false},
		"503 with text":                 {answer(503, "busy", "Content-Type", "text/plain"), report.RobotsUnreachable, false},
		"rules as text/html":            {answer(200, "User-agent: *\nDisallow: /x\n", "Content-Type", "text/html"), report.RobotsRules, true},
		"an empty file as text/html":    {answer(200, "", "Content-Type", "text/html"), report.RobotsRules, true},
		"rules in a page":               {answer(200, "<pre>\nUser-agent: *\nDisallow: /x\n</pre>", "Content-Type", "text/html"), report.RobotsRules, true},
		"a sitemap in a page":           {answer(200, "<pre>\nSitemap: http://a.test/s.xml\n</pre>", "Content-Type", "text/html"), report.RobotsRules, true},
		"a site that was not mitigated": {answer(200, "User-agent: *\nDisallow:\n", "Cf-Mitigated", "none"), report.RobotsRules, true},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": test.answer, "/1": "one"}}, func(t *testing.T, web *robotstest.Web) {
				heard := kit.Hear(report.EventRobots)
				c := kit.Start(t, web, nil, heard.On())
				c.Visit("http://a.test/1")
				if got := kit.CountURI(web, "/1") > 0; got != test.allowed {
					t.Errorf("the page was fetched: %v", got)
				}
				walled := test.status == report.RobotsWalled
				if events := heard.Wait(); events[0].RobotsStatus != test.status {
					t.Errorf("the event says %s", events[0].RobotsStatus)
				}
				d, err := c.Robots.Check(context.Background(), "http://a.test/1")
				kit.Must(t, err)
				if d.Walled != walled || d.Allowed != test.allowed {
					t.Errorf("the decision is %v", d)
				}
				r, err := c.Robots.Robots(context.Background(), "http://a.test/1")
				kit.Must(t, err)
				if r.RobotsStatus != test.status {
					t.Errorf("Robots says %s", r.RobotsStatus)
				}
				if n := c.Robots.Stats().Policies[test.status].Count; n != 1 {
					t.Errorf("Stats: %+v", c.Robots.Stats().Policies)
				}
			})
		})
	}
}

// TestWallsOfOtherPlugins checks that a later run knows of a wall from the Store, and that each dialect
// sees it.
func TestWallsOfOtherPlugins(t *testing.T) {
	for _, d := range dialect.All() {
		t.Run(d.String(), func(t *testing.T) {
			site := robotstest.Site{"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, "<html>")
			}}
			kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				records := collyrobots.Store(kit.NewMemoryStore().Records())
				for range 2 {
					robots := kit.NewTurns(t, web, records, collyrobots.Dialect(d))
					decision, err := robots.Check(context.Background(), "http://a.test/")
					kit.Must(t, err)
					if !decision.Walled {
						t.Errorf("the decision is %v", decision)
					}
					kit.Must(t, robots.Close())
				}
				kit.WantURIs(t, web, "a.test", "/robots.txt")
			})
		})
	}
}
