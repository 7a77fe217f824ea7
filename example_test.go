package collyrobots_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// This is a complete spider. It follows links, and requests no page that robots.txt disallows. The
// sites of these examples are in memory; a real spider does not call WithTransport.
func Example() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/":           robotstest.Page("/tea", "/cart", "/cups"),
		"/tea":        robotstest.Page("/", "/cups"),
		"/cups":       robotstest.Page("/cart"),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots()
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.OnResponse(func(r *colly.Response) { fmt.Println(r.StatusCode, r.Request.URL) })
	c.Visit("http://shop.test/")
	// Output:
	// 200 http://shop.test/
	// 200 http://shop.test/tea
	// 200 http://shop.test/cups
}

// An existing spider keeps its collector and its callbacks. Call WithRobots after the OnRequest
// callbacks are registered: a request that a later callback aborts has already cost its host a
// delay.
func ExampleWithRobots() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": robotstest.Pages(3, "User-agent: *\nDisallow: /1\n")})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := colly.NewCollector(colly.Async(), colly.AllowedDomains("shop.test"), colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(web.Transport())
	c.OnRequest(func(r *colly.Request) { r.Headers.Set("Accept-Language", "en") })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })

	robots, err := collyrobots.WithRobots(c) // new
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()

	c.Visit("http://shop.test/")
	c.Wait()
	fmt.Println(web.Log("shop.test").SortedURIs())
	// Output: [/ /0 /2 /robots.txt]
}

// New reports all faults of the options at once, before anything is crawled. A product token is a
// name and not a whole user agent.
func ExampleNew() {
	_, err := collyrobots.New(
		collyrobots.ProductToken("ExampleBot/1.0"), // wrong: ExampleBot
		collyrobots.MaxCrawlDelay(-time.Second))    // wrong: must not be negative
	fmt.Println(err)

	var option *collyrobots.OptionError
	fmt.Println(errors.As(err, &option), option.Option)
	// Output:
	// collyrobots: ProductToken: "ExampleBot/1.0" is not a product token: want a name such as ExampleBot, without version or blanks
	// collyrobots: MaxCrawlDelay: -1s is negative
	// true ProductToken
}

