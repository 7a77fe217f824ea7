// Command tiny is a small crawler that obeys robots.txt. The README shows it.
package main

import (
	"log"

	"github.com/collyrobots/collyrobots"
	"github.com/gocolly/colly/v2"
)

func main() {
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"), colly.MaxDepth(2))
	if _, err := c.WithRobots(collyrobots.Polite()); err != nil {
		log.Fatal(err)
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.OnScraped(func(r *colly.Response) { log.Println(r.StatusCode, r.Request.URL.Redacted()) })
	if err := c.Visit("https://example.com/"); err != nil {
		log.Fatal(err) // robots.txt denies the page, or it could not be fetched
	}
}
