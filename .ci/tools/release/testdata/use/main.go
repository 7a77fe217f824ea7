// A program that uses the published modules: a crawl that keeps its waiting pages in a frontier and
// its robots.txt files in a folder.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store"
)

func main() {
	dir, err := os.MkdirTemp("", "use")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := crawl(dir); err != nil {
		os.RemoveAll(dir)
		log.Fatal(err)
	}
}

func crawl(dir string) (err error) {
	records, err := store.OpenDir(filepath.Join(dir, "robots"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	waiting, err := frontier.Open(filepath.Join(dir, "pages"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, waiting.Close()) }()
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(site{})
	robots, err := c.WithRobots(collyrobots.Store(records), collyrobots.Frontier(waiting))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, robots.Close()) }()
	pages := 0
	c.OnScraped(func(*colly.Response) { pages++ })
	for _, page := range []string{"/", "/private/1", "/public"} {
		if err := c.Visit("http://www.example.com" + page); err != nil && !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			return err
		}
	}
	c.Wait()
	if pages != 2 {
		return fmt.Errorf("%d pages instead of 2", pages)
	}
	return nil
}

// site is a transport that answers from memory.
type site struct{}

func (site) RoundTrip(r *http.Request) (*http.Response, error) {
	body := "a page"
	if r.URL.Path == "/robots.txt" {
		body = "User-agent: *\nDisallow: /private/\n"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