// A denied page fails like any page that cannot be fetched: Visit returns the error if the
// collector is not Async, and OnError is called. OnDenied is called only for requests that are not
// sent.
func ExampleOnDenied() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {"/robots.txt": "User-agent: *\nDisallow: /cart\n"}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(collyrobots.OnDenied(func(r *colly.Request, err error) {
		var denied *collyrobots.DeniedError
		if errors.As(err, &denied) {
			fmt.Println(r.URL, denied.Decision.Reason, denied.Decision.Rule)
		}
		fmt.Println(errors.Is(err, colly.ErrRobotsTxtBlocked), "as for Colly's own check")
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()

	fmt.Println(c.Visit("http://shop.test/cart/7"))
	// Output:
	// http://shop.test/cart/7 rule Disallow: /cart
	// true as for Colly's own check
	// Get "http://shop.test/cart/7": collyrobots: denied: "Disallow: /cart", line 2 of http://shop.test/robots.txt, group "*" (rfc9309)
}

// ForHosts sets options for some hosts. The options before ForHosts also apply to these hosts,
// unless ForHosts changes them.
func ExampleForHosts() {
	closed := robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /\nAllow: /docs/index.html\n"}
	web, err := robotstest.Open(robotstest.Sites{"shop.test": closed, "news.test": closed, "www.ours.test": closed})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	ours := collyrobots.Permission{By: "Jane Doe, webmaster of ours.test", Reference: "ticket 4711", Until: time.Date(2099, 12, 31, 0, 0, 0, 0, time.UTC)}
	robots, err := collyrobots.New(
		collyrobots.MinDelay(time.Second),
		collyrobots.ForHosts("news.test", collyrobots.Dialect(dialect.Google())),
		collyrobots.ForHosts("*.ours.test", collyrobots.IgnoreRobots(ours), collyrobots.MinDelay(0)),
		collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()

	for _, host := range []string{"shop.test", "news.test", "www.ours.test"} {
		d, err := robots.Check(context.Background(), "https://"+host+"/docs/")
		fmt.Println(host, d.Allowed, d.Reason, d.Dialect, d.Delay, err)
	}
	// Output:
	// shop.test false rule rfc9309 1s <nil>
	// news.test true rule google 1s <nil>
	// www.ours.test true ignored rfc9309 0s <nil>
}

// Check explains without a crawl why a URL may be fetched or not. Every response of a host leads to
// a decision and not to an error.
func ExamplePlugin_Check() {
	web, err := robotstest.Open(robotstest.Sites{
		"shop.test": {"/robots.txt": "User-agent: *\nAllow: /cart/help\nDisallow: /cart\n"},
		"none.test": {"/robots.txt": http.StatusNotFound},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	robots, err := collyrobots.New(collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()

	for _, u := range []string{"http://shop.test/cart/7", "http://shop.test/cart/help", "http://shop.test/", "http://none.test/"} {
		decision, err := robots.Check(context.Background(), u)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(decision)
	}
	// Output:
	// http://shop.test/cart/7 denied: "Disallow: /cart", line 3 of http://shop.test/robots.txt, group "*" (rfc9309)
	// http://shop.test/cart/help allowed: "Allow: /cart/help", line 2 of http://shop.test/robots.txt, group "*" (rfc9309)
	// http://shop.test/ allowed: no rule of http://shop.test/robots.txt matches (rfc9309)
	// http://none.test/ allowed: http://none.test/robots.txt: there is no robots.txt, status 404 (rfc9309)
}

// The pages of a site's sitemaps are crawled after the first page of the site. Wait waits for them.
func ExampleFollowSitemaps() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\nSitemap: http://shop.test/map.xml\n",
		"/map.xml":    robotstest.Sitemap("2026-03-01 http://shop.test/tea", "2019-01-01 http://shop.test/cups", "http://shop.test/cart"),
		"*":           robotstest.Page(),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(collyrobots.FollowSitemaps(collyrobots.Feed{
		Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	c.OnResponse(func(r *colly.Response) { fmt.Printf("%s %q\n", r.Request.URL, r.Ctx.Get(collyrobots.CtxLastMod)) })
	c.Visit("http://shop.test/")
	c.Wait()
	fmt.Println("denied:", robots.Stats().NotFed["denied"])
	// Output:
	// http://shop.test/ ""
	// http://shop.test/tea "2026-03-01T00:00:00Z"
	// denied: [http://shop.test/cart]
}

// Pages returns the pages of sitemaps as a loop, for programs that process them without a
// collector.
func ExamplePlugin_Pages() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "Sitemap: http://shop.test/index.xml\n",
		"/index.xml":  robotstest.SitemapIndex("http://shop.test/gone.xml", "http://shop.test/map.xml"),
		"/map.xml":    robotstest.Sitemap("http://shop.test/tea", "http://elsewhere.test/", "http://shop.test/cups"),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	robots, err := collyrobots.New(collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()

	for page, err := range robots.Pages(context.Background(), collyrobots.Feed{}, "http://shop.test/") {
		if err != nil {
			fmt.Println(err)
			continue // the pages of the other files follow
		}
		fmt.Println(page.Loc, "of", page.Sitemap)
	}
	// Output:
	// collyrobots: http://shop.test/gone.xml: sitemap answered with status 404
	// http://shop.test/tea of http://shop.test/map.xml
	// http://shop.test/cups of http://shop.test/map.xml
}

// A spider can change from Colly's built-in check to RFC 9309 in two steps. In the first step, the
// dialect Temoto decides like the built-in check, and a shadow lists the URLs that RFC 9309 decides
// differently. In the second step, the spider changes the dialect.
func Example_migration() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /list?sort=price&page=\nDisallow: /sale\nAllow: /sale\n",
		"/":           robotstest.Page("/tea", "/list?sort=price&page=2", "/sale"),
		"*":           robotstest.Page(),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(
		collyrobots.Dialect(dialect.Temoto()), // second step: dialect.RFC9309()
		collyrobots.Shadow(dialect.RFC9309()))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://shop.test/")
	for _, shadow := range robots.Stats().Shadows {
		fmt.Printf("%d pages, %d would be denied, %d would be allowed:\n", shadow.Compared, shadow.Stricter, shadow.Laxer)
		for _, d := range shadow.Differences {
			fmt.Println(d.Shadow)
		}
	}
	// Output:
	// 4 pages, 1 would be denied, 1 would be allowed:
	// http://shop.test/list?sort=price&page=2 denied: "Disallow: /list?sort=price&page=", line 2 of http://shop.test/robots.txt, group "*" (rfc9309)
	// http://shop.test/sale allowed: "Allow: /sale", line 4 of http://shop.test/robots.txt, group "*" (rfc9309)
}

// This is the test of a spider. In a bubble of testing/synctest, a crawl delay of minutes takes no
// time, and the times in the access log are exact.
func Example_testing() {
	t := new(testing.T) // in your package: func TestSpider(t *testing.T)
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"shop.test": {
			"/robots.txt": "User-agent: *\nCrawl-delay: 60\nDisallow: /cart\n",
			"/":           robotstest.Page("/tea", "/cart"),
			"/tea":        http.StatusNotFound,
		}})
		c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async())
		c.WithTransport(web.Transport()) // only the test sets the transport
		robots, err := c.WithRobots()
		if err != nil {
			t.Fatal(err)
		}
		defer robots.Close()
		c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		c.Visit("http://shop.test/")
		c.Wait()
		robotstest.Verify(t, web, dialect.RFC9309())
		fmt.Println(web.Log("shop.test"))
	})
	// Output:
	// 0s /robots.txt
	// 1m0s /
	// 2m0s /tea
}

// A Decision can be written as JSON, for example to a log that other programs read.
func ExampleDecision_json() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 1.5\nDisallow: /cart\n",
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	robots, err := collyrobots.New(collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	decision, err := robots.Check(context.Background(), "http://shop.test/cart/7")
	if err != nil {
		log.Fatal(err)
	}
	decision.Fetched, decision.Expires = time.Time{}, time.Time{} // they differ in each run
	text, err := json.MarshalIndent(decision, "", "  ")
	fmt.Println(string(text), err)
	// Output:
	// {
	//   "url": "http://shop.test/cart/7",
	//   "authority": "http://shop.test",
	//   "robots_url": "http://shop.test/robots.txt",
	//   "allowed": false,
	//   "reason": "rule",
	//   "dialect": "rfc9309",
	//   "token": "collyrobots",
	//   "group": "*",
	//   "rule": {
	//     "allow": false,
	//     "pattern": "/cart",
	//     "line": 3
	//   },
	//   "hash": "beb42eef48e123c41c477925f321d456",
	//   "status": 200,
	//   "crawl_delay": 1.5,
	//   "delay": 1.5
	// } <nil>
}

// This example publishes the statistics of a crawl with those of the Go runtime, at /debug/vars of
// an HTTP server.
func ExamplePlugin_Stats() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": robotstest.Pages(3, "User-agent: *\nDisallow: /1\n")})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots()
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	expvar.Publish("robots", expvar.Func(func() any { return robots.Stats() }))

	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://shop.test/")
	var stats collyrobots.Stats
	if err := json.Unmarshal([]byte(expvar.Get("robots").String()), &stats); err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Totals.Requests, "requests,", stats.Totals.Denied, "denied, decisions:", stats.Decisions)
	// Output:
	// 4 requests, 1 denied, decisions: map[no_rule:3 rule:1]
}

