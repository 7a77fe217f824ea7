package view_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/view"
)

// A complete spider that shows its page at http://127.0.0.1:8090/robots/ while it runs.
func Example() {
	c := collyrobots.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	robots, err := c.WithRobots()
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/robots/", view.New(robots, view.Options{}))
	go http.ListenAndServe("127.0.0.1:8090", nil) // use loopback, because the page has no password
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("https://example.com/")
	c.Wait()
}

// Other pages and programs can read the same state as JSON.
func ExampleNew() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": robotstest.Pages(3, "User-agent: *\nDisallow:\n")})
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
	page := view.New(robots, view.Options{})

	c.Visit("http://shop.test/0")

	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/state.json", nil))
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), `"host":"shop.test"`))
	// Output: 200 true
}
