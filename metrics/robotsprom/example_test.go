package robotsprom_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"

	"github.com/gocolly/colly/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/metrics/robotsprom"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A complete spider with its metrics at /metrics. In this example, the web and the client that
// reads the metrics are in memory. Your spider does not need WithTransport, and listens on a port:
//
//	go http.ListenAndServe("127.0.0.1:9090", mux)
func Example() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/":           robotstest.Page("/tea", "/cart", "/cups"),
		"/tea":        robotstest.Page("/", "/cups"),
		"/cups":       robotstest.Page("/lost"),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(collyrobots.OnDenied(func(*colly.Request, error) {}))
	if err != nil {
		log.Fatal(err)
	}
	metrics := robotsprom.NewCollector(robots)
	defer metrics.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://shop.test/")
	robots.Close() // all events are counted when it returns

	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range regexp.MustCompile(`collyrobots_(requests|decisions|denials)_total.* [1-9].*`).FindAllString(page.Body.String(), -1) {
		fmt.Println(line)
	}
	// Output:
	// collyrobots_decisions_total{reason="no_rule"} 4
	// collyrobots_decisions_total{reason="rule"} 1
	// collyrobots_denials_total{reason="rule"} 1
	// collyrobots_requests_total{request_kind="page"} 4
	// collyrobots_requests_total{request_kind="robots"} 1
}
