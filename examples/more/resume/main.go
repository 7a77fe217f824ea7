// Command resume is the spider of examples/existing. The lines that let it continue after an
// interruption, even after kill -9, are marked with "new".
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier" // new
)

func main() {
	c := colly.NewCollector(colly.Async(), colly.AllowedDomains("example.com"), colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4}); err != nil {
		log.Fatal(err)
	}
	c.OnRequest(func(r *colly.Request) { r.Headers.Set("Accept-Language", "en") })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.OnResponse(func(r *colly.Response) { fmt.Println(r.StatusCode, r.Request.URL.Redacted()) })

	f, err := frontier.Open("crawl-state") // new
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	robots, err := collyrobots.WithRobots(c,
		collyrobots.Frontier(f), // new
		collyrobots.MinDelay(time.Second),
		collyrobots.OnDenied(func(r *colly.Request, err error) { log.Print(err) }))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()

	if err := c.Visit("https://example.com/"); err != nil {
		log.Print(err)
	}
	c.Wait()
}
