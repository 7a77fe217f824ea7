package robotstest_test

import (
	"fmt"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The function crawl stands for the spider under test, which uses the given transport. In a test,
// call [robotstest.Verify] after the crawl; see the test at the top.
func Example() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/":           robotstest.Page("/tea", "/cart/1"),
		"/tea":        robotstest.Page("/", "/tea/green"),
		"/tea/green":  robotstest.Page(),
		"/cart/1":     robotstest.Page(),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	if err := crawl(web.Transport(), "http://shop.test/"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(web.Log("shop.test").URIs())
	// Output:
	// [/robots.txt / /tea /tea/green]
}

// A program or an Example has no test, so it starts the web with Open and closes it. The web uses
// the loopback interface and real time.
func ExampleOpen() {
	web, err := robotstest.Open(robotstest.Sites{
		"a.test": {"/": robotstest.Redirect("https://b.test/?id=1")},
		"b.test": {"/?id=1": robotstest.Page("/next")},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	client := http.Client{Transport: web.Transport()}
	resp, err := client.Get("http://a.test/")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	for _, r := range web.Log("") {
		fmt.Println(r.Method, r.Scheme, r.Host, r.URI)
	}
	// Output:
	// GET http a.test /
	// GET https b.test /?id=1
}

// A crawler does not request robots.txt, and Verify reports the request.
func ExampleVerify() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/cart/1":     robotstest.Page(),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	r, _ := http.NewRequest(http.MethodGet, "http://shop.test/cart/1", nil)
	r.Header.Set("User-Agent", "ExampleBot/1.0")
	if resp, err := web.Transport().RoundTrip(r); err == nil {
		resp.Body.Close()
	}

	var t printed // stands for the test's *testing.T
	robotstest.Verify(t, web, dialect.RFC9309())
	// Output:
	// robots.txt disallows it for "ExampleBot" under rfc9309, line 2: Disallow: /cart
}

// printed is a test that prints its errors without the request and its time.
type printed struct{ testing.TB }

func (printed) Helper() {}

func (printed) Errorf(format string, args ...any) {
	_, fault, _ := strings.Cut(fmt.Sprintf(format, args...), ": ")
	fmt.Println(fault)
}
