// Command ftp crawls directories of ftp servers. Its arguments are their URLs, such as
// ftp://ftp.example.com/pub/. The ftp://host/robots.txt of each server is obeyed.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

func main() {
	err := crawl(os.Args[1:], new(ftpTransport), time.Second, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
}

// crawl prints the size of each file below the directories. It sends ftp requests with ftp.
func crawl(directories []string, ftp http.RoundTripper, minDelay time.Duration, out io.Writer) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.RegisterProtocol("ftp", ftp)
	defer transport.CloseIdleConnections()

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(transport)
	robots, err := c.WithRobots(collyrobots.MinDelay(minDelay))
	if err != nil {
		return err
	}
	defer robots.Close()

	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		err := e.Request.Visit(e.Attr("href"))
		if err != nil {
			fmt.Fprintln(out, err)
		}
	})
	c.OnResponse(func(r *colly.Response) {
		if r.Headers.Get("Content-Type") == plainFile {
			fmt.Fprintln(out, len(r.Body), "bytes", r.Request.URL)
		}
	})
	for _, directory := range directories {
		err := c.Visit(directory)
		if err != nil {
			fmt.Fprintln(out, err)
		}
	}
	return nil
}
