package collectors

import (
	"net/http"
	"runtime"
	"testing"
	"weak"

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

// TestCheckAfterJobs checks that Check decides from the file that is known, for the name of the last
// collector, when all collectors of a plugin were garbage collected.
func TestCheckAfterJobs(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: examplebot\nDisallow: /x", "/": robotstest.Page()}})
	robots, err := collyrobots.New()
	kit.Must(t, err)
	defer robots.Close()
	job := visit(t, robots, web.Transport())
	for range 10 {
		collect()
	}
	if job.Value() != nil {
		t.Fatal("the collector is still in memory")
	}
	d, err := robots.Check(t.Context(), "http://a.test/x")
	if err != nil || d.Reason != report.ReasonRule || d.Token != "ExampleBot" {
		t.Errorf("%v %v, token %q", err, d.Reason, d.Token)
	}
	kit.WantSortedURIs(t, web, "a.test", "/ /robots.txt")
}

// visit visits a page with a collector that is not used again.
func visit(t *testing.T, robots *collyrobots.Plugin, through *http.Transport) weak.Pointer[colly.Collector] {
	c := colly.NewCollector(colly.UserAgent(goneAgent))
	c.WithTransport(through)
	kit.Must(t, robots.Attach(c))
	kit.Must(t, c.Visit("http://a.test/"))
	through.CloseIdleConnections() // their goroutines refer to the last request
	return weak.Make(c)
}

// collect runs the garbage collector often enough for weak pointers and cleanups.
func collect() {
	for range 3 {
		runtime.GC()
		runtime.Gosched()
	}
}