func ExampleOnEvent_debugger() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {"/robots.txt": "User-agent: *\nDisallow: /cart\n"}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := colly.NewCollector(colly.Debugger(printer{}))
	c.WithTransport(web.Transport())
	robots, err := collyrobots.WithRobots(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Visit("http://shop.test/cart")
	robots.Close() // waits until all events are delivered
	// Output:
	// robots.started http://shop.test/robots.txt
	// robots.robots http://shop.test/robots.txt
	// robots.answered http://shop.test/robots.txt
	// robots.denied http://shop.test/cart
}

// A printer is a debugger that prints the events of the plugin.
type printer struct{}

func (printer) Init() error { return nil }

func (printer) Event(e *debug.Event) {
	if strings.HasPrefix(e.Type, "robots.") {
		fmt.Println(e.Type, e.Values["url"])
	}
}

// This example writes every event as one line of JSON, for jq or for another program.
func ExampleOnEvent() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/":           robotstest.Page("/cart"),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	lines := json.NewEncoder(os.Stdout) // a file in a real spider
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(collyrobots.OnEvent(func(e *collyrobots.Event) {
		if e.Kind == report.EventDenied { // a real spider may write all events
			line, d := *e, *e.Decision // other functions have the same event, so copies are changed
			line.Decision = &d
			line.Collector = 0 // this value and the times differ in each run
			line.Time = time.Time{}
			line.Waited = 0
			d.Fetched = time.Time{}
			d.Expires = time.Time{}
			lines.Encode(line)
		}
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://shop.test/")
	robots.Close() // waits until all events are delivered
	// Output:
	// {"kind":"denied","time":"0001-01-01T00:00:00Z","host":"shop.test","url":"http://shop.test/cart","request":2,"page":2,"decision":{"url":"http://shop.test/cart","authority":"http://shop.test","robots_url":"http://shop.test/robots.txt","allowed":false,"reason":"rule","dialect":"rfc9309","token":"ExampleBot","group":"*","rule":{"allow":false,"pattern":"/cart","line":2},"hash":"00542a9a9334ddd4650649a91186daf5","status":200}}
}

// This example uses the events to show what a crawl waits for.
func ExamplePlugin_Listen() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 30\n", "/": robotstest.Page()}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.StdlibContext(ctx))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots()
	if err != nil {
		fmt.Println(err)
		return
	}
	stop := robots.Listen(func(e *collyrobots.Event) {
		if e.Kind == report.EventWaiting {
			fmt.Printf("%s waits because of %s, line %d: %v\n", e.URL, e.Source, e.Line, e.Delay)
			cancel() // this example does not wait
		}
	})
	defer stop()
	c.Visit("http://shop.test/")
	robots.Close()
	// Output:
	// http://shop.test/ waits because of crawl_delay, line 2: 30s
}

// An ordinary http.Client obeys robots.txt and waits for its turn. A page that robots.txt denies is
// an error, also if a redirect leads to it. The sites of these examples are in memory; a real
// program passes nil to Transport, or its own transport.
func ExamplePlugin_Transport() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/tea":        "green",
		"/basket":     robotstest.Redirect("/cart"),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	robots, err := collyrobots.New(collyrobots.ProductToken("ExampleBot"))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	client := &http.Client{Transport: robots.Transport(web.Transport())}
	for _, path := range []string{"/tea", "/cart", "/basket"} {
		resp, err := client.Get("http://shop.test" + path)
		var denied *collyrobots.DeniedError
		switch {
		case errors.As(err, &denied):
			fmt.Println(path, "denied by", denied.Decision.Rule)
		case err != nil:
			log.Fatal(err)
		default:
			resp.Body.Close()
			fmt.Println(path, resp.Status)
		}
	}
	fmt.Println(web.Log("shop.test").URIs())
	// Output:
	// /tea 200 OK
	// /cart denied by Disallow: /cart
	// /basket denied by Disallow: /cart
	// [/robots.txt /tea /basket]
}

