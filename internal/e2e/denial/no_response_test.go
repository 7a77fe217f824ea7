package denial

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestHeadersWithoutResponse runs a spider that reads a header of the response in OnError, as many
// public spiders do. For a page without a response, Colly's own Response has no Headers, and
// Headers.Get would panic.
func TestHeadersWithoutResponse(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\n",
			"/moved":      robotstest.Redirect("/closed"),
			"/private":    robotstest.Redirect("http://10.0.0.1/"),
			"/far":        robotstest.Redirect("http://slow.test/2"),
			"/dropped":    kit.Drop,
			"/hangs":      kit.Hang,
			"/no-gzip": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.Write([]byte("this is not gzip"))
			},
			"*": robotstest.Page(),
		},
		"slow.test":    {"/robots.txt": "User-agent: *\nCrawl-delay: 600\n", "*": robotstest.Page()},
		"down.test":    {"*": kit.Drop},
		"refuses.test": {"/robots.txt": 404, "*": 403},
	}
	shard, err := collyrobots.ShardOf("http://a.test/", 2)
	kit.Must(t, err)
	abort := func(r *colly.Request) { r.Abort() }
	for name, tc := range map[string]struct {
		url     string
		options []collyrobots.Option
		prepare func(c *colly.Collector, robots *collyrobots.Plugin)
		status  int // of the response; 0 if there is none
	}{
		"a rule":                         {url: "http://a.test/closed"},
		"a rule for a redirect":          {url: "http://a.test/moved"},
		"no robots.txt":                  {url: "http://down.test/"},
		"a delay":                        {url: "http://slow.test/", options: []collyrobots.Option{collyrobots.SkipCrawlDelayAbove(time.Minute)}},
		"a long wait of a redirect":      {url: "http://a.test/far", options: []collyrobots.Option{collyrobots.ForHosts("slow.test", collyrobots.RobotsTxt([]byte("User-agent: *\nVisit-time: 2200-2300\n")), collyrobots.HonorDelays(true))}},
		"a private address":              {url: "http://a.test/private"},
		"another shard":                  {url: "http://a.test/", options: []collyrobots.Option{collyrobots.ShardByHost(2, 1-shard)}},
		"MaxPagesPerHost":                {url: "http://a.test/2", options: []collyrobots.Option{collyrobots.MaxPagesPerHost(1)}, prepare: func(c *colly.Collector, _ *collyrobots.Plugin) { c.Visit("http://a.test/1"); c.Wait() }},
		"StopAfterRefusals":              {url: "http://refuses.test/2", options: []collyrobots.Option{collyrobots.StopAfterRefusals(1)}, prepare: func(c *colly.Collector, _ *collyrobots.Plugin) { c.Visit("http://refuses.test/1"); c.Wait() }},
		"Close":                          {url: "http://a.test/", prepare: func(_ *colly.Collector, robots *collyrobots.Plugin) { robots.Close() }},
		"a context that has ended":       {url: "http://a.test/", prepare: func(c *colly.Collector, _ *collyrobots.Plugin) { end(c) }},
		"a dropped connection":           {url: "http://a.test/dropped"},
		"a timeout":                      {url: "http://a.test/hangs"},
		"a body that cannot be read":     {url: "http://a.test/no-gzip"},
		"a scheme that nothing supports": {url: "gopher://a.test/"},
		"an abort before the request":    {url: "http://a.test/", prepare: func(c *colly.Collector, _ *collyrobots.Plugin) { c.OnRequestHeaders(abort) }},
		"an abort after the headers": {url: "http://a.test/", prepare: func(c *colly.Collector, _ *collyrobots.Plugin) {
			c.OnResponseHeaders(func(r *colly.Response) { r.Request.Abort() })
		}},
		"an error status": {url: "http://refuses.test/", status: 403},
	} {
		for mode, options := range kit.Modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
					c := colly.NewCollector(options...)
					c.WithTransport(web.Transport())
					c.AllowURLRevisit = true
					var failed []int
					retryAfter := func(r *colly.Response, _ error) {
						if r.Request.URL.String() == "http://a.test/1" || r.Request.URL.String() == "http://refuses.test/1" {
							return // of prepare
						}
						failed = append(failed, r.StatusCode)
						if r.Headers.Get("Retry-After") != "" {
							t.Errorf("got headers %v", r.Headers)
						}
					}
					c.OnError(retryAfter) // before the plugin
					robots, err := collyrobots.WithRobots(c, append([]collyrobots.Option{collyrobots.Logger(slog.New(slog.DiscardHandler))}, tc.options...)...)
					kit.Must(t, err)
					defer robots.Close()
					c.OnError(retryAfter)
					if tc.prepare != nil {
						tc.prepare(c, robots)
					}
					c.Visit(tc.url)
					c.Wait()
					if len(failed) != 2 || failed[0] != tc.status {
						t.Errorf("OnError was called with the statuses %v, want two calls with %d", failed, tc.status)
					}
				})
			})
		}
	}
}

// end ends the context of a collector.
func end(c *colly.Collector) {
	ctx, cancel := context.WithCancelCause(c.Context)
	c.Context = ctx
	cancel(errors.New("enough"))
}
