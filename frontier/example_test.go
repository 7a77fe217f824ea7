package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"regexp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A program without a collector takes its pages from the frontier, and the plugin makes its client
// obey robots.txt. If several goroutines do this, they call Pace after each response, so that the
// pages of a slow host wait in the frontier and not in the goroutines. The site of this example is
// in memory; a real program passes nil to Transport, or its own transport.
func Example() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/":           `<a href="/tea"> <a href="/cart">`,
		"/tea":        `<a href="/"> <a href="/tea/green">`,
		"/tea/green":  `<a href="/tea">`,
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()
	robots, err := collyrobots.New(collyrobots.ProductToken("ExampleBot"))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	client := &http.Client{Transport: robots.Transport(web.Transport())}

	dir, err := os.MkdirTemp("", "crawl-state")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) // a real program keeps the folder
	f, err := frontier.Open(dir, frontier.MaxDepth(10))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()

	if _, err := f.Add(&urlstore.Page{URL: "http://shop.test/", Depth: 1}); err != nil {
		log.Fatal(err)
	}
	for {
		p, err := f.Next(context.Background())
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		links, err := fetch(client, p.URL)
		var denied *collyrobots.DeniedError
		switch {
		case errors.As(err, &denied):
			fmt.Println(p.URL, "denied")
			err = f.End(p, urlstore.Denied)
		case err != nil:
			err = f.End(p, urlstore.Failed) // tried again later
		default:
			fmt.Println(p.URL)
			for _, link := range links {
				_, err = f.Add(&urlstore.Page{URL: "http://shop.test" + link, Depth: p.Depth + 1})
				if err != nil {
					log.Fatal(err)
				}
			}
			err = f.End(p, urlstore.Done) // after Add, so that no link is lost
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	s := f.Stats()
	fmt.Println(s.Done, "done,", s.Denied, "denied")
	// Output:
	// http://shop.test/
	// http://shop.test/tea
	// http://shop.test/cart denied
	// http://shop.test/tea/green
	// 3 done, 1 denied
}

var link = regexp.MustCompile(`href="([^"]*)"`)

// fetch returns the links of a page.
func fetch(client *http.Client, url string) (links []string, err error) {
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	for _, found := range link.FindAllStringSubmatch(string(body), -1) {
		links = append(links, found[1])
	}
	return links, err
}
