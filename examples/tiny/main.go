// Command tiny is a small crawler that obeys robots.txt. The README shows it.
package main

import (
	"log"

	"github.com/collyrobots/collyrobots"
	"github.com/gocolly/colly/v2"
)

func main() {
	c := colly.NewCollector(
		colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"), // your name, and a page about your crawler
		colly.AllowedDomains("example.com"),
	)
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.OnScraped(func(r *colly.Response) { log.Println(r.StatusCode, r.Request.URL) })

	robots, err := collyrobots.WithRobots(c, collyrobots.Polite()) // after the OnRequest callbacks, before the first Visit
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()

	if err := c.Visit("https://example.com/"); err != nil {
		log.Print(err) // robots.txt denies the page, or it could not be fetched
	}
	c.Wait() // for a collector with colly.Async()
}
