package robotsprom

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// busyOnce responds with 429 to the first request, and with a page to the later ones.
func busyOnce() http.HandlerFunc {
	var once sync.Once
	return func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { w.Header().Set("Retry-After", "30"); w.WriteHeader(http.StatusTooManyRequests) })
		fmt.Fprint(w, robotstest.Page())
	}
}

// shops are sites that cause every kind of event that is counted.
func shops() robotstest.Sites {
	return robotstest.Sites{
		"slow.test": {
			"/robots.txt":  "User-agent: *\nCrawl-delay: 2\nDisallow: /cart\nSitemap: http://slow.test/sitemap.xml\n",
			"/sitemap.xml": robotstest.Sitemap("http://slow.test/tea", "http://slow.test/cart/1", "http://far.test/"),
			"/":            robotstest.Page("/cups", "/cart", "/moved", "http://fast.test/"),
			"/cups":        robotstest.Page("/tea"),
			"/tea":         robotstest.Page("/"),
			"/moved":       robotstest.Redirect("/cups?id=1"),
			"/cups?id=1":   busyOnce(),
		},
		"fast.test": {"/": robotstest.Page("/1", "/lost"), "/1": robotstest.Page("/")},
	}
}

// spider returns a collector that follows links on web, and its plugin.
func spider(t *testing.T, web *robotstest.Web, opts ...collyrobots.Option) (*collyrobots.Collector, *collyrobots.Plugin) {
	t.Helper()
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := c.WithRobots(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { robots.Close() })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return c, robots
}

// valuesOf returns the values of all metrics by name and labels, such as
// `x_total{request_kind="page"}`. A histogram is included as its _count and _sum.
func valuesOf(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			of := ""
			if len(labels) > 0 {
				of = "{" + strings.Join(labels, ",") + "}"
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				values[family.GetName()+of] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				values[family.GetName()+of] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				values[family.GetName()+"_count"+of] = float64(m.Histogram.GetSampleCount())
				values[family.GetName()+"_sum"+of] = m.Histogram.GetSampleSum()
			}
		}
	}
	return values
}

func registered(t *testing.T, robots *collyrobots.Plugin) (*prometheus.Registry, *Collector) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	metrics := NewCollector(robots)
	t.Cleanup(metrics.Close)
	if err := registry.Register(metrics); err != nil {
		t.Fatal(err)
	}
	return registry, metrics
}

// TestAgainstTheAccessLog compares the metrics with the access log of the sites.
func TestAgainstTheAccessLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, shops())
		c, robots := spider(t, web, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		registry, _ := registered(t, robots)
		c.Visit("http://slow.test/")
		c.Wait()
		time.Sleep(100 * time.Millisecond) // events are delivered to listeners a little later
		synctest.Wait()

		got := valuesOf(t, registry)
		asked := make(map[string]float64)
		for _, r := range web.Log("") {
			switch r.URI {
			case "/robots.txt":
				asked["robots"]++
			case "/sitemap.xml":
				asked["sitemap"]++
			default:
				asked["page or redirect"]++
			}
		}
		slow := web.Log("slow.test")
		first, last := slow[0].Elapsed, slow[len(slow)-1].Elapsed
		for name, want := range map[string]float64{
			`collyrobots_requests_total{request_kind="robots"}`:                asked["robots"],
			`collyrobots_requests_total{request_kind="sitemap"}`:               asked["sitemap"],
			`collyrobots_requests_total{request_kind="redirect"}`:              1,
			`collyrobots_requests_total{request_kind="page"}`:                  asked["page or redirect"] - 1,
			`collyrobots_responses_total{class="4xx",request_kind="robots"}`:   1, // at fast.test
			`collyrobots_responses_total{class="4xx",request_kind="redirect"}`: 1, // 429
			`collyrobots_responses_total{class="4xx",request_kind="page"}`:     1, // /lost
			`collyrobots_responses_total{class="3xx",request_kind="page"}`:     1, // /moved
			`collyrobots_slowdowns_total{status="429"}`:                        1,
			`collyrobots_slowdowns_total{status="503"}`:                        0,
			`collyrobots_denials_total{reason="rule"}`:                         float64(robots.Stats().Totals.Denied),
			`collyrobots_gap_over_delay_ratio`:                                 1,
			`collyrobots_request_gap_seconds_count`:                            float64(len(slow) - 1),
			`collyrobots_request_gap_seconds_sum`:                              (last - first).Seconds(),
			`collyrobots_request_delay_seconds_sum{source="crawl_delay"}`:      float64(2 * (len(slow) - 1)),
			`collyrobots_wait_time_seconds_total`:                              robots.Stats().Totals.Waited.Seconds(),
			`collyrobots_slowed_hosts`:                                         1,
			`collyrobots_waiting_pages`:                                        0,
			`collyrobots_hosts`:                                                2,
			`collyrobots_policies{robots_status="rules"}`:                      1,
			`collyrobots_policies{robots_status="no_robots"}`:                  1,
			`collyrobots_sitemap_files_total{outcome="opened"}`:                1,
			`collyrobots_sitemap_read_entries_total`:                           3,
			`collyrobots_missed_events_total`:                                  0,
		} {
			if v, ok := got[name]; !ok || math.Abs(v-want) > 1e-6 {
				t.Errorf("%s is %v, want %v", name, v, want)
			}
		}
		if sum(got, "collyrobots_requests_total") != float64(len(web.Log(""))) || len(slow) != 7 {
			t.Errorf("%v requests, the log has %d", sum(got, "collyrobots_requests_total"), len(web.Log("")))
		}
		for key := range got {
			if strings.Contains(key, ".test") {
				t.Errorf("%s contains a host", key)
			}
		}
		if responses := sum(got, "collyrobots_responses_total"); responses != float64(len(web.Log(""))) {
			t.Errorf("%v responses", responses)
		}
		if t.Failed() {
			t.Log(web.Log(""), got)
		}
	})
}

