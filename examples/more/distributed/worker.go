package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/hostqueue"
	"github.com/collyrobots/collyrobots/internal/demo"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

const (
	minDelay   = 250 * time.Millisecond // the minimum delay between two requests to a host
	lease      = 3 * time.Second        // the hosts of a killed worker go to other workers after this time
	retryPause = 300 * time.Millisecond // the demo is short; real crawls should use the default, a minute
)

// work runs a worker until the crawl or ctx ends.
func work(ctx context.Context, j job) error {
	options, err := redisOptions(j.Redis)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	shared, err := redisstore.New(ctx, client, redisstore.Prefix(j.Prefix), redisstore.Lease(lease))
	if err != nil {
		return err
	}
	defer shared.Close()
	queue, err := hostqueue.Open(ctx, client, j.Crawl, hostqueue.Lease(lease), hostqueue.RetryPause(retryPause))
	if err != nil {
		return err
	}
	c := collyrobots.NewCollector(colly.StdlibContext(ctx), colly.UserAgent(userAgent(j.Worker)))
	c.WithTransport(demo.Transport(j.Sites))
	robots, err := c.WithRobots(
		collyrobots.ProductToken(productToken),
		collyrobots.MinDelay(minDelay),
		collyrobots.Store(shared),      // one fetch of robots.txt for all processes
		collyrobots.SharedPace(shared), // keeps the delay when a host goes from one process to another
		collyrobots.OnDenied(printDenial),
		collyrobots.Logger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))))
	if err != nil {
		return err
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if isSameHost(e.Request, e.Attr("href")) {
			queue.Follow(e.Request, e.Attr("href"))
		}
	})
	c.OnScraped(func(r *colly.Response) {
		if r.Request.URL.Path == "/" {
			addSitemaps(ctx, queue, robots, r.Request.URL.String())
		}
	})
	return queue.Run(ctx, c.Collector, robots)
}

const productToken = "ExampleBot"

// userAgent returns the User-Agent of a worker. It contains the number of the worker, for the
// report from the logs of the sites.
func userAgent(worker int) string {
	return fmt.Sprintf(productToken+"/1.0 (worker %d; +https://example.com/bot)", worker)
}

// isSameHost reports whether a link of a page leads to the host of the page.
func isSameHost(page *colly.Request, href string) bool {
	link, err := url.Parse(page.AbsoluteURL(href))
	return err == nil && link.Host == page.URL.Host
}

// addSitemaps adds the pages in the sitemaps of a site. Pages leaves out denied pages. If the
// worker is killed before the end, the page that has called addSitemaps is fetched again.
func addSitemaps(ctx context.Context, queue *hostqueue.Queue, robots *collyrobots.Plugin, site string) {
	for page, err := range robots.Pages(ctx, collyrobots.Feed{}, site) {
		if err == nil {
			err = queue.Add(ctx, page.Loc)
		}
		if err != nil {
			fmt.Println("---  ", err) // continue with the other sitemaps
		}
	}
}

// printDenial prints why a page was not requested, in the columns of the lines about requests.
func printDenial(r *colly.Request, err error) {
	var denied *collyrobots.DisallowedError
	switch {
	case !errors.As(err, &denied):
		fmt.Printf("---  %s: %v\n", r.URL, err)
	case denied.Decision.Reason == report.ReasonRule:
		fmt.Printf("---  %s denied: line %d, %v\n", r.URL, denied.Decision.Rule.Line, denied.Decision.Rule)
	default:
		fmt.Printf("---  %s denied: robots.txt is %s\n", r.URL, denied.Decision.Reason)
	}
}
