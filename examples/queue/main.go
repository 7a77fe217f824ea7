// Command queue crawls sites with colly/queue. Its arguments are the URLs of the sites. The pages
// in the sitemaps of the sites are also added to the queue, and so to the storage of the queue.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/sitemap"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(urls []string) error {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.OnResponse(func(r *colly.Response) { fmt.Println(r.StatusCode, r.Request.URL.Redacted()) })

	// A thread of the queue waits for the host of its page, so there should be more threads than
	// hosts.
	q, err := queue.New(8, &queue.InMemoryQueueStorage{MaxSize: 100_000})
	if err != nil {
		return err
	}
	robots, err := collyrobots.WithRobots(c,
		collyrobots.MinDelay(250*time.Millisecond),
		collyrobots.FollowSitemaps(collyrobots.Feed{
			Sink: func(_ context.Context, e sitemap.Entry) error { return q.AddURL(e.Loc) },
		}))
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
