package robotsotel

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/metrics/figures"
	"github.com/collyrobots/collyrobots/robotstest"
)

// spider returns a collector that follows links on web, and its plugin.
func spider(t *testing.T, web *robotstest.Web) (*collyrobots.Collector, *collyrobots.Plugin) {
	t.Helper()
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(collyrobots.FollowSitemaps(collyrobots.Feed{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { robots.Close() })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return c, robots
}

// A reading is what a provider exports: the values by name and attributes, for example
// "collyrobots.requests page", and the metrics by name. A histogram has two values, with the
// suffixes " count" and " sum".
type reading struct {
	values  map[string]float64
	metrics map[string]metricdata.Metrics
}

func read(t *testing.T, reader *sdk.ManualReader) reading {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	r := reading{make(map[string]float64), make(map[string]metricdata.Metrics)}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			r.metrics[m.Name] = m
			prefix := m.Name
			if crawl, ok := scope.Scope.Attributes.Value("crawl"); ok {
				prefix = crawl.AsString() + " " + m.Name
			}
			r.add(prefix, m.Data)
		}
	}
	return r
}

func (r reading) add(name string, data metricdata.Aggregation) {
	switch data := data.(type) {
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			r.values[name+suffix(p.Attributes)] += p.Value
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			r.values[name+suffix(p.Attributes)] = p.Value
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			r.values[name+suffix(p.Attributes)+" count"] = float64(p.Count)
			r.values[name+suffix(p.Attributes)+" sum"] = p.Sum
		}
	}
}

// suffix returns the values of attributes in the order of their names, each after a space.
func suffix(attributes attribute.Set) (s string) {
	for _, a := range attributes.ToSlice() {
		s += " " + a.Value.AsString()
	}
	return s
}

// sum returns the sum of the values of a metric over all attributes.
func (r reading) sum(name string) (sum float64) {
	for key, value := range r.values {
		if key == name || strings.HasPrefix(key, name+" ") {
			sum += value
		}
	}
	return sum
}

func shops() robotstest.Sites {
	return robotstest.Sites{
		"slow.test": {
			"/robots.txt":  "User-agent: *\nCrawl-delay: 2\nDisallow: /cart\nSitemap: http://slow.test/sitemap.xml\n",
			"/sitemap.xml": robotstest.Sitemap("http://slow.test/tea"),
			"/":            robotstest.Page("/cups", "/cart", "/moved", "/busy", "http://fast.test/"),
			"/cups":        robotstest.Page("/"),
			"/tea":         robotstest.Page("/"),
			"/moved":       robotstest.Redirect("/cups?id=1"),
			"/busy":        429,
		},
		"fast.test": {"/": robotstest.Page("/1"), "/1": robotstest.Page("/")},
	}
}

// TestAgainstTheAccessLog compares the metrics with the access log of the sites.
func TestAgainstTheAccessLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, shops())
		c, robots := spider(t, web)
		reader := sdk.NewManualReader()
		stop, err := Register(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), robots)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		c.Visit("http://slow.test/")
		c.Wait()
		time.Sleep(100 * time.Millisecond) // events are delivered to listeners a little later
		synctest.Wait()

		got := read(t, reader)
		slow, all := web.Log("slow.test"), web.Log("")
		first, last := slow[0].Elapsed, slow[len(slow)-1].Elapsed
		for name, want := range map[string]float64{
			"collyrobots.requests robots":            2,
			"collyrobots.requests sitemap":           1,
			"collyrobots.requests redirect":          1,
			"collyrobots.requests page":              float64(len(all) - 4),
			"collyrobots.responses 4xx page":         1,
			"collyrobots.slowdowns 429":              1,
			"collyrobots.denials rule":               1,
			"collyrobots.gap_over_delay":             robots.Stats().GapOverDelay,
			"collyrobots.request.gap count":          float64(len(slow) - 1),
			"collyrobots.request.gap sum":            (last - first).Seconds(),
			"collyrobots.response.duration page sum": 0,
			"collyrobots.wait.time":                  robots.Stats().Totals.Waited.Seconds(),
			"collyrobots.hosts":                      2,
			"collyrobots.slowed_hosts":               1,
			"collyrobots.policies no_robots":         1,
			"collyrobots.sitemap.read_entries":       1,
		} {
			if v, ok := got.values[name]; !ok || math.Abs(v-want) > 1e-6 {
				t.Errorf("%s is %v, want %v", name, v, want)
			}
		}
		if n := got.sum("collyrobots.requests"); n != float64(len(all)) || got.sum("collyrobots.responses") != n || got.values["collyrobots.gap_over_delay"] < 1 {
			t.Errorf("%v requests, the log has %d", n, len(all))
		}
		if t.Failed() {
			t.Log(all, got.values)
		}
	})
}

