// Command client fetches pages with an ordinary http.Client that obeys robots.txt. The pages are
// those of demo sites on the loopback interface, so it sends nothing to other machines.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/demo"
)

func main() {
	sites, err := demo.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer sites.Close()
	robots, err := collyrobots.New(collyrobots.MinDelay(250 * time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	client := &http.Client{Transport: robots.Transport(sites.Transport())}
	fetch(client, os.Stdout)
}

// fetch requests a few pages of the demo sites, and prints the status or the error of each.
func fetch(client *http.Client, out io.Writer) {
	for _, url := range []string{
		"http://slow.test/1",
		"http://slow.test/admin",     // robots.txt disallows it
		"http://slow.test/2",         // waits for the Crawl-delay of the host
		"http://moved.test/old",      // redirects to /new, which waits for MinDelay
		"http://moved.test/brochure", // redirects to a page that robots.txt disallows
		"http://wild.test/a?print=no",
	} {
		err := get(client, url, out)
		if err != nil {
			fmt.Fprintln(out, err)
		}
	}
}

// get requests a page and prints its status.
func get(client *http.Client, url string, out io.Writer) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0 (+https://example.com/bot)")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // the next request to the host waits until the body is read or closed
	fmt.Fprintln(out, resp.StatusCode, resp.Request.URL)
	return nil
}
