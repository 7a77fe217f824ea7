// Command queue crawls the sitemaps of the sites given as arguments with colly/queue: what the
// sitemaps list goes through the queue, and so into whatever storage the queue has.
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(urls []string) error {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.OnResponse(func(r *colly.Response) { fmt.Println(r.StatusCode, r.Request.URL.Redacted()) })

	// A thread of the queue waits for its page's host: have more threads than hosts.
	q, err := queue.New(8, &queue.InMemoryQueueStorage{MaxSize: 100_000})
	if err != nil {
		return err
	}
	robots, err := collyrobots.WithRobots(c,
		collyrobots.MinDelay(250*time.Millisecond),
		collyrobots.FollowSitemaps(collyrobots.Feed{Sink: q.AddURL}))
	if err != nil {
		return err
	}
	defer robots.Close()

	for _, u := range urls {
		if err := q.AddURL(u); err != nil {
			return err
		}
	}
	return q.Run(c)
}
