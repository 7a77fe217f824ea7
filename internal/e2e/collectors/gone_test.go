package collectors

import (
	"runtime"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

const goneAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// TestCheckWithoutCollector checks that the plugin's own requests have the user agent and the
// transport of the collector of WithRobots, even if the program no longer uses the collector. A live
// page asks Check at any time after the crawl.
func TestCheckWithoutCollector(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: examplebot\nDisallow: /x"},
		"b.test": {"/robots.txt": "User-agent: examplebot\nDisallow: /y"},
	})
	c := collyrobots.NewCollector(colly.UserAgent(goneAgent))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots()
	kit.Must(t, err)
	defer robots.Close()
	for _, u := range []string{"http://a.test/x", "http://b.test/y"} {
		d, err := robots.Check(t.Context(), u)
		if err != nil || d.Reason != report.ReasonRule || d.Token != "ExampleBot" {
			t.Errorf("%s: %v %v, token %q", u, err, d.Reason, d.Token)
		}
		c = nil
		collect()
	}
	for _, r := range web.Log("") {
		if agent := r.Header.Get("User-Agent"); agent != goneAgent {
			t.Errorf("%s%s was requested by %q", r.Host, r.URI, agent)
		}
	}
	if agent := robots.Card().Bot.UserAgent; agent != goneAgent {
		t.Errorf("the card names %q", agent)
	}
}

// collect runs the garbage collector often enough for weak pointers and cleanups.
func collect() {
	for range 3 {
		runtime.GC()
		runtime.Gosched()
	}
}