// A program that sends its requests itself acquires a Turn for each request. In this example, the
// variable browser is in the place of such a program.
func ExamplePlugin_Acquire() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/tea":        "green",
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()
	browser := &http.Client{Transport: web.Transport()}

	robots, err := collyrobots.New(collyrobots.RobotsClient(browser)) // requests robots.txt
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	for _, path := range []string{"/tea", "/cart"} {
		req, err := http.NewRequest(http.MethodGet, "http://shop.test"+path, nil)
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("User-Agent", "ExampleBot/1.0 (+https://example.com/bot)")
		turn, err := robots.Acquire(context.Background(), req) // waits until the request may start
		if err != nil {
			fmt.Println(err)
			continue
		}
		resp, err := browser.Do(req)
		if err == nil {
			turn.Answered(resp.StatusCode, resp.Header)
			fmt.Println(path, resp.Status)
			resp.Body.Close()
		}
		turn.End()
	}
	fmt.Println(web.Log("shop.test").URIs())
	// Output:
	// /tea 200 OK
	// collyrobots: http://shop.test/cart denied: "Disallow: /cart", line 2 of http://shop.test/robots.txt, group "*" (rfc9309)
	// [/robots.txt /tea]
}

// A onceStorage is a storage whose IsVisited tests and sets in one step. It returns false only once
// for each page. Note that Collector.HasVisited also calls IsVisited.
type onceStorage struct {
	storage.Storage
	mu sync.Mutex
}

func (s *onceStorage) IsVisited(id uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	visited, err := s.Storage.IsVisited(id)
	if visited || err != nil {
		return visited, err
	}
	return false, s.Storage.Visited(id)
}

