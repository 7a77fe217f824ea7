package collyrobots_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// An ordinary http.Client obeys robots.txt and waits for its turn. A page that robots.txt denies is
// an error, also if a redirect leads to it. The sites of these examples are in memory; a real
// program passes nil to Transport, or its own transport.
func ExamplePlugin_Transport() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/tea":        "green",
		"/basket":     robotstest.Redirect("/cart"),
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
	for _, path := range []string{"/tea", "/cart", "/basket"} {
		resp, err := client.Get("http://shop.test" + path)
		var denied *collyrobots.DisallowedError
		switch {
		case errors.As(err, &denied):
			fmt.Println(path, "denied by", denied.Decision.Rule)
		case err != nil:
			log.Fatal(err)
		default:
			resp.Body.Close()
			fmt.Println(path, resp.Status)
		}
	}
	fmt.Println(web.Log("shop.test").URIs())
	// Output:
	// /tea 200 OK
	// /cart denied by Disallow: /cart
	// /basket denied by Disallow: /cart
	// [/robots.txt /tea /basket]
}

// A program that sends its requests itself acquires a Turn for each request. In this example, the
// variable browser is in the place of such a program.
func ExamplePlugin_Acquire() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/tea":        "green",
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()
	browser := &http.Client{Transport: web.Transport()}

	robots, err := collyrobots.New(collyrobots.HTTPClient(browser)) // requests robots.txt
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	for _, path := range []string{"/tea", "/cart"} {
		req, err := http.NewRequest(http.MethodGet, "http://shop.test"+path, nil)
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("User-Agent", "ExampleBot/1.0 (+https://example.com/bot)")
		turn, err := robots.Acquire(context.Background(), req) // waits until the request may start
		if err != nil {
			fmt.Println(err)
			continue
		}
		resp, err := browser.Do(req)
		if err == nil {
			turn.Answered(resp.StatusCode, resp.Header)
			fmt.Println(path, resp.Status)
			resp.Body.Close()
		}
		turn.End()
	}
	fmt.Println(web.Log("shop.test").URIs())
	// Output:
	// /tea 200 OK
	// collyrobots: http://shop.test/cart denied: "Disallow: /cart", line 2 of http://shop.test/robots.txt, group "*" (rfc9309)
	// [/robots.txt /tea]
}