// TestInstruments compares the exported metrics with the list of figures.
func TestInstruments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, shops())
		c, robots := spider(t, web)
		reader := sdk.NewManualReader()
		if _, err := Register(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), robots); err != nil {
			t.Fatal(err)
		}
		c.Visit("http://slow.test/")
		time.Sleep(100 * time.Millisecond) // events are delivered to listeners a little later
		synctest.Wait()
		got := read(t, reader)
		for _, f := range figures.All() {
			m, ok := got.metrics[f.Name]
			if !ok {
				if f != figures.Missed { // no event was missed
					t.Errorf("%s is not exported", f.Name)
				}
				continue
			}
			kind := figures.Gauge
			switch data := m.Data.(type) {
			case metricdata.Sum[float64]:
				kind = figures.Level
				if data.IsMonotonic {
					kind = figures.Counter
				}
			case metricdata.Histogram[float64]:
				kind = figures.Histogram
				if bounds := data.DataPoints[0].Bounds; len(bounds) != len(f.Buckets) {
					t.Errorf("%s has the buckets %v", f.Name, bounds)
				}
			}
			if kind != f.Kind || m.Unit != f.Unit || m.Description != f.Help {
				t.Errorf("%s: kind %d, unit %q, %q", f.Name, kind, m.Unit, m.Description)
			}
			delete(got.metrics, f.Name)
		}
		for name := range got.metrics {
			t.Errorf("%s is not a figure", name)
		}
	})
}

// TestSeveralPlugins checks that an attribute of the meters distinguishes plugins.
func TestSeveralPlugins(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, ""), "b.test": robotstest.Pages(5, "")})
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	for _, host := range []string{"a.test", "b.test"} {
		c, robots := spider(t, web)
		meter := provider.Meter("test", metric.WithInstrumentationAttributes(attribute.String("crawl", host)))
		stop, err := Register(meter, robots)
		if err != nil {
			t.Fatal(err)
		}
		c.Visit("http://" + host + "/")
		robots.Close() // all events are counted when it returns
		if host == "a.test" {
			defer stop()
			continue
		}
		stop()
		stop()
	}
	got := read(t, reader)
	if got.values["a.test collyrobots.pages"] != 3 || got.values["a.test collyrobots.requests page"] != 3 {
		t.Errorf("a.test: %v", got.values)
	}
	if _, ok := got.values["b.test collyrobots.pages"]; ok || got.values["b.test collyrobots.requests page"] != 6 {
		t.Errorf("b.test after stop: %v", got.values)
	}
}

// TestStop checks that stop ends the listening to the plugin.
func TestStop(t *testing.T) {
	crawl := new(fakeSource)
	stop, err := Register(noop.NewMeterProvider().Meter("test"), crawl)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if !crawl.stopped {
		t.Error("the plugin is still listened to")
	}
}

// TestNoPlugin checks that the metrics of a nil or zero plugin are zero, and that there is no gap.
func TestNoPlugin(t *testing.T) {
	for name, robots := range map[string]*collyrobots.Plugin{"nil": nil, "zero": {}} {
		reader := sdk.NewManualReader()
		if _, err := Register(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), robots); err != nil {
			t.Fatal(err)
		}
		got := read(t, reader)
		for key, value := range got.values {
			if value != 0 {
				t.Errorf("%s: %s is %v", name, key, value)
			}
		}
		if _, ok := got.values["collyrobots.pages"]; !ok {
			t.Errorf("%s: no pages", name)
		}
		if _, ok := got.values["collyrobots.gap_over_delay"]; ok {
			t.Errorf("%s: unexpected gap", name)
		}
	}
}

// broken is a meter that fails for a chosen instrument.
type broken struct {
	noop.Meter
	histogram, callback error
}

func (b broken) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return noop.Float64Histogram{}, b.histogram
}

func (b broken) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return noop.Registration{}, b.callback
}

func TestMetersThatFail(t *testing.T) {
	fault := errors.New("fault")
	if stop, err := Register(nil, nil); stop != nil || err == nil {
		t.Errorf("no meter: %v", err)
	}
	for _, meter := range []broken{{histogram: fault}, {callback: fault}} {
		if stop, err := Register(meter, nil); stop != nil || !errors.Is(err, fault) || !strings.HasPrefix(err.Error(), "robotsotel: Register: ") {
			t.Error(err)
		}
	}
}