// Colly asks its storage whether a page was visited, and marks the page as visited in a second
// call. Between these calls, another goroutine of an Async collector may ask for the same page.
// Pages with many links are therefore sometimes fetched twice, with the plugin and without it. A
// storage that does both in one call prevents that.
func ExampleNewCollector_eachPageOnce() {
	links := make([]string, 50)
	for i := range links {
		links[i] = fmt.Sprint("/", i)
	}
	site := robotstest.Site{"*": robotstest.Page(links...), "/robots.txt": "User-agent: *\nDisallow: /7\n"}
	web, err := robotstest.Open(robotstest.Sites{"linked.test": site}) // each page links to all pages
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(web.Transport())
	if err := c.SetStorage(&onceStorage{Storage: &storage.InMemoryStorage{}}); err != nil {
		log.Fatal(err)
	}
	robots, err := c.WithRobots()
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://linked.test/0")
	c.Wait()

	asked := make(map[string]int)
	for _, r := range web.Log("linked.test") {
		asked[r.URI]++
	}
	fmt.Println(len(web.Log("linked.test")), "requests for", len(asked), "URLs")
	// Output: 50 requests for 50 URLs
}

// A crowd is a storage whose visitors all call IsVisited before the first of them calls Visited.
type crowd struct {
	storage.InMemoryStorage
	asking sync.WaitGroup
}

func (s *crowd) IsVisited(id uint64) (bool, error) {
	visited, err := s.InMemoryStorage.IsVisited(id)
	s.asking.Done()
	s.asking.Wait()
	return visited, err
}

// A slowStorage waits between the two calls of Colly, so that other goroutines call IsVisited
// there.
type slowStorage struct{ storage.InMemoryStorage }

func (s *slowStorage) Visited(id uint64) error {
	time.Sleep(200 * time.Millisecond)
	return s.InMemoryStorage.Visited(id)
}

// TestStorageThatTestsAndSetsInOneStep checks that the storage of the Example prevents the second
// fetch.
func TestStorageThatTestsAndSetsInOneStep(t *testing.T) {
	const visitors = 5
	all := new(crowd)
	all.asking.Add(visitors)
	for name, tc := range map[string]struct {
		storage storage.Storage
		pages   int
	}{
		"Colly's own": {all, visitors},
		"at once":     {&onceStorage{Storage: &slowStorage{}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, kit.NoDenys)})
			c := kit.Start(t, web, nil)
			kit.Must(t, c.SetStorage(tc.storage))
			var all sync.WaitGroup
			for range visitors {
				all.Go(func() { c.Visit("http://a.test/0") })
			}
			all.Wait()
			if len(c.Pages) != tc.pages {
				t.Errorf("got %d pages, want %d", len(c.Pages), tc.pages)
			}
		})
	}
}

// This example has two parts: a site that verifies the signature of each request, and the crawler.
func ExampleSignRequests() {
	public, key, err := ed25519.GenerateKey(nil) // a real crawler reads its key from a file
	if err != nil {
		log.Fatal(err)
	}
	site := httptest.NewServer(verifying(public))
	defer site.Close()

	const agent = "https://bot.example" + webbotauth.DirectoryPath // webbotauth.Directory serves the key there
	signer, err := webbotauth.NewSigner(key, agent, webbotauth.Draft)
	if err != nil {
		log.Fatal(err)
	}
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	robots, err := c.WithRobots(collyrobots.SignRequests(signer))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	c.OnResponse(func(r *colly.Response) { fmt.Printf("%s", r.Body) })
	if err := c.Visit(site.URL + "/old"); err != nil {
		log.Fatal(err)
	}
	unsigned, err := http.Get(site.URL + "/new")
	if err != nil {
		log.Fatal(err)
	}
	defer unsigned.Body.Close()
	fmt.Println("without a signature:", unsigned.StatusCode)
	// Output:
	// the site has verified /robots.txt
	// the site has verified /old
	// the site has verified /new
	// welcome
	// without a signature: 403
}

// verifying returns a site that responds to requests with a valid signature of one crawler. A real
// site uses a library, or a service, that fetches the keys of many crawlers.
func verifying(key ed25519.PublicKey) http.Handler {
	v := &kit.Signatures{Keys: []ed25519.PublicKey{key}}
	pages := http.NewServeMux()
	pages.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "User-agent: *\nDisallow: /private\n") })
	pages.Handle("/old", http.RedirectHandler("/new", http.StatusFound))
	pages.HandleFunc("/new", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "welcome\n") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := v.Verify(robotstest.Request{Method: r.Method, Host: r.Host, URI: r.RequestURI, Header: r.Header}, time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		fmt.Println("the site has verified", r.URL.Path)
		pages.ServeHTTP(w, r)
	})
}
