package hostqueue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/hostqueue"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A process crawls a site. Any number of processes may run this program at the same time.
func Example() {
	server, err := miniredis.Run() // stands for a Redis that all processes can reach
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	web, err := robotstest.Open(robotstest.Sites{"shop.test": { // stands for the internet
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/":           robotstest.Page("/tea", "/cart", "http://SHOP.test:80/#top"),
		"/tea":        robotstest.Page("/"),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer web.Close()

	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	queue, err := hostqueue.Open(ctx, client, "shops")
	if err != nil {
		fmt.Println(err)
		return
	}
	c := colly.NewCollector(colly.StdlibContext(ctx), colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := collyrobots.WithRobots(c, collyrobots.MinDelay(10*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer robots.Close()
	c.OnResponse(func(r *colly.Response) { fmt.Println(r.Request.URL) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { queue.Follow(e.Request, e.Attr("href")) })
	if err := queue.Add(ctx, "http://shop.test/"); err != nil {
		fmt.Println(err)
		return
	}
	if err := queue.Run(ctx, c, robots); err != nil {
		fmt.Println(err)
		return
	}
	stats, err := queue.Stats(ctx)
	fmt.Println(stats.Done, "done,", stats.Denied, "denied,", err)
	// Output:
	// http://shop.test/
	// http://shop.test/tea
	// 2 done, 1 denied, <nil>
}
