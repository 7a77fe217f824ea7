package observe

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// shadowCases are the ways on which a request is admitted, with the URLs that are judged on each.
var shadowCases = []struct {
	name  string
	crawl func(c *kit.Crawl)
	want  string
}{
	{"a page", func(c *kit.Crawl) { c.Visit("http://a.test/1") }, "/1"},
	{"a redirect of a collector", func(c *kit.Crawl) { c.Visit("http://a.test/r") }, "/r /1"},
	{"a URL that is changed after OnRequest", func(c *kit.Crawl) {
		c.OnRequest(func(r *colly.Request) { r.URL.Path = "/2" })
		c.Visit("http://a.test/1")
	}, "/1 /2"},
	{"a URL that is changed in OnRequestHeaders", func(c *kit.Crawl) {
		c.OnRequestHeaders(func(r *colly.Request) { r.URL.Path = "/2" })
		c.Visit("http://a.test/1")
	}, "/1 /2"},
	{"a name that is changed after OnRequest", func(c *kit.Crawl) {
		c.OnRequest(func(r *colly.Request) { r.Headers.Set("User-Agent", "Other/1.0") })
		c.Visit("http://a.test/1")
	}, "/1"},
	{"a name that is changed in OnRequestHeaders", func(c *kit.Crawl) {
		c.OnRequestHeaders(func(r *colly.Request) { r.Headers.Set("User-Agent", "Other/1.0") })
		c.Visit("http://a.test/1")
	}, "/1"},
	{"a clone that is not attached", func(c *kit.Crawl) { c.Collector.Collector.Clone().Visit("http://a.test/1") }, "/1"},
	{"a request of an http.Client", func(c *kit.Crawl) { get(clientOf(c, nil), "http://a.test/1") }, "/1"},
	{"a redirect of an http.Client", func(c *kit.Crawl) { get(clientOf(c, nil), "http://a.test/r") }, "/r /1"},
	{"a request in the turn of another one", func(c *kit.Crawl) {
		inner := c.Robots.Transport(c.Transport)
		get(clientOf(c, roundTrip(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.URL.Path = strings.Replace(req.URL.Path, "/1", "/2", 1)
			return inner.RoundTrip(req)
		})), "http://a.test/1")
	}, "/1 /2"},
}

// TestShadowComparesOnce checks that a shadow compares each URL that is judged exactly once, on
// whichever way its request comes.
func TestShadowComparesOnce(t *testing.T) {
	for _, test := range shadowCases {
		t.Run(test.name, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{"a.test": {
				"/robots.txt": "User-agent: *\nAllow: /\nDisallow: /", // all differ: the first rule applies, or the last one
				"/r":          robotstest.Redirect("/1"),
				"/1":          "",
				"/2":          "",
			}})
			c := kit.Start(t, web, nil, kit.Quiet(), collyrobots.Shadow(dialect.Original1994()), collyrobots.Dialect(dialect.RFC9309()))
			test.crawl(c)
			c.Wait()
			var compared []string
			s := c.Robots.Stats().Shadows[0]
			for _, d := range s.Differences {
				compared = append(compared, strings.TrimPrefix(d.Enforced.URL, "http://a.test"))
			}
			if got := strings.Join(compared, " "); got != test.want || s.Compared != len(compared) {
				t.Errorf("got %q (%d compared), want %q", got, s.Compared, test.want)
			}
			if n := strings.Count(kit.URIsOf(web.Log("a.test")), "robots.txt"); n != 1 {
				t.Errorf("robots.txt was fetched %d times, want once", n)
			}
		})
	}
}

// A roundTrip is a function that sends requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// clientOf returns a client whose requests the plugin of c admits before next sends them. If next is
// nil, the transport of c sends them.
func clientOf(c *kit.Crawl, next http.RoundTripper) *http.Client {
	if next == nil {
		next = c.Transport
	}
	return &http.Client{Transport: c.Robots.Transport(next)}
}

// get requests a URL and closes the response.
func get(client *http.Client, url string) {
	resp, err := client.Get(url)
	if err == nil {
		resp.Body.Close()
	}
}