// sum returns the sum of the values of a metric over all labels.
func sum(values map[string]float64, name string) (sum float64) {
	for key, value := range values {
		if strings.HasPrefix(key, name+"{") || key == name {
			sum += value
		}
	}
	return sum
}

// TestLint makes the checks of "promtool check metrics".
func TestLint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, shops())
		c, robots := spider(t, web)
		registry, _ := registered(t, robots)
		c.Visit("http://slow.test/")
		time.Sleep(100 * time.Millisecond) // events are delivered to listeners a little later
		synctest.Wait()
		problems, err := testutil.GatherAndLint(registry)
		if err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
		if n, err := testutil.GatherAndCount(registry); err != nil || n < 80 || n > 200 {
			t.Errorf("%d metrics, %v", n, err) // the number does not depend on the number of hosts
		}
	})
}

// TestBeforeAnything checks the metrics before a crawl: all counters are present, and metrics
// without a value are not. A gap of 0 would cause an alarm.
func TestBeforeAnything(t *testing.T) {
	for name, robots := range map[string]*collyrobots.Plugin{"nil": nil, "zero": {}} {
		registry, _ := registered(t, robots)
		got := valuesOf(t, registry)
		for key, value := range got {
			if value != 0 {
				t.Errorf("%s: %s is %v", name, key, value)
			}
		}
		for _, key := range []string{`collyrobots_requests_total{request_kind="retry"}`, `collyrobots_responses_total{class="none",request_kind="page"}`, `collyrobots_pages_total`} {
			if _, ok := got[key]; !ok {
				t.Errorf("%s: no %s", name, key)
			}
		}
		for key := range got {
			if strings.Contains(key, "ratio") || strings.Contains(key, "timestamp") {
				t.Errorf("%s: unexpected %s", name, key)
			}
		}
	}
}

// TestSeveralPlugins checks that a second plugin with the same labels is rejected, and that a label
// distinguishes plugins.
func TestSeveralPlugins(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, ""), "b.test": robotstest.Pages(5, "")})
	registry := prometheus.NewPedanticRegistry()
	crawls := make(map[string]*Collector)
	for _, host := range []string{"a.test", "b.test"} {
		c, robots := spider(t, web)
		crawls[host] = NewCollector(robots)
		labelled := prometheus.WrapRegistererWith(prometheus.Labels{"crawl": host}, registry)
		if err := labelled.Register(crawls[host]); err != nil {
			t.Fatal(err)
		}
		again := prometheus.AlreadyRegisteredError{}
		if err := labelled.Register(crawls[host]); !errors.As(err, &again) {
			t.Errorf("registered twice: %v", err)
		}
		other := NewCollector(robots)
		defer other.Close()
		if err := labelled.Register(other); !errors.As(err, &again) {
			t.Errorf("another Collector of the same plugin: %v", err)
		}
		c.Visit("http://" + host + "/")
		robots.Close() // all events are counted when it returns
	}
	got := valuesOf(t, registry)
	for _, host := range []string{"a.test", "b.test"} {
		want := float64(len(web.Log(host)) - 1)
		if v := got[`collyrobots_requests_total{crawl="`+host+`",request_kind="page"}`]; v != want {
			t.Errorf("%s: %v pages, want %v", host, v, want)
		}
	}
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"crawl": "a.test"}, registry)
	if !labelled.Unregister(crawls["a.test"]) {
		t.Error("Unregister failed")
	}
	for key := range valuesOf(t, registry) {
		if strings.Contains(key, "a.test") {
			t.Errorf("%s is still registered", key)
		}
	}
}

// TestClose checks that no events are counted after Close.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, ""), "b.test": robotstest.Pages(2, "")})
		c, robots := spider(t, web)
		registry, metrics := registered(t, robots)
		c.Visit("http://a.test/")
		time.Sleep(100 * time.Millisecond) // events are delivered to listeners a little later
		synctest.Wait()
		metrics.Close()
		metrics.Close()
		c.Visit("http://b.test/")
		synctest.Wait()
		if n := sum(valuesOf(t, registry), "collyrobots_requests_total"); n != float64(len(web.Log("a.test"))) || len(web.Log("b.test")) == 0 {
			t.Errorf("%v requests are counted; before Close there were %d", n, len(web.Log("a.test")))
		}
	})
}
