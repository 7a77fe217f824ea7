package observe

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// TestPasswordsAreNeverPrinted checks that no output of the plugin has a password, whether its URL
// came from the program, a robots.txt, a sitemap or a redirect.
func TestPasswordsAreNeverPrinted(t *testing.T) {
	const secret = "pa55word"
	user := "http://joe:" + secret + "@"
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	sites := robotstest.Sites{
		"a.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\nCrawl-delay: 20\nSitemap: " + user + "a.test/map.xml\nSitemap: " + user + "a.test/gone.xml\n" +
				"Sitemap: " + user + "a.test/closed/map.xml\nSitemap: " + user + "a.test/html\nSitemap: " + user + "a.test:x/\nSitemap: " + user + "dead.test/map.xml\nSitemap: http://joe:" + secret + "/@a.test\n",
			"/": robotstest.Page(user+"a.test/closed/2", user+"b.test/"), "/busy": busy, "/html": "<html>" + user + "a.test/</html>",
			"/moved":       robotstest.Redirect(user + "a.test/closed/3"),
			"/moved/dead":  robotstest.Redirect(user + "dead.test/"),
			"/moved/again": robotstest.Redirect(user + "a.test/moved"),
			"/map.xml": robotstest.Sitemap(user+"a.test/closed/4", user+"elsewhere.test/", user+"a.test/old", user+"a.test/fed", user+"a.test/fed",
				user+"a.test:x/", "ftp://joe:"+secret+"@a.test/", "http://joe:"+secret+"/@[a.test", user+"a.test/closed/%zz", "yesterday "+user+"a.test/date"),
		},
		"b.test":    {"/robots.txt": robotstest.Redirect("ftp://joe:" + secret + "@b.test/robots.txt"), "/": robotstest.Page()},
		"c.test":    {"/robots.txt": robotstest.Redirect(user + "c.test:x/robots.txt"), "/": robotstest.Page()},
		"d.test":    {"/robots.txt": robotstest.Redirect(user + "dead.test/robots.txt"), "/": robotstest.Page()},
		"skip.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1000", "/": robotstest.Page()},
		"down.test": {"*": kit.Drop}, "broken.test": {"*": 503},
	}
	for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": kit.Async} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, ", dry run ", dry), func(t *testing.T) {
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
					var out strings.Builder
					printed := &kit.LockedWriter{W: &out}
					show := func(what string, v any) {
						text, err := json.Marshal(v)
						kit.Must(t, err)
						fmt.Fprintf(printed, "%s: %v %s\n", what, v, text)
					}
					opts := []collyrobots.Option{
						collyrobots.Logger(slog.New(slog.NewTextHandler(printed, &slog.HandlerOptions{Level: slog.LevelDebug}))),
						collyrobots.OnDenied(func(_ *colly.Request, err error) { show("OnDenied", err) }),
						collyrobots.OnEvent(func(e *collyrobots.Event) {
							show("OnEvent", e)
							if e.Change != nil {
								show("Event.Change", *e.Change)
							}
						}),
						collyrobots.Shadow(dialect.All()...),
						collyrobots.SkipCrawlDelayAbove(time.Minute),
						collyrobots.Store(store.NewMemory()),
						collyrobots.FollowSitemaps(collyrobots.Feed{Since: time.Now(), WellKnown: true, Resume: true}),
					}
					if dry {
						opts = append(opts, collyrobots.DryRun(true))
					}
					c := kit.Start(t, web, options, opts...).Follow()
					c.Impolite = true
					c.OnError(func(_ *colly.Response, err error) {
						if !fromColly(err) {
							show("OnError", err.Error())
						}
					})
					hosts := []string{"a.test/", "a.test/closed/1", "a.test/busy", "a.test/moved", "a.test/moved/dead", "a.test/moved/again",
						"b.test/", "c.test/", "d.test/", "skip.test/", "down.test/", "broken.test/", "dead.test/"}
					for _, host := range hosts {
						if err := c.Visit(user + host); err != nil && !fromColly(err) {
							show("Visit", err.Error())
						}
					}
					c.Wait()
					bare := c.Collector.Collector.Clone() // not attached
					bare.Visit(user + "a.test/closed/5")
					bare.Wait()
					for _, u := range append(hosts, "a.test:x/", "a.test/%zz", "[a.test", "") {
						d, err := c.Robots.Check(t.Context(), user+u)
						show("Check", d)
						show("Check", fmt.Sprint(err))
					}
					for _, u := range []string{"ftp://joe:" + secret + "@a.test/", "http://joe:" + secret + "/@a.test", "joe:" + secret + "@a.test", user + "a.test/", user + "dead.test/"} {
						if strings.Contains(u, "://") {
							_, err := c.Robots.Check(t.Context(), u)
							show("Check", fmt.Sprint(err))
							_, err = c.Robots.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{}, u, "x")
							show("SitemapQueue", fmt.Sprint(err))
							for _, err := range c.Robots.Pages(t.Context(), collyrobots.Feed{Scope: collyrobots.ScopeAny}, u) {
								show("Pages", fmt.Sprint(err))
							}
						}
					}
					show("Stats", c.Robots.Stats())
					synctest.Wait() // until all listeners were called
					if out.Len() < 10_000 || !strings.Contains(out.String(), "joe:xxxxx@") {
						t.Errorf("the output is too short: %s", out.String())
					}
					for line := range strings.Lines(out.String()) {
						if strings.Contains(line, secret) {
							t.Error(line)
						}
					}
				})
			})
		}
	}
}

// fromColly reports whether an error is one of Colly's own, which contain URLs as they are.
func fromColly(err error) bool {
	visited := (*colly.AlreadyVisitedError)(nil)
	return errors.As(err, &visited)
}
