package robotsotel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gocolly/colly/v2"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/metrics/robotsotel"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A complete spider with its metrics. In this example, the web is in memory, and the metrics are
// read by hand. Your spider does not need WithTransport, and uses an exporter with a
// PeriodicReader.
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
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(collyrobots.OnDenied(func(*colly.Request, error) {}))
	if err != nil {
		log.Fatal(err)
	}
	stop, err := robotsotel.Register(provider.Meter("example.com/spider"), robots)
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://shop.test/")
	robots.Close() // all events are counted when it returns

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "collyrobots.requests" || m.Name == "collyrobots.denials" {
			for _, p := range m.Data.(metricdata.Sum[float64]).DataPoints {
				fmt.Println(m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()), p.Value, m.Unit)
			}
		}
	}
	// Unordered output:
	// collyrobots.requests collyrobots.request_kind=page 4 {request}
	// collyrobots.requests collyrobots.request_kind=robots 1 {request}
	// collyrobots.denials collyrobots.reason=rule 1 {request}
}

// A spider with traces. Your spider uses an exporter with a batcher in place of the exporter in memory.
func ExampleTrace() {
	web, err := robotstest.Open(robotstest.Sites{"shop.test": {
		"/robots.txt": "User-agent: *\nDisallow: /cart\n",
		"/":           robotstest.Page(),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()
	exporter := tracetest.NewInMemoryExporter()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))

	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(collyrobots.OnDenied(func(*colly.Request, error) {}))
	if err != nil {
		log.Fatal(err)
	}
	stop, err := robotsotel.Trace(traces.Tracer("example.com/spider"), robots)
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	c.Visit("http://shop.test/")
	c.Visit("http://shop.test/cart")
	robots.Close() // all spans are made when it returns

	for _, span := range exporter.GetSpans() {
		for _, a := range span.Attributes {
			if a.Key == "url.full" {
				fmt.Println(span.Name, a.Value.AsString())
			}
		}
	}
	// Unordered output:
	// robots.txt http://shop.test/robots.txt
	// request http://shop.test/
	// collyrobots.page http://shop.test/
	// collyrobots.page http://shop.test/cart
}
