// Command retry fetches pages with go-retryablehttp, a client that repeats failed requests. Its
// arguments are the URLs of the pages. Each attempt waits for its turn, and a page that robots.txt
// denies is not tried again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/collyrobots/collyrobots"
)

func main() {
	err := run(os.Args[1:], http.DefaultTransport, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
}

func run(urls []string, next http.RoundTripper, out io.Writer) error {
	robots, err := collyrobots.New(collyrobots.MinDelay(time.Second))
	if err != nil {
		return err
	}
	defer robots.Close()
	client := newClient(robots, next)
	for _, url := range urls {
		err := fetch(client, url, out)
		if err != nil {
			fmt.Fprintln(out, err)
		}
	}
	return nil
}

func newClient(robots *collyrobots.Plugin, next http.RoundTripper) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = robots.Transport(next) // inside of the retries
	client.CheckRetry = checkRetry
	client.Logger = nil
	return client
}

// checkRetry is the default policy, except that denied requests are not tried again.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	var denied *collyrobots.DisallowedError
	if errors.As(err, &denied) {
		return false, err
	}
	return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
}

// fetch requests a page and prints its status.
func fetch(client *retryablehttp.Client, url string, out io.Writer) error {
	req, err := retryablehttp.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0 (+https://example.com/bot)")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Fprintln(out, resp.StatusCode, url)
	return nil
}
